#!/usr/bin/python3 -B
"""Random calls of Level 3 and of batches on two, three and five test GPUs, which share each of them that can be divided: right, nothing else read
or touched, in all interfaces and types, in tiles, from several threads."""

import collections
import re
import tempfile

from lib.log import complaints, lines_for, said
from lib.programs import LONG, TESTS, start
from lib.split import behind_slow_links, several
from lib.table import routine_table
from lib.tap import Tap

ROUTINES = "[sdczb]*@(gemm|gemmt|gemmtr|gemm3m|symm|hemm|syrk|herk|syr2k|her2k|trmm|trsm|gemm_batch|gemm_batch_strided)"
DIVIDED = [name for name in routine_table("ROUTINE") if re.fullmatch(r"[sdczb]+(gemm|gemmtr?|gemm3m|symm|hemm|syrk|herk|syr2k|her2k|trmm|trsm|gemm_batch(_strided)?)", name)]
tap = Tap()
shared = collections.Counter()  # calls of several devices, by routine


def routine(line):
    return re.fullmatch(r"(?:cblas_)?(\w+?)_?(?:64_)?", line["sym"])[1]


def right(name, devices, arguments, count, threads=1, program="random_calls", lacking="liblacking.so", **extra):
    done = start(program, "-l", TESTS / lacking, "-f", "y", "-r", ROUTINES, *arguments, "-c", count, threads,
                 env=several(devices, TESTGPU_REPORT="/dev/stderr", **extra), timeout=600)
    tap.ok(done.returncode == 0 and re.search(r"^\d+ calls, 0 wrong$", done.stdout, re.M) and not said(done), name, done.returncode, done.stdout[-600:],
           *said(done))
    tap.ok("testgpu faults n=0" in done.stderr, f"{name}: no misuse of CUDA", *[line for line in done.stderr.splitlines() if "testgpu fault" in line][:5])
    ran = collections.Counter(line["ran"] for line in lines_for(done) if line["why"] != "empty")
    names = {"gpu0"} | {"+".join(f"gpu{i}" for i in range(devices) if i in some) for some in subsets(devices)}
    tap.ok(set(ran) <= names, f"{name}: all on devices, none for two parts", ran)
    shared.update(routine(line) for line in lines_for(done) if "+" in line["ran"])


def subsets(devices):
    return [[i for i in range(devices) if number >> i & 1] for number in range(1, 1 << devices)]


count = 60 if LONG else 20
for seed, (interface, devices) in enumerate({"fortran": 2, "cblas-row": 3, "cblas-column": 5, "no-lengths": 3}.items()):
    right(f"{interface}, {devices} devices", devices, ["-i", interface, "-s", 100 + seed], count)
right("ILP64", 3, ["-i", "fortran", "-s", 200], count, program="random_calls64", lacking="liblacking64.so")
right("larger", 3, ["-i", "fortran", "-n", 110, "-s", 300], 20 if LONG else 2)
right("tiles", 3, ["-i", "cblas-row", "-n", 110, "-s", 400], 20 if LONG else 2, ACCEL_MEMORY="200K")
right("late and in any order", 3, ["-n", 60, "-s", 500], 20 if LONG else 3, TESTGPU_DELAY_US="500")
right("8 threads", 2, ["-n", 60, "-s", 600], 10 if LONG else 2, threads=8)
# ---- Triangles in grids: links so slow that parts which need few lines are faster ----

with tempfile.TemporaryDirectory() as folder:
    grid = behind_slow_links(8, folder)
    grid = {key: grid[key] for key in ("ACCEL_MODEL", "TESTGPU_ATTRIBUTES")}
    for devices, size, extra in ((3, 60, {}), (4, 60, {}), (5, 60, {}), (8, 60, {}), (13, 60, {}), (6, 120, {"ACCEL_MEMORY": "100K"}), (3, 120, {"ACCEL_MEMORY": "100K"})):
        TRIANGLES = "[sdcz]@(gemmt|gemmtr|syrk|herk|syr2k|her2k)"
        done = start("random_calls", "-l", TESTS / "liblacking.so", "-f", "y", "-r", TRIANGLES, "-n", size, "-s", 700 + devices, "-c", 20 if LONG else 4, 1,
                     env=several(devices, TESTGPU_REPORT="/dev/stderr", **{**grid, **extra}), timeout=600)
        parts = collections.Counter(line["ran"].count("+") + 1 for line in lines_for(done))
        tap.ok(done.returncode == 0 and re.search(r"^\d+ calls, 0 wrong$", done.stdout, re.M) and "testgpu faults n=0" in done.stderr and not complaints(done),
               f"triangles on {devices} devices behind slow links {extra}", done.returncode, done.stdout[-600:], *said(done))
        tap.ok(parts.total() - parts[1] >= 35, "most are shared", parts)

few = {name: shared[name] for name in DIVIDED if shared[name] < 8}
tap.ok(len(DIVIDED) == 49 and not few, "calls of each routine were shared", few, len(DIVIDED))
tap.done()
