#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The wheels of XGBoost and LightGBM without CUDA, and with TEST_LONG=1 XGBoost's with CUDA: what libaccel tells
them. None finds a GPU here, so what they compute is what they compute without libaccel."""

import json
import os

import pytest

from lib.log import lines_for, parse_log
from lib.programs import BUILD, LOG, LONG, NO_GPU, SHIM, TEST_GPU, VENV_PYTHON, start
from programs.harness import WORK

AUTO = {**TEST_GPU, "ACCEL_POLICY": "auto"}
XGB, LIGHTGBM = {"ACCEL_ML": "xgboost"}, {"ACCEL_ML": "lightgbm"}
WITH_CUDA = {"PYTHONPATH": str(BUILD / "xgboost")}
# Program, its own settings.
WHEELS = {"XGBoost's wheel without CUDA": ("xgboost_digits.py", {}), "LightGBM's wheel": ("lightgbm_digits.py", {})}
if LONG:
    WHEELS["XGBoost's wheel with CUDA"] = "xgboost_digits.py", WITH_CUDA
# What is logged of each wheel's training.
NO_CUDA = ["build=no_cuda ran=cpu why=unsupported"]
CASES = {
    "ACCEL_ML=xgboost: one line says that there is no CUDA": ("XGBoost's wheel without CUDA", {**AUTO, **XGB}, NO_CUDA),
    "with the setting's default, libaccel says nothing of LightGBM": ("LightGBM's wheel", AUTO, []),
    "ACCEL_ML=lightgbm: one line says that there is no CUDA": ("LightGBM's wheel", {**AUTO, **LIGHTGBM}, NO_CUDA),
    "with the setting's default, libaccel says nothing": ("XGBoost's wheel with CUDA", AUTO, []),
    "no GPU: nothing is told": ("XGBoost's wheel with CUDA", {**NO_GPU, **XGB}, ["ran=cpu why=no_gpu"] * 2),
    "it is told to use the device, looks for it and finds none":
        ("XGBoost's wheel with CUDA", {**AUTO, **XGB}, ["device=cpu ran=cpu why=unsupported"] * 2),
}


@pytest.fixture(scope="module")
def plain():
    """Each wheel's training without libaccel."""
    done = {name: start(VENV_PYTHON, WORK / program, env=env) for name, (program, env) in WHEELS.items()}
    assert {name: run.returncode for name, run in done.items()} == dict.fromkeys(done, 0)
    return {name: run.stdout for name, run in done.items()}


@pytest.mark.parametrize("wheel", WHEELS)
def test_training_without_libaccel(plain, wheel):
    assert "False 0.9" in plain[wheel]


@pytest.mark.parametrize("name", [name for name, (wheel, *_) in CASES.items() if wheel in WHEELS])
def test_what_a_wheel_is_told(plain, name):
    wheel, settings, logged = CASES[name]
    program, own = WHEELS[wheel]
    done = start(VENV_PYTHON, WORK / program, env={**own, **LOG, **settings})
    lines = [line for line in parse_log(done.stderr) if line["sym"].startswith(("XG", "LGBM"))]
    told = [
        " ".join(f"{key}={line[key]}" for key in ("build", "device", "ran", "why") if key in line) for line in lines
    ]
    assert (done.returncode, done.stdout) == (0, plain[wheel]), done.stderr
    assert told == logged
    assert ("No visible GPU is found"
            in done.stderr) == (name == "it is told to use the device, looks for it and finds none")


# ---- Trees of a GPU against those of the CPU, by seeds ----


def seeds(rounds, env={}):
    """XGBoost's AUC and RMSE, and the finished process."""
    done = start(VENV_PYTHON, WORK / "xgboost_seeds.py", rounds, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done


def are_alike(one, other):
    """Whether what the seeds reach on the average on either side is within what they reach on the other."""
    within = lambda a, b: bool(a) and min(b) <= sum(a) / len(a) <= max(b)
    return all(
        len(set(one[what])) > 2 and within(one[what], other[what]) and within(other[what], one[what])
        for what in ("auc", "rmse"))


@pytest.fixture(scope="module")
def of_seeds():
    return seeds(20)[0]


def test_models_of_too_few_rounds_are_beyond_the_spread_of_seeds(of_seeds):
    worse, _ = seeds(3)
    assert are_alike(of_seeds, of_seeds)
    assert not are_alike(of_seeds, worse)
    assert not are_alike(worse, of_seeds)


def test_on_the_cpu_both_ways_each_seeds_are_the_same(of_seeds):
    on_cpu, _ = seeds(20, {**LOG, **XGB, **AUTO, "ACCEL_CPU": "xgboost_*"})
    assert on_cpu == of_seeds
    assert are_alike(of_seeds, on_cpu)


def test_on_the_gpu_within_the_spread_of_seeds():
    if not os.environ.get("TEST_REAL_GPU") or not (BUILD / "xgboost").is_dir():
        pytest.skip("needs TEST_REAL_GPU and the wheel with CUDA, which TEST_LONG=1 scripts/install-deps test fetches")
    plain, _ = seeds(20, WITH_CUDA)
    device, done = seeds(20, {**WITH_CUDA, **SHIM, **LOG, **XGB})
    assert are_alike(plain, device)
    assert len(lines_for(done, ran="gpu0", device="cuda")) == 16
