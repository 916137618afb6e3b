#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""XGBoost with ACCEL_ML=xgboost, by a library that stands in for it: which parameters it gets and when, what the log
says, what happens when the GPU fails."""

from collections import namedtuple

import pytest

from lib.log import parse_log, said
from lib.programs import DEBIAN_PYTHON, LOG, NO_GPU, SHIM, TEST_GPU, TESTS, start

XGB = {"ACCEL_ML": "xgboost"}
ROUNDS_DOWN = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS}/libfp_mode.so", "FP_MODE": "down"}

START = f"""import ctypes, os, sys
xgb = ctypes.CDLL("{TESTS}/libxgboost.so")
text = ctypes.c_char_p()
number = ctypes.c_ulong()
def create(**parameters):
    booster = ctypes.c_void_p()
    xgb.XGBoosterCreate(None, 0, ctypes.byref(booster))
    for name, value in parameters.items():
        set(booster, name, value)
    return booster
def set(booster, name, value):
    xgb.XGBoosterSetParam(booster, name.encode(), value.encode())
def train(booster):
    return xgb.XGBoosterUpdateOneIter(booster, 0, None)
def evaluate(booster):
    return xgb.XGBoosterEvalOneIter(booster, 0, None, None, 0, ctypes.byref(text))
def predict(booster):
    return xgb.XGBoosterPredictFromDMatrix(booster, None, b"", None, None, None)
def predict_in_place(booster):
    result = ctypes.c_int()
    code = xgb.XGBoosterPredictFromDense(booster, b"", b"", None, None, None, ctypes.byref(result))
    assert result.value == 42
    return code
def pickled(booster):
    xgb.XGBoosterSerializeToBuffer(booster, ctypes.byref(number), ctypes.byref(text))
    again = create()
    xgb.XGBoosterUnserializeFromBuffer(again, text, number)
    return again
"""


def steps(program, *settings):
    """What the library printed, and the log's lines of XGBoost; and the run."""
    done = start(DEBIAN_PYTHON, "-c", START + program, env={name: value for some in settings for name,
                                                            value in some.items()})
    log = [" ".join(f"{key}={line[key]}" for key in ("sym", "build", "device", "ran", "why") if key in line)
           for line in parse_log(done.stderr)
           if line["sym"].startswith("XG")]
    return done.stdout.splitlines(), log, done


ON_GPU = "sym=XGBoosterUpdateOneIter device=cuda ran=gpu0 why=forced"
GPU = (TEST_GPU, LOG, XGB)
TWICE = "b = create(eta='0.3', tree_method='hist')\nprint(train(b), train(b), flush=True)"
PLAIN = ["1: eta=0.3", "1: tree_method=hist", "1: train on cpu", "1: train on cpu", "0 0"]
FAILED = ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: train on cpu", "1: train on cpu", "0 0"]
TWO = "b = create()\nprint(train(b), train(b), flush=True)"

# says: how many messages of libaccel's.
Case = namedtuple("Case", "program settings printed logged says", defaults=(0,))
CASES = {
    "without libaccel's help": Case(TWICE, [TEST_GPU, LOG], PLAIN, []),
    "ACCEL_ML=1 is not enough": Case(TWICE, [TEST_GPU, LOG, {"ACCEL_ML": "1"}], PLAIN, []),
    "a booster is told to use the device when it first trains, and the log says so once": Case(
        TWICE, GPU, ["1: eta=0.3", "1: tree_method=hist", "1: device=cuda", "1: train on cuda", "1: train on cuda",
                     "0 0"], [ON_GPU]),
    "ACCEL_POLICY=auto": Case(
        TWICE, [TEST_GPU, LOG, XGB, {"ACCEL_POLICY": "auto"}],
        ["1: eta=0.3", "1: tree_method=hist", "1: device=cuda", "1: train on cuda", "1: train on cuda", "0 0"],
        [ON_GPU]),
    "the device is the one that libaccel uses": Case(
        TWICE, [*GPU, {"TESTGPU_DEVICES": "3", "ACCEL_DEVICES": "2"}],
        ["1: eta=0.3", "1: tree_method=hist", "1: device=cuda:2", "1: train on cuda:2", "1: train on cuda:2", "0 0"],
        ["sym=XGBoosterUpdateOneIter device=cuda:2 ran=gpu2 why=forced"]),
    "with gradients of the program's own": Case(
        "b = create()\nxgb.XGBoosterTrainOneIter(b, None, 0, b'g', b'h')", GPU,
        ["1: device=cuda", "g h", "1: train on cuda"], ["sym=XGBoosterTrainOneIter device=cuda ran=gpu0 why=forced"]),
    # ---- Where nothing is told ----
    **{name: Case(TWICE, settings, PLAIN, [f"sym=XGBoosterUpdateOneIter ran=cpu why={why}"], says=why == "no_gpu")
       for name, settings, why in (("no GPU", [NO_GPU, LOG, XGB], "no_gpu"),
                                   ("ACCEL_POLICY=cpu", [*GPU, {"ACCEL_POLICY": "cpu"}], "user"),
                                   ("ACCEL_CPU=xgboost_*", [*GPU, {"ACCEL_CPU": "xgboost_*"}], "user"),
                                   ("ACCEL_DEVICES=none", [*GPU, {"ACCEL_DEVICES": "none"}], "user"),
                                   ("the program rounds down", [*GPU, ROUNDS_DOWN], "unsupported"),
                                   ("several processes train together", [*GPU, {"XGB_DISTRIBUTED": "1"}],
                                    "unsupported"))},
    **{name + ": one line says so": Case(TWICE, [*GPU, settings], PLAIN,
                                         ["sym=XGBoosterUpdateOneIter build=no_cuda ran=cpu why=unsupported"])
       for name, settings in {"a library without CUDA": {"XGB_CUDA": "false"},
                              "a library older than 2.0": {"XGB_VERSION": "1"}}.items()},
    **{f"{name}={value} is the program's choice": Case(f"train(create({name}='{value}'))", GPU,
                                                       [f"1: {name}={value}",
                                                        f"1: train on {value if name == 'device' else 'cpu'}"], [])
       for name, value in (("device", "cpu"), ("device", "cuda:1"), ("tree_method", "gpu_hist"),
                           ("tree_method", "exact"), ("gpu_id", "0"), ("booster", "gblinear"),
                           ("updater", "grow_histmaker"), ("process_type", "update"))},
    "so is a configuration that is loaded": Case(
        "b = create()\nxgb.XGBoosterLoadJsonConfig(b, b'cpu')\ntrain(b)", GPU, ["1: train on cpu"], []),
    "a choice that comes later counts": Case(
        "b = create()\ntrain(b)\nset(b, 'device', 'cpu')\ntrain(b)\npredict_in_place(b)", GPU,
        ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: train on cpu", "1: predict in place on cpu"],
        [ON_GPU]),
    "so does one that the GPU cannot have: the device is the one before": Case(
        "b = create()\ntrain(b)\nset(b, 'tree_method', 'exact')\ntrain(b)", GPU,
        ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: tree_method=exact", "1: train on cpu"], [ON_GPU]),
    "another booster at the same address is another booster": Case(
        "b = create(device='cpu')\ntrain(b)\nxgb.XGBoosterFree(b)\nc = create()\nassert c.value == b.value\ntrain(c)",
        GPU, ["1: device=cpu", "1: train on cpu", "2: device=cuda", "2: train on cuda"], [ON_GPU]),
    # ---- Prediction, and what outlives the process ----
    "data in place are predicted by the CPU, which has no reason to warn; then it trains on": Case(
        "b = create()\ntrain(b)\nevaluate(b)\npredict(b)\npredict_in_place(b)\npredict_in_place(b)\ntrain(b)", GPU,
        ["1: device=cuda", "1: train on cuda", "1: evaluate on cuda", "1: predict on cuda", "1: device=cpu",
         "1: predict in place on cpu", "1: predict in place on cpu", "1: device=cuda", "1: train on cuda"], [ON_GPU]),
    "a pickle says what it would say without libaccel": Case(
        "b = create()\ntrain(b)\nc = pickled(b)\ntrain(c)", GPU,
        ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: serialize on cpu", "2: train on cpu"], [ON_GPU]),
    "the child of a fork computes on the CPU": Case(
        "b = create()\ntrain(b)\nsys.stdout.flush()\nxgb.fflush(None)\n"
        "if os.fork() == 0:\n    predict(b), train(b), xgb.fflush(None)\n    os._exit(0)\nos.wait()", GPU,
        ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: predict on cpu", "1: train on cpu"],
        [ON_GPU, "sym=XGBoosterUpdateOneIter ran=cpu why=forked"]),
    # ---- A GPU that fails ----
    "the GPU fails: once more on the CPU, and on": Case(
        TWO, [*GPU, {"XGB_FAILS": "1"}], FAILED, ["sym=XGBoosterUpdateOneIter device=cpu ran=cpu why=error"]),
    "the GPU is full": Case(
        TWO, [*GPU, {"XGB_FAILS": "1", "XGB_MESSAGE": "[1] std::bad_alloc: cudaErrorMemoryAllocation: out of memory"}],
        FAILED, ["sym=XGBoosterUpdateOneIter device=cpu ran=cpu why=no_memory"]),
    "XGBoost finds no GPU, and has turned to the CPU by itself": Case(
        TWO, [*GPU, {"XGB_FINDS_NONE": "1"}], ["1: device=cuda", "1: train on cuda", "1: train on cuda", "0 0"],
        ["sym=XGBoosterUpdateOneIter device=cpu ran=cpu why=unsupported"]),
    "it fails later, while it evaluates": Case(
        "b = create()\nos.environ['XGB_FAILS'] = '0'\ntrain(b)\nos.environ['XGB_FAILS'] = '1'\nprint(evaluate(b), flush=True)",
        GPU, ["1: device=cuda", "1: train on cuda", "1: evaluate on cuda", "1: device=cpu", "1: evaluate on cpu", "0"],
        [ON_GPU, "sym=XGBoosterEvalOneIter device=cpu ran=cpu why=error"]),
    "training that fails on the CPU too is the program's mistake, and it gets the error": Case(
        "b = create()\nprint(train(b), flush=True)", [*GPU, {"XGB_REFUSES": "1"}],
        ["1: device=cuda", "1: train on cuda", "1: device=cpu", "1: train on cpu", "-1"], []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_xgboost(case):
    printed, log, done = steps(case.program, SHIM, *case.settings)
    assert done.returncode == 0, done.stderr
    assert printed == case.printed
    assert log == case.logged
    assert len(said(done)) == case.says


def test_require_ends_the_program_where_nothing_can_be_told():
    _, _, done = steps("train(create())", NO_GPU, XGB, {"ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 1
    assert "XGBoosterUpdateOneIter" in done.stderr
    assert len(said(done)) == 1
    assert "train" not in done.stdout
