#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What the first call of a routine loads (kernels, cuSOLVER) is not charged to the place that calls, and is counted
where calls wait for it."""

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes
from lib.programs import LOG, TEST_GPU, TESTS, start

WARMING, GPU, SLOWER = ("cpu", "warming"), ("gpu0", "faster"), ("cpu", "slower")
STARTED = ("dgemm:500:2", "started")


@pytest.fixture
def run(tmp_path):
    """Runs these steps by a calibration in which calls of order 500 take so long on the CPU, and 1 ms on the GPU, and
    with these first costs: the run, and where the calls of the routine ran."""

    def run(steps, sym, cpu_ms, first, **settings):
        calibrate(tmp_path / "model", keys(tmp_path), cpu_ms, 1, **first)
        done = start("steps", *steps, env={**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_LOAD_MS": "300",
                                           "ACCEL_MODEL": str(tmp_path / "model"), **settings})
        assert done.returncode == 0, done.stderr[-500:]
        return done, outcomes(lines_for(done, sym=sym))

    return run


def estimates(done, sym, side="gpu"):
    return [float(f[f"est_{side}_ms"]) for f in lines_for(done, sym=sym)]


# ---- Systems ----


@pytest.fixture
def solves(run):
    return lambda steps, cpu_ms, **settings: run(steps, "dgesv_", cpu_ms, {"kernels_ms": 50, "solver_ms": 500},
                                                 **settings)


def check_not_judged(done):
    """No place is sent back to the CPU for what its first call loads."""
    assert "event=pinned" not in done.stderr
    assert " 0 wrong" in done.stdout


def test_the_first_gain_of_a_routine_warms_it_up_in_the_background(solves):
    """Its calls run on the CPU meanwhile."""
    done, seen = solves([*STARTED, "solve:500:3", "sleep:9000", "solve:500:4"], 500, TESTGPU_FIRST_MS="1500")
    assert seen == 3 * [WARMING] + 4 * [GPU]
    check_not_judged(done)


def test_a_call_that_gains_more_than_a_warm_up_takes_does_not_wait_for_it(solves):
    done, seen = solves([*STARTED, "solve:500:4"], 70000, TESTGPU_FIRST_MS="1000")
    assert seen == 4 * [GPU]
    check_not_judged(done)


def test_start_wait_what_the_first_call_has_to_load_is_counted_until_calls_would_have_gained_as_much(solves):
    done, seen = solves(["solve:500:5"], 200, ACCEL_START="wait")
    assert seen == 2 * [SLOWER] + 3 * [GPU]
    first, second, third, fourth, fifth = estimates(done, "dgesv_")
    assert first > second > third > 50
    assert 10 > fourth == fifth


# ---- Products, with ACCEL_START=wait ----


@pytest.fixture
def products(run):
    return lambda steps, cpu_ms, kernels_ms: run([*steps, "maps"], "dgemm_", cpu_ms, {"kernels_ms": kernels_ms},
                                                 ACCEL_START="wait")


def test_what_blas_first_call_has_to_load_is_counted_too_until_calls_would_have_gained_as_much(products):
    """It is in the estimate, less what was gained."""
    done, seen = products(["dgemm:500:5"], 20, 50)
    assert seen == 2 * [SLOWER] + 3 * [GPU]
    assert " 0 wrong" in done.stdout
    first, second, third, fourth, fifth = estimates(done, "dgemm_")
    assert first > 50 > second > 25 > third > 10
    assert 10 > fourth == fifth > 1


def test_cuda_is_not_started_for_less(products):
    done, seen = products(["dgemm:500:2"], 20, 50)
    assert seen == 2 * [SLOWER]
    assert "libcuda is not there" in done.stdout


def test_many_small_gains_start_it(products):
    _, seen = products(["dgemm:500:40"], 3, 50)
    assert seen[:20] == 20 * [SLOWER]
    assert seen[-10:] == 10 * [GPU]


def test_once_the_gpu_is_known_the_calibration_says_how_much_it_is(products):
    assert products(["dgemm:500:15"], 20, 200)[1] == 10 * [SLOWER] + 5 * [GPU]


# ---- A factorisation that fails at its first column tells nothing of one that does not ----

CHOLESKY = """
import ctypes
lapack, n = ctypes.CDLL("liblapack.so.3", ctypes.RTLD_GLOBAL), ctypes.c_int(600)
for first in -1, 4, -1, 4:
    a, info = (ctypes.c_double * 360000)(), ctypes.c_int()
    for i in range(600):
        a[601 * i] = 4
    a[0] = first
    lapack.dpotrf_(b"U", ctypes.byref(n), a, ctypes.byref(n), ctypes.byref(info), 1)
    assert info.value == (first < 0)
"""


def test_a_matrix_that_is_not_definite_does_not_count_as_one_that_takes_no_time(tmp_path):
    done = start("/usr/bin/python3", "-c", CHOLESKY, env={**AUTO, **LOG, "ACCEL_MODEL": str(tmp_path / "model"),
                                                          "ACCEL_LEARN": "1", "TESTGPU_START_MS": "100000"})
    assert done.returncode == 0, done.stderr[-500:]
    first, second, third, fourth = estimates(done, "dpotrf_", "cpu")
    assert first == second
    assert third == fourth > second / 20


def test_a_constructor_and_another_thread_both_open_cusolver():
    """Neither waits for the other."""
    done = start("constructors", TESTS / "libat_load.so", env={**TEST_GPU, **LOG})
    assert done.returncode == 0
    assert done.stdout == "in a constructor: right\nbeside it: right\n"
    assert outcomes(f for f in lines_for(done, sym="dgesv_") if f["why"] != "empty") == 2 * [("gpu0", "forced")]
