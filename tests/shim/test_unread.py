#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What BLAS and LAPACK do not look at need not be there: scalars behind a NULL pointer, or on a page without access,
where a size is zero or an argument is wrong; every name of the table, every such argument, with and without a GPU.
The outcome is the one without libaccel."""

import re
from pathlib import Path

import pytest

from lib.programs import BUILD, NO_GPU, PLAIN, SHIM, TEST_GPU, start

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
# The first has every name, and reads nothing at all.
LIBRARIES = {
    "all names": (BUILD / "tests/libentry_provider.so", 32),
    "OpenBLAS's LAPACK": (SYSTEM / "openblas-pthread/liblapack.so.3", 32),
    "OpenBLAS": (SYSTEM / "openblas-pthread/libblas.so.3", 32),
    "OpenBLAS, ILP64": (SYSTEM / "openblas64-pthread/libblas64.so.3", 64),
    "reference BLAS": (SYSTEM / "blas/libblas.so.3", 32),
    "reference LAPACK": (SYSTEM / "lapack/liblapack.so.3", 32),
    "what others lack": (BUILD / "tests/liblacking.so", 32),
}
LOGGED = {"ACCEL_LOG": "1", "ACCEL_LOG_FILE": "/dev/null"}
MODES = {
    "no log": NO_GPU,
    "no GPU": {**NO_GPU, **LOGGED},
    "policy cpu": {**SHIM, **LOGGED, "ACCEL_POLICY": "cpu"},
    "policy gpu": {**TEST_GPU, **LOGGED},
}


def outcomes(library, width, env):
    """{call: its outcome}. With one thread: a SIGSEGV within OpenBLAS's batches (0.3.29) leaves a lock of its threads
    taken."""
    done = start("unread", library, width, env={**env, "OPENBLAS_NUM_THREADS": "1"})
    lines = (re.fullmatch(r"call (.*): (returned|SIGSEGV)", line) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stderr[-400:]
    return {m[1]: m[2] for m in lines if m}


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    """A library, its width, and the outcomes without libaccel."""
    path, width = LIBRARIES[request.param]
    plain = outcomes(path, width, PLAIN)
    assert len(plain) > 300
    if request.param == "all names":
        assert len(plain) > 20000
        assert "SIGSEGV" not in plain.values()
        assert {"dgemm_", "cblas_zgemm_batch", "DSYEVR", "ssyevx"} <= {call.split()[0] for call in plain}
    return path, width, plain


@pytest.mark.parametrize("mode", MODES)
def test_calls_end_as_without_libaccel(library, mode):
    path, width, plain = library
    seen = outcomes(path, width, MODES[mode])
    assert seen.keys() == plain.keys()
    assert not [call for call in plain if seen[call] != plain[call]]
