#!/usr/bin/python3 -B
"""LightGBM with ACCEL_ML=lightgbm, by a library that stands in for one with CUDA: which parameters it gets and when, what the log says,
what happens when the GPU fails. What its wheel computes, which has no CUDA, is in tests/programs/test_boosting.py."""

import json

from lib.log import parse_log, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, SHIM, TEST_GPU, TESTS, VENV_PYTHON, start
from lib.tap import Tap

tap = Tap()
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


def play(program, settings, library):
    env = {}
    for some in [SHIM, *settings]:
        env.update(some)
    done = start(DEBIAN_PYTHON, "-c", START.format(library=TESTS / library) + program, env=env)
    log = [" ".join(f"{key}={line[key]}" for key in ("sym", "build", "device", "ran", "why") if key in line) for line in parse_log(done.stderr)
           if line["sym"].startswith("LGBM")]
    return done.stdout.splitlines() if done.returncode == 0 else [f"status {done.returncode}"], log, done


def expect(name, program, settings, printed, logged, says=0, library="liblightgbm.so"):
    seen, log, done = play(program, settings, library)
    tap.ok(seen == printed and log == logged and len(said(done)) == says, name, "\n".join(seen), "\n".join(log), done.stderr)


GPU = (TEST_GPU, LOG, LGBM)
CUDA = " device_type=cuda gpu_device_id=0"
ON_GPU = "sym=LGBM_BoosterCreate device=cuda ran=gpu0 why=forced"
ONE = "booster(dense(b'a=1'), b'o=2')"
PLAIN = ['data from dense: "a=1" on cpu', 'booster of 1: "o=2"']
TOLD = [f'data from dense: "a=1{CUDA}" on cuda', f'booster of 1: "o=2{CUDA}"']

expect("without libaccel's help", ONE, [TEST_GPU, LOG], PLAIN, [])
expect("ACCEL_ML=1 is not enough", ONE, [TEST_GPU, LOG, {"ACCEL_ML": "1"}], PLAIN, [])
expect("data and booster are told the device, and the log says so", ONE, GPU, TOLD, [ON_GPU])
expect("ACCEL_POLICY=auto", ONE, [*GPU, {"ACCEL_POLICY": "auto"}], TOLD, [ON_GPU])
expect("the device is the one that libaccel uses", ONE, [*GPU, {"TESTGPU_DEVICES": "3", "ACCEL_DEVICES": "2"}],
       [line.replace("id=0", "id=2") for line in TOLD], ["sym=LGBM_BoosterCreate device=cuda:2 ran=gpu2 why=forced"])
for make, name in ("sparse(b'', 'CSR')", "CSR"), ("sparse(b'', 'CSC')", "CSC"), ("file(b'')", "a file"):
    expect(f"data from {name}", f"booster({make}, b'')", GPU, [f'data from {name}: "{CUDA}" on cuda', f'booster of 1: "{CUDA}"'], [ON_GPU])
expect("a subset and data for validation are where their model is", "d = dense(b'a=1')\nbooster(subset(d), b'o=2')\nbooster(dense(b'v=1', d), b'')", GPU,
       [TOLD[0], 'data from a subset: "s=1" on cuda', f'booster of 2: "o=2{CUDA}"', 'data from dense: "v=1" on cuda', f'booster of 3: "{CUDA}"'],
       [ON_GPU, ON_GPU])

# ---- Where nothing is told ----

for name, settings, why in (("no GPU", [NO_GPU, LOG, LGBM], "no_gpu"), ("ACCEL_POLICY=cpu", [*GPU, {"ACCEL_POLICY": "cpu"}], "user"),
                            ("ACCEL_CPU=lightgbm_*", [*GPU, {"ACCEL_CPU": "lightgbm_*"}], "user")):
    expect(name, ONE, settings, PLAIN, [f"sym=LGBM_BoosterCreate ran=cpu why={why}"], says=why == "no_gpu")
expect("a library without CUDA: one line says so", ONE + "\n" + ONE, GPU, PLAIN + [line.replace("1:", "2:") for line in PLAIN],
       ["sym=LGBM_BoosterCreate build=no_cuda ran=cpu why=unsupported"], library="liblightgbm_no_cuda.so")
for choice in ("device=cpu", "device_type=gpu", "gpu_device_id=1", "tree_learner=data", "tree=data", "num_machines=2", "monotone_constraints=1,-1",
               "mc=1", "cegb_tradeoff=2", "forcedsplits_filename=f", "max_depth=4", "linear_tree=true", "deterministic=true"):
    expect(f"{choice} is the program's choice", f"p = b'a=1 {choice}\\to=2'\nbooster(dense(p), p)", GPU,
           [f'data from dense: "a=1 {choice}\to=2" on cpu', f'booster of 1: "a=1 {choice}\to=2"'], [])
for same in ("max_depth=-1", "max_depth=0", "devices=cpu", "trees=1", "mean=1", "num_iterations=3"):
    expect(f"{same} is none", f"booster(dense(b'{same}'), b'')", GPU, [f'data from dense: "{same}{CUDA}" on cuda', f'booster of 1: "{CUDA}"'], [ON_GPU])
expect("a choice for the booster alone counts", "booster(dense(b''), b'device=cpu')", GPU, [f'data from dense: "{CUDA}" on cuda', 'booster of 1: "device=cpu"'], [])
expect("data that the program has left on the CPU are no data for the GPU", "booster(dense(b'device=cpu'), b'')", GPU,
       ['data from dense: "device=cpu" on cpu', 'booster of 1: ""'], ["sym=LGBM_BoosterCreate ran=cpu why=unsupported"])
expect("other data at the same address are other data", "d = dense(b'a=1')\nlgbm.LGBM_DatasetFree(d)\ne = dense(b'device=cpu')\nassert d.value == e.value\nbooster(e, b'')", GPU,
       [TOLD[0], 'data from dense: "device=cpu" on cpu', 'booster of 2: ""'], ["sym=LGBM_BoosterCreate ran=cpu why=unsupported"])
expect("the child of a fork trains on the CPU", "d = dense(b'a=1')\nsys.stdout.flush()\nlgbm.fflush(None)\n"
       "if os.fork() == 0:\n    booster(d, b'o=2'), lgbm.fflush(None)\n    os._exit(0)\nos.wait()", GPU,
       [TOLD[0], PLAIN[1]], ["sym=LGBM_BoosterCreate ran=cpu why=forked"])

# ---- All names that the wheel's LightGBM knows ----

CHOICES = {"device_type", "gpu_platform_id", "gpu_device_id", "gpu_device_id_list", "gpu_use_dp", "num_gpu", "tree_learner", "num_machines", "machines",
           "machine_list_filename", "force_col_wise", "force_row_wise", "deterministic", "linear_tree", "monotone_constraints",
           "monotone_constraints_method", "monotone_penalty", "cegb_tradeoff", "cegb_penalty_split", "cegb_penalty_feature_lazy",
           "cegb_penalty_feature_coupled", "feature_contri", "forcedsplits_filename", "forcedbins_filename", "max_delta_step", "max_depth", "use_quantized_grad"}
listed = start(VENV_PYTHON, "-c", "import json, lightgbm.basic\nprint(json.dumps(lightgbm.basic._ConfigAliases._get_all_param_aliases()))")
aliases = json.loads(listed.stdout)
name_of = {alias: parameter for parameter, names in aliases.items() for alias in names}
tap.ok(CHOICES < aliases.keys() and len(name_of) > len(aliases) > 120, "the wheel's list of parameters and aliases", len(aliases), len(name_of), listed.stderr)
expect("each name of a choice is a choice, no other name is", f"for name in {list(name_of)}:\n    lgbm.LGBM_DatasetFree(dense(name.encode() + b'=1'))", GPU,
       [f'data from dense: "{alias}=1" on cpu' if name in CHOICES else f'data from dense: "{alias}=1{CUDA}" on cuda' for alias, name in name_of.items()], [])

# ---- A GPU that fails ----

FULL = {"LGBM_MESSAGE": "[CUDA] out of memory"}
expect("data do not fit: once more without, and their boosters are on the CPU", ONE, [*GPU, {"LGBM_FAILS": "data", **FULL}],
       [TOLD[0], *PLAIN], ["sym=LGBM_DatasetCreateFromMat device=cpu ran=cpu why=no_memory", "sym=LGBM_BoosterCreate ran=cpu why=unsupported"])
for message, why in (FULL, "no_memory"), ({}, "error"):
    expect(f"a booster fails ({why}): once more without", ONE, [*GPU, {"LGBM_FAILS": "booster", **message}], [*TOLD, PLAIN[1]],
           [f"sym=LGBM_BoosterCreate device=cpu ran=cpu why={why}"])
expect("a booster that fails on the CPU too is the program's mistake", ONE, [*GPU, {"LGBM_REFUSES": "1"}], [*TOLD, PLAIN[1], "refused"], [])

# ---- libaccel gets no memory at its n-th use ----

NONE = "sym=LGBM_{} ran=cpu why={}"
OUTCOMES = {"all are told": (TOLD, [ON_GPU]),
            "data are not": (PLAIN, [NONE.format("DatasetCreateFromMat", "no_memory"), NONE.format("BoosterCreate", "unsupported")]),
            "the place of data is not kept": ([TOLD[0], PLAIN[1]], [NONE.format("BoosterCreate", "unsupported")]),
            "a booster is not": ([TOLD[0], PLAIN[1]], [NONE.format("BoosterCreate", "no_memory")])}
outcomes = []
for nth in range(1, 13):
    plant = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}", "PLANT": f"malloc:{nth}"}
    outcomes.append(play(ONE, [*GPU, plant], "liblightgbm.so")[:2])
tap.ok(all(outcome in OUTCOMES.values() for outcome in outcomes) and all(outcome in outcomes for outcome in OUTCOMES.values()) and outcomes[-1] == (TOLD, [ON_GPU]),
       "each use of memory fails: the log says what is not told", *outcomes)
tap.done()
