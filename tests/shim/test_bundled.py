#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A library that has MKL in itself and is linked to cuBLAS, as PyTorch's: its calls are taken, with the
cuBLAS that it has loaded, and accel doctor says the truth about it."""

import re
import shutil

import pytest

from lib.calibrated import AUTO
from lib.log import lines_for, outcomes
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, RUNTIME, TEST_GPU, TESTS, start

TOOL = str(BUILD / "accel")
LIBRARY, UNTOLD = TESTS / "libbundled_lp64.so", TESTS / "libbundled_untold.so"
GPU = {"TESTGPU_DELAY_US": "0"}
# Loads the library, and perhaps multiprocessing as PyTorch does, calls its functions, and perhaps
# starts CUDA in between.
PROGRAM = """
import ctypes, sys
library, words, n = ctypes.CDLL(sys.argv[1]), sys.argv[3:], int(sys.argv[2])
for word in words:
    if word == "multiprocessing":
        import multiprocessing.connection
    elif word == "cuda":
        driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    else:
        print(word, getattr(library, "bundled_" + word)(n), "wrong")
"""
WORDS = ["product", "wide", "batch"]
RIGHT = "".join(f"{word} 0 wrong\n" for word in WORDS)


def call(library, *words, n=96, env):
    return start(DEBIAN_PYTHON, "-c", PROGRAM, library, n, *words, env={**GPU, **env})


# ---- Its calls, by 32-bit and by 64-bit integers under the plain names ----

MODES = {
    "without libaccel": ({}, None), "no GPU": ({**NO_GPU, **LOG}, "cpu"), "test GPU": ({**TEST_GPU, **LOG}, "gpu0")
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", ("lp64", "ilp64"))
def test_calls_are_right_and_each_is_in_the_log_with_its_sizes(width, mode):
    env, ran = MODES[mode]
    done = call(TESTS / f"libbundled_{width}.so", *WORDS, env=env)
    told = [(f["sym"], f["ran"], f.get("m"), f.get("n"), f.get("k"), f.get("group_size")) for f in lines_for(done)]
    sizes = (("dgemm_", None), ("dgemm_64_", None), ("cblas_dgemm_batch", "3"))
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr[-500:]
    assert told == [(name, ran, "96", "96", "96", size) for name, size in sizes if env]


def test_nothing_tells_its_integers_and_its_calls_are_passed_on():
    done = call(UNTOLD, "product", env={**TEST_GPU, **LOG})
    assert (done.returncode, done.stdout) == (0, "product 0 wrong\n"), done.stderr[-500:]
    assert outcomes(lines_for(done)) == [("cpu", "unsupported")]


def test_copy_of_cublas_that_it_has_loaded_is_the_one_in_use(tmp_path):
    """Not that of ACCEL_CUDA_DIR."""
    for part in "tests", "testgpu":
        (tmp_path / part).mkdir()
    copy = shutil.copy(LIBRARY, tmp_path / "tests")
    for name in "libcublas.so.13", "libcuda.so.1":
        shutil.copy(BUILD / "testgpu" / name, tmp_path / "testgpu")
    done = call(copy, "product", env={**TEST_GPU, **LOG})
    assert done.stdout == "product 0 wrong\n", done.stderr[-500:]
    assert re.findall(r"cublas_library=(\S+)", done.stderr) == [f"{tmp_path}/testgpu/libcublas.so.13"]


# ---- accel doctor ----


def doctor(library, *words, env={}):
    """Its status, its lines (state, what, text, hint), and its output."""
    done = start(TOOL, "doctor", "--", DEBIAN_PYTHON, "-c", PROGRAM, library, 96, *words,
                 env={**GPU, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), **env})
    rows = re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)
    return done.returncode, rows, done.stdout


def has(rows, state, what, pattern):
    return any((state, what) == row[:2] and re.search(pattern, f"{row[2]} -> {row[3]}") for row in rows)


@pytest.fixture(scope="module")
def plain():
    """accel doctor, of a product of the library."""
    status, rows, text = doctor(LIBRARY, "product")
    if has(rows, "WARN", "preload", "ptrace is not permitted"):
        pytest.skip("ptrace(2) is not permitted here")
    return status, rows, text


def test_doctor_says_the_width_as_it_was_called(plain):
    status, rows, _ = plain
    assert status == 0
    assert has(rows, "OK", "BLAS", r"/libbundled_lp64\.so, opened with dlopen by python\S+, 32-bit integers; "
               r"called with 1 thread, first dgemm_ ")


def test_doctor_does_not_hint_at_what_is_not_so(plain):
    _, rows, text = plain
    assert "DEEPBIND" not in text
    assert not has(rows, "WARN", "CUDA", "")


def test_doctor_says_the_other_width_of_the_same_library(plain):
    _, rows, _ = doctor(LIBRARY, "wide")
    assert has(rows, "OK", "BLAS", r"libbundled_lp64\.so, .*, 64-bit integers; called with 1 thread, first dgemm_64_")


def test_doctor_knows_that_calls_that_are_passed_on_have_come(plain):
    status, rows, text = doctor(UNTOLD, "product")
    assert status == 1
    assert has(rows, "WARN", "BLAS", r"libbundled_untold\.so, .*, integers of unknown width; called, first dgemm_, "
               r"and passed on: they cannot be told -> its calls stay on the CPU")
    assert has(rows, "FAIL", "calls", "^no call of BLAS or LAPACK came that libaccel can run")
    assert "DEEPBIND" not in text


# ---- A process that may fork for CUDA ----


def test_doctor_says_that_cuda_is_left_to_the_program_and_the_way_out(plain):
    status, rows, _ = doctor(LIBRARY, "multiprocessing", "product")
    assert status == 0
    assert has(rows, "WARN", "CUDA", r"^python\S+ has loaded CUDA and not started it: its calls stay on the CPU.* "
               r"-> set ACCEL_START=background")


def test_doctor_says_nothing_of_it_once_it_is_taken(plain):
    _, rows, _ = doctor(LIBRARY, "multiprocessing", "product", env={"ACCEL_START": "background"})
    assert has(rows, "OK", "BLAS", "called with")
    assert not has(rows, "WARN", "CUDA", "")
    assert not has(rows, "OK", "CUDA", "stay on the CPU")


def test_doctor_knows_a_program_that_starts_cuda_later(plain):
    _, rows, _ = doctor(LIBRARY, "multiprocessing", "product", "cuda", "product")
    assert has(rows, "OK", "CUDA", r"^python\S+ has loaded CUDA: its calls stay on the CPU until it starts CUDA itself")


def test_cuda_is_left_to_the_program(tmp_path):
    done = call(LIBRARY, "multiprocessing", "product", n=700, env={**AUTO, **LOG, "XDG_CACHE_HOME": str(tmp_path)})
    assert outcomes(lines_for(done)) == [("cpu", "no_gpu")], done.stderr[-500:]


@pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's run takes long for a product that pays")
def test_accel_start_says_that_it_may_start(tmp_path):
    """The first call that pays has its kernels loaded."""
    done = call(LIBRARY, "multiprocessing", *["product"] * 3, n=700,
                env={**AUTO, **LOG, "XDG_CACHE_HOME": str(tmp_path), "ACCEL_START": "wait"})
    assert done.stdout == "product 0 wrong\n" * 3, done.stderr[-500:]
    assert ("gpu0", "faster") in outcomes(lines_for(done))
