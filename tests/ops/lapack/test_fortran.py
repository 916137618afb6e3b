#!/usr/bin/python3 -B
"""What programs count on in LAPACK's Fortran interface beside the results."""

import re

from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
LIBRARIES = {"OpenBLAS": (["lengths"], {}), "reference LAPACK": ([], {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/lapack:/usr/lib/x86_64-linux-gnu/blas"})}


def lengths(text):
    return re.findall("(?m)^least.*", text)


for name, (arguments, library) in LIBRARIES.items():
    plain = start("fortran_calls", *arguments, env=library)
    tap.ok(plain.returncode == 0 and len(lengths(plain.stdout)) == 14 * len(arguments), f"{name}: right without libaccel", plain.stdout[-600:])
    for kind, env in ("no GPU", NO_GPU), ("ACCEL=0", {**TEST_GPU, "ACCEL": "0"}):
        done = start("fortran_calls", *arguments, env={**library, **env})
        tap.ok(done.returncode == 0 and done.stdout == plain.stdout and not done.stderr, f"{name}, {kind}: the same",
               done.stdout[-600:], done.stderr[-300:])
    done = start("fortran_calls", *arguments, env={**library, **TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"})
    tap.ok(done.returncode == 0 and not said(done), f"{name}, test GPU: right", done.returncode, done.stdout[-600:], *said(done))
    tap.ok(lengths(done.stdout) == lengths(plain.stdout), f"{name}, test GPU: it asks for as much workspace as the library",
           *lengths(plain.stdout), *lengths(done.stdout))
    for routine in "dsyevr_", "dgesvd_", "sgeqrf_", "zheevd_", "dgecon_", "zgecon_", "sgecon_", *(["dgelsd_", "zgelss_"] if arguments else []):
        tap.ok(lines_for(done, sym=routine, ran="gpu0"), f"{name}, test GPU: {routine} runs there")
    # A driver is one decision. If it stays on the CPU, what it calls inside is decided on its own.
    done = start("fortran_calls", env={**library, **TEST_GPU, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0"})
    inside = [f for f in lines_for(done) if f["sym"] in ("dgemv_", "dger_", "dtrmm_", "dgemm_")]
    tap.ok(lines_for(done, sym="dgesvd_", ran="gpu0") and not inside, f"{name}, test GPU: nothing is decided inside a driver that runs there", *inside[:3])
    done = start("fortran_calls", *arguments, env={**library, **TEST_GPU, "ACCEL_LOG": "2", "ACCEL_POLICY": "cpu"})
    inside = [f for f in lines_for(done, ran="cpu", why="user") if f["sym"] in ("dgemv_", "dger_", "dtrmm_", "dgemm_")]
    tap.ok(lines_for(done, sym="dgesvd_", ran="cpu", why="user") and inside and all("depth" in f for f in inside), f"{name}, ACCEL_POLICY=cpu: what is inside a driver is decided, too")
tap.done()
