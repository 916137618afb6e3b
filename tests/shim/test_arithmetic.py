#!/usr/bin/python3 -B
"""The state of a thread's floating-point arithmetic. Under directed rounding, or with traps, calls are the program's own BLAS's,
with its bounds and its signals, whatever the policy; all else of the state stays, and does not keep a call from the GPU."""

import json
import os
import signal

from lib.log import lines_for, parse_log
from lib.programs import DEBIAN_PYTHON, LOG, NO_GPU, SHIM, TESTS, TEST_GPU, VENV_PYTHON, run, start
from lib.tap import Tap

tap = Tap()
WORDS = {"down": "rounds_down", "up": "rounds_up", "to_zero": "rounds_to_zero"}
# A BLAS's own threads round as they did when they were started.
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ON_GPU = {**TEST_GPU, **LOG, **ONE, "TESTGPU_REPORT": "/dev/stderr", "TESTGPU_DELAY_US": "0"}

# ---- The mode changes from call to call, at one place, and in threads at once ----

plain = start("fp_modes", env=ONE)
products = [line for line in plain.stdout.splitlines() if "apart" in line]
tap.ok(plain.returncode == 0 and len(products) == 6 and all("apart=0" not in line and line.endswith("outside=0") for line in products),
       "without libaccel: bounds", plain.stdout, plain.stderr)
for name, env in {"gpu": {}, "two devices": {"TESTGPU_DEVICES": "2", "ACCEL_DEVICES": "all"}, "verified": {"ACCEL_VERIFY": "all"},
                  "auto": {"ACCEL_POLICY": "auto", "ACCEL_START": "wait"}}.items():
    done = start("fp_modes", env={**ON_GPU, **env})
    tap.ok(done.stdout == plain.stdout and done.returncode == 0, f"{name}: the same bounds", plain.stdout, done.stdout, done.stderr[:1000])
    lines = parse_log(done.stderr)
    directed = [line for line in lines if "arithmetic" in line]
    tap.ok({(line["ran"], line["why"]) for line in directed} == {("cpu", "unsupported")}, f"{name}: directed calls are the CPU's", *lines[:9])
    tap.ok({line["arithmetic"] for line in directed} == set(WORDS.values()), f"{name}: the log says how they round", *directed[:9])
    tap.ok("testgpu faults n=0" in done.stderr or name == "auto", f"{name}: CUDA is called in the arithmetic of a program's start",
           *[line for line in done.stderr.splitlines() if "fault" in line][:5])
    if name != "auto":
        there = {line["sym"] for line in lines if line["ran"].startswith("gpu")}
        tap.ok(there == {"dgemm_", "dpotrf_", "dgemm_batch_strided_", "dgemm_batch_"}, f"{name}: others run on the GPU", *there, *lines[:9])
        verified = {line["ran"] for line in lines if "verify" in line}
        tap.ok(verified == ({"gpu0"} if name == "verified" else set()), f"{name}: no directed call is verified", *verified)
done = start("fp_modes", env={**ON_GPU, "ACCEL_LOG": "json"})
words = {fields.get("arithmetic") for fields in map(json.loads, filter(lambda line: line.startswith("{"), done.stderr.splitlines())) if "ran" in fields}
tap.ok(words == {None, *WORDS.values()}, "the log in JSON says it, too", *words)

# ---- Every library's calls: the whole program in one mode ----

MODE = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS}/libfp_mode.so"}
PROGRAMS = {"LAPACKE": ["lapacke", "liblapacke.so.3", "LAPACKE_", ""], "GSL": ["gsl_calls", "few"], "libsvm": ["svm_calls", "threads"],
            "liblinear": ["linear_calls", "liblinear.so.4"]}
for name, arguments in PROGRAMS.items():
    nearest = start(*arguments, env=ON_GPU)
    there = {line["sym"] for line in parse_log(nearest.stderr) if line["ran"] == "gpu0"}
    for mode in ("down", "up"):
        native = start(*arguments, env={**ONE, "LD_PRELOAD": f"{TESTS}/libfp_mode.so", "FP_MODE": mode})
        done = start(*arguments, env={**ON_GPU, **MODE, "FP_MODE": mode})
        lines = parse_log(done.stderr)
        tap.ok(there and (done.returncode, done.stdout) == (native.returncode, native.stdout), f"{name}, {mode}: as without libaccel",
               *there, native.stdout[-500:], done.stdout[-500:], done.stderr[-500:])
        kept = {line["sym"] for line in lines if (line["ran"], line["why"], line.get("arithmetic")) == ("cpu", "unsupported", WORDS[mode])}
        tap.ok(there <= kept and {line["ran"] for line in lines} == {"cpu"}, f"{name}, {mode}: the CPU's", *(there - kept), *lines[:5])

# ---- NumPy, by the default policy, too: its calls gain ----

CODE = """
import ctypes, numpy, sys
libm, down, near, up = ctypes.CDLL("libm.so.6"), 0x400, 0, 0x800
n = int(sys.argv[1])
a = numpy.random.default_rng(0).random((n, n)) + 0.1
bounds = {}
for mode in (near, near, near, down, near, up, near):
    libm.fesetround(mode)
    product = a @ (a + 1)
    libm.fesetround(near)
    bounds[mode] = product
low, high = bounds[down], bounds[up]
print((low < high).mean() > 0.9, (low <= bounds[near]).all() and (bounds[near] <= high).all())
"""
for name, python in {"Debian's": DEBIAN_PYTHON, "the wheel's": VENV_PYTHON}.items():
    for policy, order in {"auto": 1000, "gpu": 100}.items():
        done = run([python, "-c", CODE, str(order)], {**ON_GPU, "ACCEL_POLICY": policy, "ACCEL_START": "wait"})
        ran = [(line["ran"], line.get("arithmetic")) for line in lines_for(done, m=str(order))]
        tap.ok(done.stdout.split() == ["True", "True"] and ran[3:] == [("cpu", "rounds_down"), ("gpu0", None), ("cpu", "rounds_up"), ("gpu0", None)],
               f"{name} NumPy, {policy}: bounds, and the other calls on the GPU", done.stdout, *ran, done.stderr[-800:])

# ---- Traps: the program's signals are its own ----

native = start("fp_modes", "overflow", env=ONE)
done = start("fp_modes", "overflow", env=ON_GPU)
if native.stdout == "no traps here\n":
    tap.ok(True, "a product that overflows, with traps: # SKIP this processor has none")
else:
    tap.ok(native.returncode == -signal.SIGFPE, "a product that overflows, with traps: SIGFPE without libaccel", native.returncode, native.stdout)
    tap.ok((done.returncode, done.stdout) == (native.returncode, native.stdout), "and with libaccel", done.returncode, done.stdout)
    tap.ok([line.get("arithmetic") for line in parse_log(done.stderr)] == ["traps"], "the log says why it was the CPU's", done.stderr)

if os.uname().machine == "x86_64":
    for unit in "sse", "x87":
        done = start("fp_modes", f"{unit}-traps", env=ON_GPU)
        tap.ok(done.returncode == 0 and [line.get("arithmetic") for line in parse_log(done.stderr)] == ["traps"],
               f"only the {unit} unit would trap, and does not: the CPU's", done.returncode, done.stdout, done.stderr)

# ---- Without a log: small batches of several groups are passed over, and right ----

native = start("fp_modes", env=ONE)
for name, env in {"no GPU": NO_GPU, "test GPU": {**TEST_GPU, "ACCEL_POLICY": "auto"}}.items():
    done = start("fp_modes", env={**env, **ONE})
    tap.ok((done.returncode, done.stdout) == (native.returncode, native.stdout), f"no log, {name}: as without libaccel", native.stdout, done.stdout, done.stderr)

# ---- ACCEL_REQUIRE=gpu: such a call is no choice of the user's ----

done = start("fp_modes", env={**ON_GPU, "ACCEL_REQUIRE": "gpu"})
tap.ok(done.returncode == 1 and "dgemm_ would run on the CPU (why=unsupported: rounds_down), and ACCEL_REQUIRE=gpu is set" in done.stderr,
       "ACCEL_REQUIRE=gpu: the message says how it rounds", done.returncode, done.stderr[:500])

# ---- The x87 unit: fesetround(3) sets it, and some libraries compute by it ----

done = start("fp_modes", "x87", env=ON_GPU)
tap.ok(done.returncode == 0 and [line.get("arithmetic") for line in parse_log(done.stderr)] == ["rounds_down"], "only the x87 unit rounds down: the CPU's",
       done.stdout, done.stderr)

# ---- The rest of the state is the program's own, and does not keep a call from the GPU ----

for place, env in {"gpu": ON_GPU, "gpu, verified": {**ON_GPU, "ACCEL_VERIFY": "all"}, "cpu": {**NO_GPU, **LOG}}.items():
    done = start("fp_state", place[:3], env=env)
    ran = {line["ran"] for line in lines_for(done)}
    tap.ok(done.returncode == 0 and ran == {"gpu0" if place[:3] == "gpu" else "cpu"} and "fault what" not in done.stderr,
           f"flags, numbers below the normal ones, precision, {place}: the program's own", done.stdout, done.stderr)

tap.done()
