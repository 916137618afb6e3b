#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What programs count on in LAPACK's Fortran interface beside the results."""

import re

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, REFERENCE, TEST_GPU, start

LIBRARIES = {"OpenBLAS": (["lengths"], {}), "reference LAPACK": ([], REFERENCE)}
ROUTINES = ("dsyevr_", "dgesvd_", "sgeqrf_", "zheevd_", "dgecon_", "zgecon_", "sgecon_")
each_library = pytest.mark.parametrize("library", LIBRARIES)


def lengths(done):
    return re.findall("(?m)^least.*", done.stdout)


def run(library, env, lengths=True):
    arguments, own = LIBRARIES[library]
    return start("fortran_calls", *arguments * lengths, env={**own, **env})


@pytest.fixture(scope="module", params=LIBRARIES)
def plain(request):
    done = run(request.param, {})
    assert done.returncode == 0, done.stdout[-600:]
    assert len(lengths(done)) == 14 * len(LIBRARIES[request.param][0])
    done.library = request.param
    return done


@pytest.mark.parametrize("env", [pytest.param(NO_GPU, id="no GPU"),
                                 pytest.param({**TEST_GPU, "ACCEL": "0"}, id="ACCEL=0")])
def test_the_same_without_a_gpu(plain, env):
    done = run(plain.library, env)
    assert done.returncode == 0
    assert done.stdout == plain.stdout
    assert not done.stderr


def test_on_the_gpu(plain):
    """It asks for as much workspace as the library."""
    done = run(plain.library, {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"})
    assert done.returncode == 0, done.stdout[-600:]
    assert not said(done)
    assert lengths(done) == lengths(plain)
    routines = (*ROUTINES, "dgelsd_", "zgelss_") if plain.library == "OpenBLAS" else ROUTINES
    assert not [routine for routine in routines if not lines_for(done, sym=routine, ran="gpu0")]


def inside(done, **fields):
    """What is decided of a driver's inner calls."""
    return [f for f in lines_for(done, **fields) if f["sym"] in ("dgemv_", "dger_", "dtrmm_", "dgemm_")]


# A driver is one decision. If it stays on the CPU, what it calls inside is decided on its own.


@each_library
def test_nothing_is_decided_inside_a_driver_that_runs_on_the_gpu(library):
    done = run(library, {**TEST_GPU, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0"}, lengths=False)
    assert lines_for(done, sym="dgesvd_", ran="gpu0")
    assert not inside(done)


@each_library
def test_what_is_inside_a_driver_on_the_cpu_is_decided_too(library):
    done = run(library, {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_POLICY": "cpu"})
    assert lines_for(done, sym="dgesvd_", ran="cpu", why="user")
    assert inside(done, ran="cpu", why="user")
    assert all("depth" in f for f in inside(done, ran="cpu", why="user"))
