#!/usr/bin/python3 -B
"""scikit-learn's own tests that train by libsvm end on the test GPU as without libaccel."""

from lib.log import lines_for
from lib.own_tests import own_tests
from lib.programs import LOG, TEST_GPU
from lib.tap import Tap

tap = Tap()
tests, ours, done = own_tests("libsvm", {**TEST_GPU, **LOG})
calls = {sym: len(lines_for(done, sym=sym, ran="gpu0")) for sym in ("svm_train", "svm_csr_train")}
tap.ok(len(tests) >= 100 and ours == tests and min(calls.values()) > 50, f"{len(tests)} tests, with {calls} on the GPU, end as without libaccel",
       *set(tests) ^ set(ours), done.stdout[-500:])
tap.done()
