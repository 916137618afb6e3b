#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A program whose forked children use CUDA themselves: libaccel is not who starts CUDA in their parent, where that can
be told or is said."""

import shutil

import pytest

from lib.calibrated import AUTO
from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, LOG, RUNTIME, start

PYTHON = "/usr/bin/python3"
CUDA = str(BUILD / "testgpu" / "libcuda.so.1")

# A parent of real multiprocessing: products, then children that start CUDA, then a product. Loads
# libraries; "own" starts CUDA.
PROGRAM = """
import ctypes, importlib, sys, time
import numpy
cuda, loaded, own = sys.argv[1], sys.argv[2], sys.argv[3] == "own"

def start_cuda(_):
    driver, context = ctypes.CDLL(cuda), ctypes.c_void_p()
    return driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)

if loaded:
    ctypes.CDLL(loaded)
import multiprocessing.pool
if own:
    start_cuda(0)
a = numpy.ones((1500, 1500))
for _ in range(6):
    a @ a
time.sleep(1)
b = a @ a
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(start_cuda, range(2)), b[0, 0])
"""

FINE, BROKEN = "[(0, 0), (0, 0)] 1500.0\n", "[(3, 3), (3, 3)] 1500.0\n"
HELD, GPU = ("cpu", "no_gpu"), ("gpu0", "faster")
WAY_OUT = "if none does, ACCEL_START=background lets libaccel start it"
forks = pytest.mark.skipif(bool(RUNTIME),
                           reason="a child that is forked beside other threads finds AddressSanitizer's allocator "
                                  "locked, and ThreadSanitizer lost")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module")
def runtime(folder):
    """A library of the run time's name, whatever is in it."""
    return shutil.copy("/lib/x86_64-linux-gnu/libanl.so.1", folder / "libcudart.so.13")


def run(folder, loaded="", own="", **env):
    done = start(PYTHON, "-c", PROGRAM, CUDA, loaded, own, env={**AUTO, "TESTGPU_DELAY_US": "0",
                                                                "XDG_CACHE_HOME": str(folder), **env})
    assert done.returncode == 0, done.stderr[-600:]
    return done


def check_held_back(done):
    assert done.stdout == FINE
    assert set(outcomes(lines_for(done))) == {HELD}


def check_on_the_gpu(done):
    assert done.stdout == BROKEN
    assert GPU in outcomes(lines_for(done))


@forks
def test_the_driver_is_loaded(folder):
    """One line says what is held back, and the way out."""
    done = run(folder, CUDA, **LOG)
    check_held_back(done)
    (line,) = said(done)
    assert "ACCEL_START=background" in line


@forks
def test_a_hint_of_the_summary_has_the_way_out(folder):
    done = run(folder, CUDA, ACCEL_SUMMARY="1")
    hint = " ".join(line[len("accel:"):].strip() for line in done.stderr.splitlines() if "accel: " in line)
    assert " calls ran on the CPU because the program has loaded CUDA, and children" in hint
    assert WAY_OUT in hint
    assert "no GPU is there" not in hint


@forks
def test_so_has_accel_explain_of_a_log(folder):
    run(folder, CUDA, **LOG, ACCEL_LOG_FILE=str(folder / "log"))
    assert WAY_OUT in " ".join(start(str(BUILD / "accel"), "explain", folder / "log").stdout.split())


@forks
def test_the_run_time_is_loaded(folder, runtime):
    check_held_back(run(folder, runtime, **LOG))


@forks
def test_the_run_time_is_loaded_and_accel_start_is_background(folder, runtime):
    check_on_the_gpu(run(folder, runtime, **LOG, ACCEL_START="background"))


@forks
def test_no_library_is_loaded(folder):
    check_on_the_gpu(run(folder, **LOG))


@forks
def test_no_library_is_loaded_and_accel_start_is_program(folder):
    check_held_back(run(folder, **LOG, ACCEL_START="program"))


@forks
def test_accel_start_is_program_and_the_program_starts_cuda(folder):
    check_on_the_gpu(run(folder, own="own", **LOG, ACCEL_START="program"))


@forks
def test_the_driver_is_loaded_and_the_program_starts_cuda(folder):
    check_on_the_gpu(run(folder, CUDA, "own", **LOG))


def test_a_promise_is_not_held_back():
    """A program that must have the GPU, and that never starts CUDA, is ended."""
    done = start("steps", "dgemm:600:1", env={**AUTO, **LOG, "ACCEL_START": "program", "ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 1
    assert "ACCEL_REQUIRE=gpu is set" in done.stderr
