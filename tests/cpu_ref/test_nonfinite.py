#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""NaN and infinities beside zeros, and diagonals whose inverse is no number (docs/limits.md): one element may be
another by the reference BLAS than by OpenBLAS and on the test GPU; all that it has no part in is exact, nothing else is
written, and ACCEL_VERIFY judges that."""

import re
from collections import namedtuple

import pytest

from lib.log import parse_log, said
from lib.programs import LONG, REFERENCE, TEST_GPU, leave_out, start

OPENBLAS = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-pthread"}
GPU = {**TEST_GPU, **REFERENCE, "TESTGPU_DELAY_US": "0", "ACCEL_LOG": "1"}
VERIFIED = {**GPU, "ACCEL_VERIFY": "all"}
LIBRARIES = {"reference BLAS": REFERENCE, "OpenBLAS": OPENBLAS, "test GPU": GPU, "test GPU, verified": VERIFIED}

SKIPPED = {"trsm x=0", "trsm A=0", "trmm B=0", "trmm A=0", "trsv x=0", "trmv x=0", "ger y=0", "syr2 x=y=0", "syrk A=0",
           "syr2k A=B=0"}
MULTIPLIED = {"gemm B=0", "symm B=0", "gemv x=0", "symv x=0"}
NOT_READ = {"gemm beta=0", "gemm alpha=0", "gemv beta=0", "trsm alpha=0", "trsm, the other triangle"}
DIAGONALS = {"trsm 1e-300 / 1e-310": ("number", "inf"), "trsm 0 / 1e-310": ("number", "nan"),
             "trsm 1 / 0": ("inf", "inf"), "trsm 0 / 0": ("number", "nan")}

# OpenBLAS's kernels for small matrices on CPUs with AVX-512 read A and B with alpha = 0.
OWN_FAULTS = {"OpenBLAS": {"gemm alpha=0"}}

Library = namedtuple("Library", "name done")


def elements(done):
    """What each call's element is, by the call and by what is no number there."""
    return {(name, bad): kind for name, bad,
            kind in re.findall(r"(?m)^(.*), (nan|inf|number): (nan|inf|number), the rest", done.stdout)}


def expected(name):
    """The same, as the reference BLAS has it, or all that a library may have."""
    of = {}
    for bad in ("nan", "inf"):
        of.update({(call, bad): ("number", "nan") for call in SKIPPED})
        of.update({(call, bad): ("nan",) for call in MULTIPLIED})
        of.update({(call, bad): ("number", "nan") if call in OWN_FAULTS.get(name, ()) else ("number",)
                   for call in NOT_READ})
    of.update({(call, "number"): kinds for call, kinds in DIAGONALS.items()})
    return {key: kinds[:1] for key, kinds in of.items()} if name == "reference BLAS" else of


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    return Library(request.param, start("nonfinite", env=LIBRARIES[request.param]))


def test_all_the_rest_is_exact_and_nothing_else_written(library):
    assert library.done.returncode == 0
    assert len(library.done.stdout.splitlines()) == 44
    wrong = {line.partition(",")[0] for line in library.done.stdout.splitlines() if "WRONG" in line}
    for call in wrong & OWN_FAULTS.get(library.name, set()):
        leave_out(f"{call}: {library.name} reads what it must not")
    assert not wrong - OWN_FAULTS.get(library.name, set())
    assert "MORE" not in library.done.stdout


def test_with_beta_0_the_old_result_is_not_read_and_the_other_triangle_stays(library):
    assert re.findall("(?m)^syrk beta=0.*",
                      library.done.stdout) == [f"syrk beta=0, {bad}: number, the other triangle {bad}"
                                               for bad in ("nan", "inf")]


def test_zeros_are_skipped_at_most_where_libraries_differ(library):
    """By the reference BLAS, all there."""
    seen, known = elements(library.done), expected(library.name)
    assert seen.keys() == known.keys()
    assert not {key: kind for key, kind in seen.items() if kind not in known[key]}


@pytest.mark.parametrize("env", [pytest.param(env, id=name) for name, env in LIBRARIES.items() if "GPU" in name])
def test_they_ran_there(env):
    ran = [line for line in parse_log(start("nonfinite", env=env).stderr) if line["why"] != "empty"]
    assert len(ran) == 40
    assert {line["ran"] for line in ran} == {"gpu0"}


def test_verification_calls_none_of_them_wrong():
    done = start("nonfinite", env=VERIFIED)
    lines = [line for line in parse_log(done.stderr) if "verify" in line]
    judged = [float(line["verify"]) for line in lines if line["verify"] != "unknown"]
    assert len(lines) == 40
    assert len(judged) >= 8
    assert max(judged) <= 1
    assert not said(done)


def test_planted_elements_among_the_rest_are_all_found_and_computed_anew():
    """A wrong element where no NaN can be."""
    found = 0
    for nth in range(1, 37, 1 if LONG else 5):
        plain = start("nonfinite", env={**GPU, "TESTGPU_WRONG": str(nth)})
        done = start("nonfinite", env={**VERIFIED, "TESTGPU_WRONG": str(nth), "ACCEL_VERIFY_ACTION": "cpu"})
        assert "WRONG" not in done.stdout, nth
        if "WRONG" in plain.stdout:
            assert [line for line in parse_log(done.stderr) if line["why"] == "verify_failed" and "verify" in line], nth
            found += 1
    assert found > (30 if LONG else 5)
