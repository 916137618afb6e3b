#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Matrices that the GPU gives back to LAPACK: indefinite and singular ones. One that shows it on its diagonal does not
go up at all. A place whose matrices are given back twice in a row stays on the CPU until calls succeed there, and gets
the GPU again then; other places, forced calls and programs whose decisions must not depend on their past are as before.
INFO is always LAPACK's. See negative_cache.c."""

import pytest

from lib.calibrated import AUTO, gpu_lines, keys, lines, put
from lib.log import lines_for, outcomes, said
from lib.programs import LOG, SHIM, TESTS, start

GPU, BACK, HELD = ("gpu0", "faster"), ("cpu", "unsupported"), ("cpu", "slower")


def ups(calls):
    """How many of these calls have copied their matrix to the GPU."""
    return sum(float(f.get("up_mb", 0)) > 0 for f in calls)


@pytest.fixture(scope="module")
def factored(tmp_path_factory):
    """Factors matrices by these letters, of which INFO is LAPACK's: see negative_cache.c."""
    folder = tmp_path_factory.mktemp("calibration")
    known = keys(folder)
    # A CPU that is known to be slow, and is: what it has learned of its own calls changes nothing.
    # liblate.so stands in front of LAPACK: its calls have the times of the library behind it.
    put(folder / "model", {known["lapack"]: lines(1e6), known["blas"]: lines(1e6), known["gpu"]: gpu_lines(0.01)})
    env = {**AUTO, **LOG, "ACCEL_MODEL": str(folder / "model"), "TESTGPU_DELAY_US": "0",
           "LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS / 'liblate.so'}"}

    def run(letters, sym="dpotrf_", **more):
        done = start("negative_cache", letters, env={**env, **more})
        assert done.returncode == 0
        assert "0 wrong" in done.stdout
        assert not said(done)
        calls = lines_for(done, sym=sym)
        return calls, outcomes(calls)

    return run


# The GPU is ready and the routine's kernels are loaded once the first call, from another place (W),
# is done.


def test_of_20_indefinite_matrices_two_have_gone_up(factored):
    calls, seen = factored("W" + 20 * "i")
    assert seen[1:] == 2 * [BACK] + 18 * [HELD]
    assert ups(calls[1:]) == 2


@pytest.mark.parametrize("letters, expected", [
    pytest.param(20 * "i" + 6 * "d", 2 * [BACK] + 18 * [HELD] + 2 * [HELD] + 4 * [GPU],
                 id="after two definite ones on the CPU, the GPU has them"),
    pytest.param("ii" + "ddi" + "dddi" + 4 * "d" + "d",
                 2 * [BACK] + 2 * [HELD] + [BACK] + 3 * [HELD] + [HELD] + 4 * [HELD] + [GPU],
                 id="each time that it is tried in vain, twice as many must succeed in a row on the CPU first"),
    pytest.param(6 * "di", 6 * [GPU, BACK], id="a place that has one success in between goes on"),
    pytest.param(3 * "n" + 3 * "d", 3 * [BACK] + 3 * [GPU],
                 id="a negative number on the diagonal does not count, because it costs nothing"),
    # As SciPy's solve: by Cholesky, and by LU where that fails.
    pytest.param(8 * "s", 2 * [BACK] + 6 * [HELD], id="Cholesky, else LU: Cholesky stops going up")])
def test_a_place(letters, expected, factored):
    assert factored("W" + letters)[1][1:] == expected


def test_another_place_is_not_concerned(factored):
    assert factored("W" + 6 * "i" + "W")[1][-2:] == [HELD, GPU]


def test_a_negative_number_on_the_diagonal_is_seen_before_anything_goes_up(factored):
    calls, seen = factored("W" + 5 * "n")
    assert seen[1:] == 5 * [BACK]
    assert ups(calls[1:]) == 0


def test_the_lu_behind_cholesky_runs_on_the_gpu(factored):
    seen = factored("W" + 8 * "s", sym="dgesv_")[1]
    assert len(seen) == 8
    assert set(seen[1:]) == {GPU}


def test_a_place_of_singular_matrices_is_left_to_the_cpu_too(factored):
    """By LU."""
    calls, seen = factored("W" + 6 * "0", sym="dgesv_")
    assert seen[-4:] == 4 * [HELD]
    assert ups(calls) <= 3


def test_policy_gpu_each_goes_up(factored):
    calls, seen = factored("W" + 6 * "i", ACCEL_POLICY="gpu")
    assert seen[1:] == 6 * [BACK]
    assert ups(calls[1:]) == 6


def test_require_gpu_each_goes_up_and_none_ends_the_program(factored):
    seen = factored("W" + 6 * "i" + "nd", ACCEL_REQUIRE="gpu")[1]
    assert seen[1:-2] == 6 * [BACK]
    assert seen[-1][0] == "gpu0"


def test_start_wait_a_decision_does_not_depend_on_what_was_before(factored):
    assert factored("W" + 6 * "i" + "d", ACCEL_START="wait")[1][-7:] == 6 * [BACK] + [GPU]
