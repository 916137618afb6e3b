#!/usr/bin/python3 -B
"""What BLAS and LAPACK do not look at need not be there: scalars behind a NULL pointer, or on a page without access, where a
size is zero or an argument is wrong; every name of the table, every such argument, with and without a GPU. The outcome is the
one without libaccel."""

import re
from pathlib import Path

from lib.programs import BUILD, NO_GPU, PLAIN, SHIM, TEST_GPU, start
from lib.tap import Tap

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

tap = Tap()


def outcomes(library, width, env):
    done = start("unread", library, width, env=env)
    lines = (re.fullmatch(r"call (.*): (returned|SIGSEGV)", line) for line in done.stdout.splitlines())
    return done, {m[1]: m[2] for m in lines if m}


for name, (library, width) in LIBRARIES.items():
    done, plain = outcomes(library, width, PLAIN)
    tap.ok(done.returncode == 0 and len(plain) > 300, f"{name}: has calls", done.returncode, len(plain), done.stderr[-400:])
    if name == "all names":
        routines = {call.split()[0] for call in plain}
        tap.ok("SIGSEGV" not in plain.values() and {"dgemm_", "cblas_zgemm_batch", "DSYEVR", "ssyevx"} <= routines
               and len(plain) > 20000, "it reads nothing", len(plain))
    for mode, env in MODES.items():
        done, seen = outcomes(library, width, env)
        other = [call for call in plain if seen.get(call) != plain[call]]
        tap.ok(done.returncode == 0 and seen.keys() == plain.keys() and not other, f"{name}, {mode}: {len(plain)} calls end as without libaccel",
               done.returncode, len(seen), len(other), *other[:8], done.stderr[-400:])
tap.done()
