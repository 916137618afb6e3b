#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LightGBM with ACCEL_ML=lightgbm, by a library that stands in for one with CUDA: which parameters it gets and when,
what the log says, what happens when the GPU fails. What its wheel computes, which has no CUDA, is in
tests/programs/test_boosting.py."""

import json
from collections import namedtuple

import pytest

from lib.log import parse_log, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, SHIM, TEST_GPU, TESTS, VENV_PYTHON, start

LGBM = {"ACCEL_ML": "lightgbm"}

START = """import ctypes, os, sys
lgbm = ctypes.CDLL("{library}")
def made(function, *arguments):
    handle = ctypes.c_void_p()
    code = function(*arguments, ctypes.byref(handle))
    if code != 0:
        print("refused", flush=True)
    return handle
def dense(parameters, reference=None):
    return made(lgbm.LGBM_DatasetCreateFromMat, b"dense", 1, 2, 3, 1, parameters, reference)
def sparse(parameters, by="CSR"):
    return made(lgbm["LGBM_DatasetCreateFrom" + by], by.encode(), 2, None, None, 1, ctypes.c_long(1), ctypes.c_long(2), ctypes.c_long(3), parameters, None)
def file(parameters):
    return made(lgbm.LGBM_DatasetCreateFromFile, b"a file", parameters, None)
def subset(full):
    return made(lgbm.LGBM_DatasetGetSubset, full, None, 0, b"s=1")
def booster(data, parameters):
    return made(lgbm.LGBM_BoosterCreate, data, parameters)
"""


def play(case):
    """What the library printed, and the log's lines of LightGBM; and the run."""
    env = {name: value for some in [SHIM, *case.settings] for name, value in some.items()}
    done = start(DEBIAN_PYTHON, "-c", START.format(library=TESTS / case.library) + case.program, env=env)
    assert done.returncode == 0, done.stderr
    log = [" ".join(f"{key}={line[key]}" for key in ("sym", "build", "device", "ran", "why") if key in line)
           for line in parse_log(done.stderr)
           if line["sym"].startswith("LGBM")]
    return done.stdout.splitlines(), log, done


GPU = (TEST_GPU, LOG, LGBM)
CUDA = " device_type=cuda gpu_device_id=0"
ON_GPU = "sym=LGBM_BoosterCreate device=cuda ran=gpu0 why=forced"
ONE = "booster(dense(b'a=1'), b'o=2')"
PLAIN = ['data from dense: "a=1" on cpu', 'booster of 1: "o=2"']
TOLD = [f'data from dense: "a=1{CUDA}" on cuda', f'booster of 1: "o=2{CUDA}"']
FULL = {"LGBM_MESSAGE": "[CUDA] out of memory"}

# says: how many messages of libaccel's.
Case = namedtuple("Case", "program settings printed logged says library", defaults=(0, "liblightgbm.so"))
CASES = {
    "without libaccel's help": Case(ONE, [TEST_GPU, LOG], PLAIN, []),
    "ACCEL_ML=1 is not enough": Case(ONE, [TEST_GPU, LOG, {"ACCEL_ML": "1"}], PLAIN, []),
    "data and booster are told the device, and the log says so": Case(ONE, GPU, TOLD, [ON_GPU]),
    "ACCEL_POLICY=auto": Case(ONE, [*GPU, {"ACCEL_POLICY": "auto"}], TOLD, [ON_GPU]),
    "the device is the one that libaccel uses": Case(
        ONE, [*GPU, {"TESTGPU_DEVICES": "3", "ACCEL_DEVICES": "2"}], [line.replace("id=0", "id=2") for line in TOLD],
        ["sym=LGBM_BoosterCreate device=cuda:2 ran=gpu2 why=forced"]),
    **{f"data from {name}": Case(f"booster({make}, b'')", GPU,
                                 [f'data from {name}: "{CUDA}" on cuda', f'booster of 1: "{CUDA}"'], [ON_GPU])
       for make, name in (("sparse(b'', 'CSR')", "CSR"), ("sparse(b'', 'CSC')", "CSC"), ("file(b'')", "a file"))},
    "a subset and data for validation are where their model is": Case(
        "d = dense(b'a=1')\nbooster(subset(d), b'o=2')\nbooster(dense(b'v=1', d), b'')", GPU,
        [TOLD[0], 'data from a subset: "s=1" on cuda', f'booster of 2: "o=2{CUDA}"', 'data from dense: "v=1" on cuda',
         f'booster of 3: "{CUDA}"'], [ON_GPU, ON_GPU]),
    # ---- Where nothing is told ----
    **{name: Case(ONE, settings, PLAIN, [f"sym=LGBM_BoosterCreate ran=cpu why={why}"], says=why == "no_gpu")
       for name, settings, why in (("no GPU", [NO_GPU, LOG, LGBM], "no_gpu"),
                                   ("ACCEL_POLICY=cpu", [*GPU, {"ACCEL_POLICY": "cpu"}], "user"),
                                   ("ACCEL_CPU=lightgbm_*", [*GPU, {"ACCEL_CPU": "lightgbm_*"}], "user"))},
    "a library without CUDA: one line says so": Case(
        ONE + "\n" + ONE, GPU, PLAIN + [line.replace("1:", "2:") for line in PLAIN],
        ["sym=LGBM_BoosterCreate build=no_cuda ran=cpu why=unsupported"], library="liblightgbm_no_cuda.so"),
    **{f"{choice} is the program's choice": Case(f"p = b'a=1 {choice}\\to=2'\nbooster(dense(p), p)", GPU,
                                                 [f'data from dense: "a=1 {choice}\to=2" on cpu',
                                                  f'booster of 1: "a=1 {choice}\to=2"'], [])
       for choice in ("device=cpu", "device_type=gpu", "gpu_device_id=1", "tree_learner=data", "tree=data",
                      "num_machines=2", "monotone_constraints=1,-1", "mc=1", "cegb_tradeoff=2",
                      "forcedsplits_filename=f", "max_depth=4", "linear_tree=true", "deterministic=true")},
    **{f"{same} is none": Case(f"booster(dense(b'{same}'), b'')", GPU,
                               [f'data from dense: "{same}{CUDA}" on cuda', f'booster of 1: "{CUDA}"'], [ON_GPU])
       for same in ("max_depth=-1", "max_depth=0", "devices=cpu", "trees=1", "mean=1", "num_iterations=3")},
    "a choice for the booster alone counts": Case(
        "booster(dense(b''), b'device=cpu')", GPU, [f'data from dense: "{CUDA}" on cuda', 'booster of 1: "device=cpu"'],
        []),
    "data that the program has left on the CPU are no data for the GPU": Case(
        "booster(dense(b'device=cpu'), b'')", GPU, ['data from dense: "device=cpu" on cpu', 'booster of 1: ""'],
        ["sym=LGBM_BoosterCreate ran=cpu why=unsupported"]),
    "other data at the same address are other data": Case(
        "d = dense(b'a=1')\nlgbm.LGBM_DatasetFree(d)\ne = dense(b'device=cpu')\nassert d.value == e.value\nbooster(e, b'')",
        GPU, [TOLD[0], 'data from dense: "device=cpu" on cpu', 'booster of 2: ""'],
        ["sym=LGBM_BoosterCreate ran=cpu why=unsupported"]),
    "the child of a fork trains on the CPU": Case(
        "d = dense(b'a=1')\nsys.stdout.flush()\nlgbm.fflush(None)\n"
        "if os.fork() == 0:\n    booster(d, b'o=2'), lgbm.fflush(None)\n    os._exit(0)\nos.wait()", GPU,
        [TOLD[0], PLAIN[1]], ["sym=LGBM_BoosterCreate ran=cpu why=forked"]),
    # ---- A GPU that fails ----
    "data do not fit: once more without, and their boosters are on the CPU": Case(
        ONE, [*GPU, {"LGBM_FAILS": "data", **FULL}], [TOLD[0], *PLAIN],
        ["sym=LGBM_DatasetCreateFromMat device=cpu ran=cpu why=no_memory",
         "sym=LGBM_BoosterCreate ran=cpu why=unsupported"]),
    **{f"a booster fails ({why}): once more without": Case(ONE, [*GPU, {"LGBM_FAILS": "booster", **message}],
                                                           [*TOLD, PLAIN[1]],
                                                           [f"sym=LGBM_BoosterCreate device=cpu ran=cpu why={why}"])
       for message, why in ((FULL, "no_memory"), ({}, "error"))},
    "a booster that fails on the CPU too is the program's mistake": Case(
        ONE, [*GPU, {"LGBM_REFUSES": "1"}], [*TOLD, PLAIN[1], "refused"], []),
}


def check(case):
    printed, log, done = play(case)
    assert printed == case.printed
    assert log == case.logged
    assert len(said(done)) == case.says


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lightgbm(case):
    check(case)


# ---- All names that the wheel's LightGBM knows ----

CHOICES = {"device_type", "gpu_platform_id", "gpu_device_id", "gpu_device_id_list", "gpu_use_dp", "num_gpu",
           "tree_learner", "num_machines", "machines",
           "machine_list_filename", "force_col_wise", "force_row_wise", "deterministic", "linear_tree",
           "monotone_constraints",
           "monotone_constraints_method", "monotone_penalty", "cegb_tradeoff", "cegb_penalty_split",
           "cegb_penalty_feature_lazy",
           "cegb_penalty_feature_coupled", "feature_contri", "forcedsplits_filename", "forcedbins_filename",
           "max_delta_step", "max_depth", "use_quantized_grad"}


def test_each_name_of_a_choice_is_a_choice_and_no_other_name_is():
    listed = start(VENV_PYTHON, "-c",
                   "import json, lightgbm.basic\nprint(json.dumps(lightgbm.basic._ConfigAliases._get_all_param_aliases()))")
    aliases = json.loads(listed.stdout)
    name_of = {alias: parameter for parameter, names in aliases.items() for alias in names}
    assert CHOICES < aliases.keys()
    assert len(name_of) > len(aliases) > 120
    check(Case(f"for name in {list(name_of)}:\n    lgbm.LGBM_DatasetFree(dense(name.encode() + b'=1'))", GPU,
               [f'data from dense: "{alias}=1" on cpu' if name in CHOICES
                else f'data from dense: "{alias}=1{CUDA}" on cuda' for alias, name in name_of.items()], []))


# ---- libaccel gets no memory at its n-th use ----

NONE = "sym=LGBM_{} ran=cpu why={}"
OUTCOMES = {"all are told": (TOLD, [ON_GPU]),
            "data are not": (PLAIN, [NONE.format("DatasetCreateFromMat", "no_memory"),
                                     NONE.format("BoosterCreate", "unsupported")]),
            "the place of data is not kept": ([TOLD[0], PLAIN[1]], [NONE.format("BoosterCreate", "unsupported")]),
            "a booster is not": ([TOLD[0], PLAIN[1]], [NONE.format("BoosterCreate", "no_memory")])}


def test_the_log_says_what_is_not_told_when_a_use_of_memory_fails():
    outcomes = []
    for nth in range(1, 13):
        plant = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}", "PLANT": f"malloc:{nth}"}
        outcomes.append(play(Case(ONE, [*GPU, plant], [], []))[:2])
    assert not [outcome for outcome in outcomes if outcome not in OUTCOMES.values()]
    assert not [what for what, outcome in OUTCOMES.items() if outcome not in outcomes]
    assert outcomes[-1] == (TOLD, [ON_GPU])
