#!/usr/bin/python3 -B
"""Programs that train and predict from several threads, by libsvm and liblinear, on the test GPU: for tests/sanitize/run."""

from lib.log import lines_for
from lib.programs import BUILD, LOG, PLAIN, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
ON_GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
NEWEST = next(max(BUILD.glob("liblinear/*")).glob("liblinear/clib*.so"))

# Each program with the calls that it makes, all of which the GPU does.
PROGRAMS = {("svm_calls", "threads"): {"svm_train": 20}, ("svm_calls", "rand"): {"svm_train": 1, "svm_cross_validation": 1},
            ("predict_calls", "threads"): {"svm_predict_values": 320},
            ("linear_calls", NEWEST): {"train": 12, "cross_validation": 2, "find_parameters": 2}}
for (program, word), calls in PROGRAMS.items():
    own, done = (start(program, word, env=env) for env in (PLAIN, ON_GPU))
    ran = {name: len(lines_for(done, sym=name, ran="gpu0")) for name in calls}
    same = own.stdout == done.stdout if program == "linear_calls" else own.stdout.count("\n") == done.stdout.count("\n")
    tap.ok(own.returncode == done.returncode == 0 and own.stdout and same and ran == calls,
           f"{program} {word}", ran, own.stdout, done.stdout, own.stderr, done.stderr[-1000:])
tap.done()
