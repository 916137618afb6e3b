#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GSL's Cholesky, LU, QR, LQ, singular values and tridiagonal matrices on the test GPU: the results that GSL's manual
defines, the permutation, signs and order of eigenvalues of GSL itself, nothing changed around a matrix, and GSL's own
answer where the device has none."""

import pytest

from lib.log import lines_for, parse_log
from lib.programs import LOG, LONG, NO_GPU, TEST_GPU, start

CALLS = {"cholesky_decomp1": [("150", "gpu0", "forced"), ("100", "cpu", "unsupported")],
         "LU_decomp": [("140", "gpu0", "forced"), ("76", "cpu", "unsupported")],
         "QR_decomp": [("110", "gpu0", "forced"), ("85", "gpu0", "forced"), ("75", "gpu0", "forced")],
         "SV_decomp": [("120", "gpu0", "forced"), ("80", "gpu0", "forced")],
         "SV_decomp_mod": [("115", "gpu0", "forced")],
         "LQ_decomp": [("70", "gpu0", "forced"), ("83", "gpu0", "forced")],
         "symmtd_decomp": [("130", "gpu0", "forced"), ("77", "gpu0", "forced")],
         "hermtd_decomp": [("81", "gpu0", "forced"), ("78", "gpu0", "forced")]}
# LU that is not square or has tiny elements, QR with fewer rows than columns, LQ with more, all
# others with a stride. SV_decomp_mod calls SV_decomp, too.
STAY = {"LU_decomp": 2, "QR_decomp": 2, "SV_decomp": 2, "SV_decomp_mod": 1, "LQ_decomp": 2, "symmtd_decomp": 1,
        "hermtd_decomp": 0}
# GSL's functions alone on the GPU; after one result that is wrong, all is the CPU's.
VERIFY = {**TEST_GPU, **LOG, "ACCEL_POLICY": "auto", "ACCEL_GPU": "gsl_*", "ACCEL_VERIFY": "all",
          "ACCEL_VERIFY_ACTION": "cpu", "TESTGPU_DELAY_US": "0"}


@pytest.fixture(scope="module")
def plain():
    """What GSL itself answers."""
    done = start("gsl_calls")
    assert done.returncode == 0
    assert done.stdout.count("exact") == 24
    assert "WRONG" not in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def on_gpu():
    return start("gsl_calls", env={**TEST_GPU, **LOG})


def test_the_same_on_the_gpu(plain, on_gpu):
    assert on_gpu.stdout == plain


@pytest.mark.parametrize("name, m, ran, why", [(name, *call) for name, calls in CALLS.items() for call in calls])
def test_where_a_call_runs(name, m, ran, why, on_gpu):
    assert len(lines_for(on_gpu, sym=f"gsl_linalg_{name}", m=m, ran=ran, why=why)) == 1


@pytest.mark.parametrize("name, count", STAY.items())
def test_calls_that_stay(name, count, on_gpu):
    assert len(lines_for(on_gpu, sym=f"gsl_linalg_{name}", ran="cpu", why="unsupported")) == count


@pytest.mark.parametrize("name", ["symmtd", "hermtd"])
def test_decompositions_of_gsl_eigen_on_the_gpu(name, on_gpu):
    assert len(lines_for(on_gpu, sym=f"gsl_linalg_{name}_decomp", m="96", ran="gpu0")) == 2


def test_gsl_without_a_gpu(plain):
    done = start("gsl_calls", env={**NO_GPU, **LOG})
    assert done.stdout == plain
    assert len(lines_for(done, sym="gsl_linalg_SV_decomp", ran="cpu", why="no_gpu")) == 2


@pytest.mark.parametrize("fault, why", [("cuMemAlloc:1+", "no_memory"), ("cuMemcpyDtoHAsync:1+", "error")])
def test_gsls_own_result_if_a_call_fails(fault, why, plain):
    done = start("gsl_calls", env={**TEST_GPU, **LOG, "TESTGPU_FAIL": fault})
    assert done.stdout == plain
    assert why in {line["why"] for line in lines_for(done, sym="gsl_linalg_LU_decomp", m="140")}


def test_lu_of_large_and_small_elements_runs_there_but_for_denormal_ones():
    plain, done = start("gsl_calls", "scaled"), start("gsl_calls", "scaled", env={**TEST_GPU, **LOG})
    assert done.stdout == plain.stdout
    assert [(line["m"], line["ran"]) for line in lines_for(done, sym="gsl_linalg_LU_decomp")] == [("74", "gpu0"),
                                                                                                  ("72", "gpu0"),
                                                                                                  ("76", "cpu")]


@pytest.fixture(scope="module")
def verified(plain):
    """The lines of a run of which all results are verified."""
    done = start("gsl_calls", env=VERIFY)
    assert done.stdout == plain
    return [line for line in parse_log(done.stderr) if line["ran"] == "gpu0"]


def test_all_results_are_verified(verified):
    assert len(verified) >= 20
    assert not [line for line in verified if not 0 <= float(line["verify"]) <= 0.5]


def test_a_wrong_element_of_each_function_is_found_and_gsl_computes_anew(plain, verified):
    found = set()
    # The third kernel is that of the matrix that is not definite.
    for nth in [n for n in range(1, 54) if n != 3] if LONG else (1, *range(4, 54, 4)):
        spoilt = start("gsl_calls", env={**VERIFY, "ACCEL_VERIFY": "off", "TESTGPU_WRONG": str(nth)})
        assert spoilt.stdout != plain, nth
        done = start("gsl_calls", env={**VERIFY, "TESTGPU_WRONG": str(nth)})
        assert done.stdout == plain, nth
        assert "verification: the GPU's result is wrong" in done.stderr, nth
        found.add(lines_for(done, why="verify_failed")[0]["sym"])
    assert found == {line["sym"] for line in verified}
    assert len(found) == 8
