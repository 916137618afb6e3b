#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""R's e1071 has a copy of libsvm inside: its calls of svm_train() are bound by name, so libaccel sees them; so are
those of svm_predict_values() by that copy itself, with a model on the stack."""

import pytest

from lib.log import lines_for
from lib.programs import LOG, NO_GPU, TEST_GPU, start
from programs.harness import WORK

SCRIPT = ("/usr/bin/Rscript", WORK / "e1071_svm.R")


@pytest.fixture(scope="module")
def plain():
    """What e1071 itself prints."""
    done = start(*SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "classes" in done.stdout
    assert "target" in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def on_gpu():
    return start(*SCRIPT, env={**TEST_GPU, **LOG})


def test_models_and_predictions_on_the_gpu_are_the_same(plain, on_gpu):
    assert on_gpu.stdout == plain


@pytest.mark.parametrize("kernel", ("rbf", "poly"))
def test_model_is_trained_on_the_gpu(on_gpu, kernel):
    assert len(lines_for(on_gpu, sym="svm_train", ran="gpu0", why="forced", l="150", features="6", kernel=kernel)) == 1


def test_each_row_is_predicted_on_the_gpu(on_gpu):
    predicted = [line for line in lines_for(on_gpu) if line["sym"].startswith("svm_predict")]
    assert len(predicted) > 100
    assert "svm_predict" in {line["sym"] for line in predicted}
    assert {line["ran"] for line in predicted} == {"gpu0"}


def test_without_a_gpu_its_own(plain):
    done = start(*SCRIPT, env={**NO_GPU, **LOG})
    assert done.stdout == plain, done.stderr
    assert len(lines_for(done, sym="svm_train", ran="cpu", why="no_gpu")) == 2
