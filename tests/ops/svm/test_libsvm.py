#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""libsvm: svm-train, svm-predict and Python's libsvm, on data of libsvm's and on random problems, train on the test GPU
as without it: objective, decisions, classes, models that the other loads, printed lines, rand(); without a GPU bit for
bit. What libsvm itself must answer gets there."""

import re

import pytest

from lib.log import lines_for
from lib.programs import DEBIAN_PYTHON, LOG, LONG, NO_GPU, PLAIN, TEST_GPU, VENV_PYTHON, start
from ops.svm.judge import check_problems, without_dots

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
ON_GPU = {**TEST_GPU, **LOG}


# ---- Debian's programs ----

def train(model, *options, env=PLAIN):
    return start("/usr/bin/svm-train", *options, HEART, model, env=env)


def prediction(model, env=PLAIN):
    start("/usr/bin/svm-predict", HEART, model, f"{model}.out", env=env)
    return model.with_name(f"{model.name}.out").read_text()


def check_near(plain, device):
    """They have printed the same, except for what training changes in numbers."""
    one, other = ([float(word) for word in re.findall(r"-?\d+\.\d+", done.stdout)] for done in (plain, device))
    words, others = (re.sub(r"-?\d+(\.\d+)?", "N", without_dots(done.stdout)) for done in (plain, device))
    assert words == others
    assert len(one) == len(other)
    assert not [(x, y) for x, y in zip(one, other) if abs(x - y) > 2e-3 * max(1, abs(x))]


CALLS = ["-s 0", "-s 1", "-s 2", "-s 3", "-s 4", "-t 0", "-b 1", "-s 3 -b 1"]


@pytest.mark.parametrize("options", CALLS if LONG else CALLS[:1])
def test_svm_train(options, tmp_path):
    plain, device, bits = (tmp_path / name for name in ("plain", "device", "bits"))
    without, with_it = train(plain, *options.split()), train(device, *options.split(), env=ON_GPU)
    check_near(without, with_it)
    assert len(lines_for(with_it, sym="svm_train", ran="gpu0", l="270", features="13")) == 1
    # Models of either side predict the same in the other.
    assert prediction(plain) == prediction(device, NO_GPU)
    assert prediction(plain, NO_GPU) == prediction(device)
    train(bits, *options.split(), env=NO_GPU)
    assert bits.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("options", ["-v 3", "-s 3 -v 3", "-s 2 -v 3"] if LONG else ["-v 3"])
def test_the_folds_on_the_gpu(options):
    plain, device, same = (start("/usr/bin/svm-train", *options.split(), HEART, env=env)
                           for env in (PLAIN, ON_GPU, NO_GPU))
    check_near(plain, device)
    assert len(lines_for(device, sym="svm_cross_validation", ran="gpu0", folds="3")) == 1
    assert same.stdout == plain.stdout


# Each with a few of libsvm's own kinds, kernels and parameters.
@pytest.mark.parametrize("options", ["", "-s 1 -n 0.3", "-s 2", "-s 3", "-s 4", "-t 0", "-t 1", "-b 1",
                                     "-v 3"][::1 if LONG else 4])
def test_verified(options, tmp_path):
    done = train(tmp_path / "model", "-q", *options.split(), env={**ON_GPU, "ACCEL_VERIFY": "all",
                                                                  "ACCEL_VERIFY_ACTION": "abort"})
    assert done.returncode == 0, done.stderr
    assert 0 < float(lines_for(done, ran="gpu0")[0]["verify"]) <= 1


def test_svm_train_q_prints_nothing(tmp_path):
    done = train(tmp_path / "model", "-q", env=ON_GPU)
    assert done.stdout == ""
    assert len(lines_for(done, sym="svm_train", ran="gpu0")) == 1


@pytest.mark.parametrize("options", ["", "-s 1 -n 0.3"])
def test_a_weight_of_a_class_that_is_not_there(options, tmp_path):
    """libsvm's own warning and answer."""
    plain, done = (train(tmp_path / "model", *options.split(), "-w7", "2", env=env) for env in (PLAIN, ON_GPU))
    assert done.stdout == plain.stdout
    assert "not found" in plain.stderr
    assert plain.stderr in done.stderr
    assert lines_for(done, ran="cpu", why="unsupported")


def test_dots_come_while_the_gpu_trains(tmp_path):
    """When it fails, libsvm prints and trains from the start. Each operation is delayed, so that the training takes
    more than a second. The copy that fails is the one behind some 13,000 iterations."""
    plain, device = tmp_path / "plain", tmp_path / "device"
    own = train(plain, "-t", "0", "-c", "10")
    done = train(device, "-t", "0", "-c", "10", env={**ON_GPU, "TESTGPU_DELAY_US": "15000",
                                                     "TESTGPU_FAIL": "cuMemcpyDtoHAsync_v2:3"})
    assert re.fullmatch(r"\.{5,40}" + re.escape(own.stdout), done.stdout)
    assert lines_for(done, ran="cpu", why="error")
    assert device.read_bytes() == plain.read_bytes()


# ---- Random problems ----

# Problem 122 has several solutions, since its kernel is indefinite; 156 is a nu-SVR.
@pytest.mark.parametrize("python, seed, numbers, stop", [
    pytest.param(DEBIAN_PYTHON, 1, range(200) if LONG else (0, 122), 1, id="Debian's libsvm"),
    pytest.param(VENV_PYTHON, 3, range(200) if LONG else (1,), 1, id="PyPI's libsvm"),
    *([pytest.param(DEBIAN_PYTHON, 2, range(200), 0.01, id="Debian's libsvm, eps 1e-05")] if LONG else [])])
def test_random_problems(python, seed, numbers, stop, tmp_path):
    check_problems(len(numbers), python, stop, f"{tmp_path}/", 0, numbers, "narrow", seed)
