#!/usr/bin/python3 -B
"""The wheels of XGBoost and LightGBM without CUDA, and with TEST_LONG=1 XGBoost's with CUDA: what libaccel tells them. None finds a GPU here, so
what they compute is what they compute without libaccel."""

import json
import os

from harness import WORK
from lib.log import lines_for, parse_log
from lib.programs import BUILD, LOG, LONG, NO_GPU, SHIM, TEST_GPU, VENV_PYTHON, start
from lib.tap import Tap

tap = Tap()
AUTO = {**TEST_GPU, "ACCEL_POLICY": "auto"}


def train(*settings, program="xgboost_digits.py"):
    env = {}
    for some in settings:
        env.update(some)
    done = start(VENV_PYTHON, WORK / program, env=env)
    log = [line for line in parse_log(done.stderr) if line["sym"].startswith(("XG", "LGBM"))]
    return done, [" ".join(f"{key}={line[key]}" for key in ("build", "device", "ran", "why") if key in line) for line in log]


def check(name, plain, settings, logged, warns=False, **program):
    done, log = train(LOG, *settings, **program)
    tap.ok(done.returncode == 0 and done.stdout == plain.stdout and log == logged
           and ("No visible GPU is found" in done.stderr) == warns, name, "\n".join(log), plain.stdout, done.stdout, done.stderr)


def seeds(rounds, *settings):
    env = {name: value for some in settings for name, value in some.items()}
    done = start(VENV_PYTHON, WORK / "xgboost_seeds.py", rounds, env=env)
    return json.loads(done.stdout) if done.returncode == 0 else {"auc": [], "rmse": []}, done


def are_alike(one, other):
    """Whether what the seeds reach on the average on either side is within what they reach on the other."""
    within = lambda a, b: bool(a) and min(b) <= sum(a) / len(a) <= max(b)
    return all(len(set(one[what])) > 2 and within(one[what], other[what]) and within(other[what], one[what]) for what in ("auc", "rmse"))


XGB = {"ACCEL_ML": "xgboost"}
plain, _ = train()
tap.ok(plain.returncode == 0 and "False 0.9" in plain.stdout, "XGBoost's wheel without CUDA", plain.stdout, plain.stderr)
check("ACCEL_ML=xgboost: one line says that there is no CUDA", plain, [AUTO, XGB], ["build=no_cuda ran=cpu why=unsupported"])
LIGHTGBM = {"program": "lightgbm_digits.py"}
plain, _ = train(**LIGHTGBM)
tap.ok(plain.returncode == 0 and "False 0.9" in plain.stdout, "LightGBM's wheel", plain.stdout, plain.stderr)
check("with the setting's default, libaccel says nothing of LightGBM", plain, [AUTO], [], **LIGHTGBM)
check("ACCEL_ML=lightgbm: one line says that there is no CUDA", plain, [AUTO, {"ACCEL_ML": "lightgbm"}], ["build=no_cuda ran=cpu why=unsupported"],
      **LIGHTGBM)
if LONG:
    CUDA = {"PYTHONPATH": str(BUILD / "xgboost")}
    plain, _ = train(CUDA)
    tap.ok(plain.returncode == 0 and "False 0.9" in plain.stdout, "XGBoost's wheel with CUDA", plain.stdout, plain.stderr)
    check("with the setting's default, libaccel says nothing", plain, [CUDA, AUTO], [])
    check("no GPU: nothing is told", plain, [CUDA, NO_GPU, XGB], ["ran=cpu why=no_gpu"] * 2)
    check("it is told to use the device, looks for it and finds none", plain, [CUDA, AUTO, XGB],
          ["device=cpu ran=cpu why=unsupported"] * 2, warns=True)

# ---- Trees of a GPU against those of the CPU, by seeds ----

plain, done = seeds(20)
worse, _ = seeds(3)
tap.ok(are_alike(plain, plain) and not are_alike(plain, worse) and not are_alike(worse, plain),
       "XGBoost's AUC and RMSE: models of too few rounds are beyond the spread of seeds", plain, worse, done.stderr)
on_cpu, done = seeds(20, LOG, XGB, AUTO, {"ACCEL_CPU": "xgboost_*"})
tap.ok(on_cpu == plain and are_alike(plain, on_cpu), "on the CPU both ways: each seed's are the same", plain, on_cpu, done.stderr)
if os.environ.get("TEST_REAL_GPU") and (BUILD / "xgboost").is_dir():
    wheel = {"PYTHONPATH": str(BUILD / "xgboost")}
    plain, _ = seeds(20, wheel)
    device, done = seeds(20, wheel, SHIM, LOG, XGB)
    tap.ok(are_alike(plain, device) and len(lines_for(done, ran="gpu0", device="cuda")) == 16,
           "on the GPU: within the spread of seeds", plain, device, done.stderr[-2000:])
else:
    tap.skip("XGBoost's AUC and RMSE on the GPU", "needs TEST_REAL_GPU and the wheel with CUDA, which TEST_LONG=1 scripts/install-deps test fetches")
tap.done()
