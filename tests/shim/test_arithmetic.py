#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The state of a thread's floating-point arithmetic. Under directed rounding, or with traps, calls are the program's
own BLAS's, with its bounds and its signals, whatever the policy; all else of the state stays, and does not keep a
call from the GPU."""

import json
import os
import signal

import pytest

from lib.log import lines_for, parse_log
from lib.programs import DEBIAN_PYTHON, LOG, NO_GPU, SHIM, TESTS, TEST_GPU, VENV_PYTHON, run, start

WORDS = {"down": "rounds_down", "up": "rounds_up", "to_zero": "rounds_to_zero"}
# A BLAS's own threads round as they did when they were started.
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ON_GPU = {**TEST_GPU, **LOG, **ONE, "TESTGPU_REPORT": "/dev/stderr", "TESTGPU_DELAY_US": "0"}


def arithmetic(done):
    return [line.get("arithmetic") for line in parse_log(done.stderr)]


# ---- The mode changes from call to call, at one place, and in threads at once ----

SETTINGS = {
    "gpu": {}, "two devices": {"TESTGPU_DEVICES": "2", "ACCEL_DEVICES": "all"}, "verified": {"ACCEL_VERIFY": "all"},
    "auto": {"ACCEL_POLICY": "auto", "ACCEL_START": "wait"},
}


@pytest.fixture(scope="module")
def plain():
    """What fp_modes prints without libaccel: bounds."""
    done = start("fp_modes", env=ONE)
    products = [line for line in done.stdout.splitlines() if "apart" in line]
    assert done.returncode == 0, done.stderr
    assert len(products) == 6
    assert all("apart=0" not in line and line.endswith("outside=0") for line in products)
    return done.stdout


@pytest.fixture(scope="module", params=SETTINGS)
def changing(request):
    """The settings' name, the finished fp_modes, its decision lines."""
    done = start("fp_modes", env={**ON_GPU, **SETTINGS[request.param]})
    return request.param, done, parse_log(done.stderr)


def test_bounds_are_the_same(changing, plain):
    assert (changing[1].returncode, changing[1].stdout) == (0, plain), changing[1].stderr[:1000]


def test_directed_calls_are_the_cpus_and_the_log_says_how_they_round(changing):
    directed = [line for line in changing[2] if "arithmetic" in line]
    assert {(line["ran"], line["why"]) for line in directed} == {("cpu", "unsupported")}
    assert {line["arithmetic"] for line in directed} == set(WORDS.values())


def test_cuda_is_called_in_the_arithmetic_of_a_programs_start(changing):
    name, done, _ = changing
    assert "testgpu faults n=0" in done.stderr or name == "auto", [
        line for line in done.stderr.splitlines() if "fault" in line
    ][:5]


def test_other_calls_run_on_the_gpu(changing):
    name, _, lines = changing
    if name != "auto":  # where a call may be slower there
        there = {line["sym"] for line in lines if line["ran"].startswith("gpu")}
        assert there == {"dgemm_", "dpotrf_", "dgemm_batch_strided_", "dgemm_batch_"}


def test_no_directed_call_is_verified(changing):
    name, _, lines = changing
    if name != "auto":
        assert {line["ran"] for line in lines if "verify" in line} == ({"gpu0"} if name == "verified" else set())


def test_log_in_json_says_how_they_round():
    done = start("fp_modes", env={**ON_GPU, "ACCEL_LOG": "json"})
    lines = map(json.loads, filter(lambda line: line.startswith("{"), done.stderr.splitlines()))
    assert {fields.get("arithmetic") for fields in lines if "ran" in fields} == {None, *WORDS.values()}


# ---- Every library's calls: the whole program in one mode ----

MODE = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS}/libfp_mode.so"}
PROGRAMS = {
    "LAPACKE": ["lapacke", "liblapacke.so.3", "LAPACKE_", ""], "GSL": ["gsl_calls", "few"],
    "libsvm": ["svm_calls", "threads"], "liblinear": ["linear_calls", "liblinear.so.4"],
}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request):
    """A program's words, and its functions that run on the GPU when it rounds to nearest."""
    arguments = PROGRAMS[request.param]
    return arguments, {line["sym"] for line in parse_log(start(*arguments, env=ON_GPU).stderr) if line["ran"] == "gpu0"}


@pytest.mark.parametrize("mode", ("down", "up"))
def test_whole_program_in_one_mode_is_the_cpus(program, mode):
    arguments, there = program
    native = start(*arguments, env={**ONE, "LD_PRELOAD": f"{TESTS}/libfp_mode.so", "FP_MODE": mode})
    done = start(*arguments, env={**ON_GPU, **MODE, "FP_MODE": mode})
    lines = parse_log(done.stderr)
    kept = {
        line["sym"] for line in lines
        if (line["ran"], line["why"], line.get("arithmetic")) == ("cpu", "unsupported", WORDS[mode])
    }
    assert there
    assert (done.returncode, done.stdout) == (native.returncode, native.stdout), done.stderr[-500:]
    assert there <= kept
    assert {line["ran"] for line in lines} == {"cpu"}


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


@pytest.mark.parametrize("python", (DEBIAN_PYTHON, VENV_PYTHON), ids=("Debian's", "the wheel's"))
@pytest.mark.parametrize("policy, order", (("auto", "1000"), ("gpu", "100")))
def test_numpy_gets_bounds_and_its_other_calls_run_on_the_gpu(python, policy, order):
    done = run([python, "-c", CODE, order], {**ON_GPU, "ACCEL_POLICY": policy, "ACCEL_START": "wait"})
    ran = [(line["ran"], line.get("arithmetic")) for line in lines_for(done, m=order)]
    assert done.stdout.split() == ["True", "True"], done.stderr[-800:]
    assert ran[3:] == [("cpu", "rounds_down"), ("gpu0", None), ("cpu", "rounds_up"), ("gpu0", None)]


# ---- Traps: the program's signals are its own ----


def test_product_that_overflows_with_traps_ends_the_program():
    native = start("fp_modes", "overflow", env=ONE)
    if native.stdout == "no traps here\n":
        pytest.skip("this processor has none")
    done = start("fp_modes", "overflow", env=ON_GPU)
    assert native.returncode == -signal.SIGFPE
    assert (done.returncode, done.stdout) == (native.returncode, native.stdout)
    assert arithmetic(done) == ["traps"], "the log says why it was the CPU's"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have one unit")
@pytest.mark.parametrize("unit", ("sse", "x87"))
def test_only_one_unit_would_trap_and_does_not(unit):
    done = start("fp_modes", f"{unit}-traps", env=ON_GPU)
    assert done.returncode == 0, done.stdout + done.stderr
    assert arithmetic(done) == ["traps"]


# ---- Without a log ----


@pytest.mark.parametrize("env", (NO_GPU, {**TEST_GPU, "ACCEL_POLICY": "auto"}), ids=("no GPU", "test GPU"))
def test_without_a_log_small_batches_are_passed_over_and_right(env, plain):
    done = start("fp_modes", env={**env, **ONE})
    assert (done.returncode, done.stdout) == (0, plain), done.stderr


def test_require_gpu_says_how_the_call_rounds():
    """Such a call is no choice of the user's."""
    done = start("fp_modes", env={**ON_GPU, "ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 1
    assert "dgemm_ would run on the CPU (why=unsupported: rounds_down), and ACCEL_REQUIRE=gpu is set" in done.stderr


def test_only_the_x87_unit_rounds_down():
    """fesetround(3) sets it, too, and some libraries compute by it."""
    done = start("fp_modes", "x87", env=ON_GPU)
    assert done.returncode == 0, done.stdout + done.stderr
    assert arithmetic(done) == ["rounds_down"]


@pytest.mark.parametrize("place, env",
                         (("gpu", ON_GPU), ("gpu", {**ON_GPU, "ACCEL_VERIFY": "all"}), ("cpu", {**NO_GPU, **LOG})),
                         ids=("gpu", "gpu, verified", "cpu"))
def test_rest_of_the_state_is_the_programs_own(place, env):
    """Flags, numbers below the normal ones, precision: they do not keep a call from the GPU."""
    done = start("fp_state", place, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line["ran"] for line in lines_for(done)} == {"gpu0" if place == "gpu" else "cpu"}
    assert "fault what" not in done.stderr
