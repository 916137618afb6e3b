#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs that train and predict from several threads, by libsvm and liblinear, on the test GPU: for
tests/sanitize/run."""

import pytest

from lib.log import lines_for
from lib.programs import BUILD, LOG, TEST_GPU, start

ON_GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
# Each program with the calls that it makes, all of which the GPU does.
PROGRAMS = {"svm_calls threads": {"svm_train": 20}, "svm_calls rand": {"svm_train": 1, "svm_cross_validation": 1},
            "predict_calls threads": {"svm_predict_values": 320},
            "linear_calls NEWEST": {"train": 12, "cross_validation": 2, "find_parameters": 2}}


@pytest.mark.parametrize("command", PROGRAMS)
def test_training_from_several_threads(command):
    program, word = command.split()
    if word == "NEWEST":
        word = next(max(BUILD.glob("liblinear/*")).glob("liblinear/clib*.so"))
    own, done = start(program, word), start(program, word, env=ON_GPU)
    assert own.returncode == 0, own.stderr
    assert done.returncode == 0, done.stderr[-1000:]
    assert own.stdout
    if program == "linear_calls":
        assert done.stdout == own.stdout
    assert done.stdout.count("\n") == own.stdout.count("\n")
    assert {name: len(lines_for(done, sym=name, ran="gpu0")) for name in PROGRAMS[command]} == PROGRAMS[command]
