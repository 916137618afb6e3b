#!/usr/bin/python3 -B
"""A short form of tests/ops/test_calls.py, for machines on which its libraries from PyPI are not to be had: random calls of every routine
in every interface and integer width, with Debian's OpenBLAS. Right, each decided once, all on the test GPU where there is one. And the
floating-point state of a thread stays its own."""

import re

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, TEST_GPU, start
from lib.table import routine_table
from lib.tap import Tap

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
PROGRAMS = {"LP64": ("random_calls", "liblacking.so"), "ILP64": ("random_calls64", "liblacking64.so")}
MODES = {"no GPU": (NO_GPU, "cpu"), "test GPU": (TEST_GPU, "gpu0")}
TABLE = set(routine_table("ROUTINE"))
COUNT = 1
# OpenBLAS makes these for x86-64 alone.
LACKED = {"cgemm3m", "zgemm3m"}

tap = Tap()
seed = 0
ran_on_gpu = set()
for width, (program, library) in PROGRAMS.items():
    for interface in INTERFACES:
        seed += 1000
        for mode, (env, place) in MODES.items():
            done = start(program, "-l", BUILD / "tests" / library, "-f", "y", "-i", interface, "-s", seed, "-c", COUNT, 1,
                         env={**env, **LOG, "TESTGPU_DELAY_US": "0"}, timeout=600)
            lines = lines_for(done)
            name = f"{width} {interface}, {mode}"
            tap.ok(done.returncode == 0 and re.search(r"^\d+ calls, 0 wrong$", done.stdout, re.M), name, done.returncode, done.stdout, done.stderr[-800:])
            other = [line for line in lines if line["ran"] != place and (line["ran"], line["why"]) != ("cpu", "empty")]
            tap.ok(lines and not other and not said(done), f"{name}: ran={place}", *other[:5], *said(done))
            ran_on_gpu |= {re.fullmatch(r"(?:cblas_)?(\w+?)_?(?:64_)?", line["sym"])[1] for line in lines if line["ran"] == "gpu0"}
tap.ok(TABLE - LACKED <= ran_on_gpu, "every routine that OpenBLAS has ran on the test GPU", *sorted(TABLE - ran_on_gpu))

for place, (env, ran) in {"gpu": MODES["test GPU"], "cpu": MODES["no GPU"]}.items():
    done = start("fp_state", place, env={**env, **LOG})
    tap.ok(done.returncode == 0 and {line["ran"] for line in lines_for(done)} == {ran}, f"floating-point state, on the {place}: the program's own",
           done.stdout, done.stderr)

ONE = {"OPENBLAS_NUM_THREADS": "1"}
plain, done = start("fp_modes", env=ONE), start("fp_modes", env={**MODES["test GPU"][0], **LOG, **ONE})
directed = {(line["ran"], line["why"]) for line in lines_for(done) if "arithmetic" in line}
tap.ok(plain.returncode == 0 and done.stdout == plain.stdout and directed == {("cpu", "unsupported")}, "under directed rounding, calls are the CPU's",
       plain.stdout, done.stdout, done.stderr[:800])

# The check itself is checked.
done = start("random_calls", "-c", 2, env={**TEST_GPU, "TESTGPU_WRONG": "3"}, timeout=600)
tap.ok(done.returncode == 1 and ", 1 wrong" in done.stdout, "one wrong element is noticed", done.stdout, done.stderr)
tap.done()
