#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""scikit-learn's own tests that train by libsvm end on the test GPU as without libaccel."""

from lib.log import lines_for
from lib.own_tests import own_tests
from lib.programs import LOG, TEST_GPU


def test_own_tests():
    tests, ours, done = own_tests("libsvm", {**TEST_GPU, **LOG})
    assert len(tests) >= 100
    assert not set(tests) ^ set(ours), done.stdout[-500:]
    assert ours == tests
    assert len(lines_for(done, sym="svm_train", ran="gpu0")) > 50
    assert len(lines_for(done, sym="svm_csr_train", ran="gpu0")) > 50
