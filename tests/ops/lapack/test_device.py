#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK on device and managed memory, mixed with host memory: as on host memory alone."""

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, start


def run(**env):
    done = start("device_lapack", env={**TEST_GPU, **LOG, **env})
    assert done.returncode == 0, done.stderr[-300:]
    assert "\n0 wrong" in done.stdout
    return done


@pytest.fixture(scope="module", params=("gpu", "auto"))
def done(request):
    return run(ACCEL_POLICY=request.param)


def test_nothing_to_say(done):
    assert not said(done)


@pytest.mark.parametrize("routine", ["dgesv_", "dgeqrf_", "dtrtri_", "dsyevd_", "dlacpy_", "dlaswp_", "dgecon_",
                                     "dpocon_", "dsytri_", "dsygst_"])
def test_runs_where_its_data_are(done, routine):
    assert lines_for(done, sym=routine, ran="gpu0", why="device_data")


@pytest.mark.parametrize("routine", ["dlacpy_", "dgecon_", "dpocon_"])
def test_what_is_in_device_memory_does_not_leave_it(done, routine):
    """Copies of a whole matrix, and the factors of a condition number."""
    assert [f for f in lines_for(done, sym=routine, ran="gpu0", why="device_data") if not float(f.get("up_mb", 0))]


@pytest.mark.parametrize("fault", ["cusolverDnXgetrf:1+=CUSOLVER_STATUS_NOT_SUPPORTED",
                                   "cusolverDnCreate:1+=CUSOLVER_STATUS_ARCH_MISMATCH",
                                   "cusolverDnXsyevd:2=CUSOLVER_STATUS_ALLOC_FAILED",
                                   "cusolverDnDlaswp:5=CUSOLVER_STATUS_ALLOC_FAILED",
                                   "cusolverDnDlaswp:14=CUSOLVER_STATUS_NOT_SUPPORTED"])
def test_where_the_gpu_does_not_take_a_call_the_original_has_it_on_copies(fault):
    assert [f for f in lines_for(run(TESTGPU_FAIL=fault), ran="cpu") if f["why"] in ("unsupported", "no_memory")]
