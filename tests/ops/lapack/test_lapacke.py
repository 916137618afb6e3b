#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK through its C interface: LAPACKE of Debian, which calls the Fortran names, and those inside the wheels'
OpenBLAS, which do not."""

from collections import namedtuple

import pytest

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, TEST_GPU, start

ON_GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}
# program, library (a pattern within the wheels), and what is in front of and behind its names.
LIBRARIES = {
    "Debian's LAPACKE": ("lapacke", "liblapacke.so.3", "LAPACKE_", ""),
    "the wheel's, 32-bit integers": ("lapacke", "scipy.libs/libscipy_openblas-*.so", "scipy_LAPACKE_", ""),
    "the wheel's, 64-bit integers": ("lapacke64", "numpy.libs/libscipy_openblas64_-*.so", "scipy_LAPACKE_", "64_"),
}
Lapacke = namedtuple("Lapacke", "run plain lines")


@pytest.fixture(scope="module", params=LIBRARIES.values(), ids=LIBRARIES)
def lapacke(request):
    """A library: run() runs its program, plain is a run without libaccel, lines() the lines of a routine of a log."""
    program, library, prefix, suffix = request.param
    if "*" in library:
        library = sorted((BUILD / "venv").glob(f"lib/python3*/site-packages/{library}"))[0]

    def run(env):
        done = start(program, library, prefix, suffix, env=env)
        assert done.returncode == 0, (done.stdout, done.stderr[-300:])
        return done

    return Lapacke(run, run({}), lambda done, routine, **fields: lines_for(done, sym=f"{prefix}{routine}{suffix}",
                                                                           **fields))


@pytest.fixture(scope="module")
def on_gpu(lapacke):
    return lapacke.run(ON_GPU)


@pytest.fixture(scope="module")
def on_older(lapacke):
    """An older cuSOLVER has no factorisation of Hermitian matrices."""
    return lapacke.run({**ON_GPU, "ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")})


@pytest.mark.parametrize("env", [pytest.param(NO_GPU, id="no GPU"),
                                 pytest.param({**TEST_GPU, "ACCEL": "0"}, id="ACCEL=0")])
def test_the_same_without_a_gpu(lapacke, env):
    done = lapacke.run(env)
    assert done.stdout == lapacke.plain.stdout
    assert done.stderr == lapacke.plain.stderr


def infos(done):
    return [line for line in done.stdout.splitlines() if "dpotrf" in line or "dgetrf" in line]


def test_the_same_info_for_what_is_singular_indefinite_not_a_number_or_wrong(lapacke, on_gpu):
    assert infos(on_gpu) == infos(lapacke.plain)
    assert not said(on_gpu)


@pytest.mark.parametrize("routine", ["dgesv", "dsyevr", "zgesdd", "dgecon", "dsytri", "zhetrf", "zhetrs", "dsygst", "dppsv", "dpptri"])
def test_on_the_gpu(lapacke, on_gpu, routine):
    assert lapacke.lines(on_gpu, routine, ran="gpu0", why="forced")


def test_a_bad_argument_is_the_librarys_own(lapacke, on_gpu):
    assert lapacke.lines(on_gpu, "dpotrf", ran="cpu", why="bad_argument")


def test_an_older_cusolver_says_nothing(lapacke, on_older):
    assert not said(on_older)


@pytest.mark.parametrize("routine, ran, why", [("zhetrf", "cpu", "unsupported"), ("zhetrs", "cpu", "unsupported"),
                                               ("dsytri", "gpu0", "forced")])
def test_an_older_cusolver(lapacke, on_older, routine, ran, why):
    assert lapacke.lines(on_older, routine, ran=ran, why=why)
