#!/usr/bin/python3 -B
"""WORK(1) after a call on the GPU is what the program's own LAPACK answers to a workspace query. That is asked after the call, and nobody sees it: no decision of it or of what the
library calls meanwhile, no flag of the program's; and where the library has no answer, the program's own length stands. test_random_lapack.py compares
all routines. See exit_lengths.c."""

import re

from lib.log import lines_for, said
from lib.programs import NO_GPU, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
LIBRARY = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS / 'liblengths.so'}"}
GPU = {**TEST_GPU, **LIBRARY, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0"}


def inversions(done):
    return [tuple(map(int, numbers)) for numbers in re.findall(r"lwork=(\d+) info=(-?\d+) work=(-?\d+) flags=(\d+) asked=(\d+)", done.stdout)]


for how, left in ("blocks", (4800, 4800)), ("unknown", (300, 5103)), ("nonsense", (300, 5103)):
    done = start("exit_lengths", env={**GPU, "AT_LENGTHS": how})
    tap.ok(inversions(done) == [(300, 0, left[0], 0, 1), (5103, 0, left[1], 0, 1)], f"{how}: WORK(1), INFO, and no flag, of one question a call", done.stdout, done.stderr[-500:])
    tap.ok(len(lines_for(done, sym="dgetri_", ran="gpu0")) == 2 and not said(done), f"{how}: the calls ran on the GPU", *said(done))
    other = {f["sym"] for f in lines_for(done)} - {"dgetrf_", "dgetri_"}
    tap.ok(not other and not lines_for(done, why="workspace_query"), f"{how}: no decision of the question, nor of its own calls", *other)
for name, env in ("no GPU", {**NO_GPU, **LIBRARY}), ("ACCEL=0", {**GPU, "ACCEL": "0"}):
    done = start("exit_lengths", env={**env, "AT_LENGTHS": "blocks"})
    tap.ok([asked for *_, asked in inversions(done)] == [0, 0], f"{name}: the library is asked nothing", done.stdout)
tap.done()
