#!/usr/bin/python3 -B
"""Random calls of every routine of the table in every interface, integer width and type: right, and nothing else
read or touched. Sizes with 0 and 1, all flags, increments, ld > rows, NaN and Inf, NaN in what must not be read, the
same matrix twice, batches of any number of groups, callers without hidden lengths, 8 threads, tiles, and the
originals that people have. Each routine must run on the test GPU hundreds of times, with TEST_LONG=1 thousands."""

import collections
import itertools
import re
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, TEST_GPU, start
from lib.table import routine_table
from lib.tap import Tap

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
MODES = {"without libaccel": PLAIN, "no GPU": NO_GPU, "test GPU": TEST_GPU}
TABLE = list(routine_table("ROUTINE"))
ENOUGH = 2000 if LONG else 150

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
SITE = next((BUILD / "venv/lib").glob("python3*/site-packages"))
# BLIS's threads spin while they wait for each other: slow beside other work.
ONE_THREAD = {"BLIS_NUM_THREADS": "1"}
NO_BATCHES = "!(*gemm_batch)"


def system(folder):
    return {"LD_LIBRARY_PATH": str(SYSTEM / folder), **ONE_THREAD}


def wheel(package, name):
    """The OpenBLAS that NumPy's or SciPy's wheel brings. Its batches (0.3.30) crash."""
    library, = (SITE / package).glob(name)
    return ["-l", library, "-p", "scipy_", "-r", NO_BATCHES, "-f", "cy"]


Blas = collections.namedtuple("Blas", "program arguments env", defaults=([], {}))
LP64, ILP64 = "random_calls", "random_calls64"
# All routines: what the distribution's libraries lack, and behind it the linked BLAS.
LACKING = {
    "LP64": Blas(LP64, ["-l", BUILD / "tests/liblacking.so", "-f", "y"]),
    "ILP64": Blas(ILP64, ["-l", BUILD / "tests/liblacking64.so", "-f", "y"]),
}
OTHERS = {
    "linked, LP64": Blas(LP64, ["-f", "y"]),
    "linked, ILP64": Blas(ILP64, ["-f", "y"]),
    "linked reference": Blas(LP64, [], system("blas")),
    "linked BLIS": Blas(LP64, ["-f", "g"], system("blis-pthread")),
    "BLIS": Blas(LP64, ["-l", SYSTEM / "blis-pthread/libblis.so.4", "-f", "g"], ONE_THREAD),
    "SciPy's OpenBLAS": Blas(LP64, wheel("scipy.libs", "libscipy_openblas-*")),
    "NumPy's OpenBLAS, ILP64": Blas(ILP64, [*wheel("numpy.libs", "libscipy_openblas64_-*"), "-x", "64_"]),
}

tap = Tap()
on_gpu = collections.Counter()  # decisions, by routine


def routine(line):
    """The routine that a log line's sym names."""
    return re.fullmatch(r"(?:scipy_)?(?:cblas_)?(\w+?)_?(?:64_)?", line["sym"])[1]


def right(name, blas, arguments, count, env, extra={}, threads=1):
    """Runs the program; `count` calls of each routine must be right, and in the log as env asks. Returns the log."""
    done = start(blas.program, *blas.arguments, *arguments, "-c", count, threads, env={**env, **LOG, **blas.env, **extra})
    lacks = next((line.split()[1:] for line in done.stdout.splitlines() if line.startswith("lacks: ")), [])
    calls = count * threads
    said_so = re.search(r"^(\d+) calls, 0 wrong$", done.stdout, re.M)
    tap.ok(done.returncode == 0 and said_so, name, done.returncode, done.stdout, done.stderr[-800:])
    lines = lines_for(done)
    if env is PLAIN:
        return lines
    # A grouped batch has a line for each group, and perhaps no group.
    decided = collections.Counter(routine(f) for f in lines if "group" not in f)
    expected = {r: calls for r in decided if r in TABLE and not r.endswith("gemm_batch")}
    wrong = {r: decided[r] for r in expected if decided[r] != calls}
    batches = [] if NO_BATCHES in blas.arguments else [r for r in TABLE if r.endswith("gemm_batch") and r not in lacks]
    made = sum(expected.values()) + calls * len(batches)
    tap.ok(said_so and expected and int(said_so[1]) == made and not wrong and not set(decided) - set(TABLE),
           f"{name}: each call decided once", said_so, made, wrong, set(decided) - set(TABLE))
    if "ACCEL_CUDA_DIR" in env:
        ran = collections.Counter(routine(f) for f in lines if f["ran"] == "gpu0")
        on_gpu.update(ran)
        other = [f for f in lines if f["ran"] != "gpu0" and (f["ran"], f["why"]) != ("cpu", "empty")]
        tap.ok(ran and not other and not said(done), f"{name}: all on the test GPU", *other[:5], *said(done))
    else:
        other = [f for f in lines if f["ran"] != "cpu"]
        tap.ok(not other, f"{name}: nothing ran elsewhere", *other[:5])
    return lines


seed = 0
for width, blas in LACKING.items():
    for interface in INTERFACES:
        seed += 1000
        for mode, env in MODES.items():
            count = {"without libaccel": 40, "no GPU": 100, "test GPU": 600}[mode] if LONG else 20 if mode == "without libaccel" else 40
            right(f"{width} {interface}, {mode}", blas, ["-i", interface, "-s", seed], count, env,
                  {"TESTGPU_DELAY_US": "0"})
for first, (name, blas) in enumerate(OTHERS.items()):
    for interface in INTERFACES if LONG else INTERFACES[first % 4:][:1]:
        seed += 1000
        for mode, env in MODES.items():
            right(f"{name} {interface}, {mode}", blas, ["-i", interface, "-s", seed], 30 if LONG else 15, env,
                  {"TESTGPU_DELAY_US": "0"})
few = {r: on_gpu[r] for r in TABLE if on_gpu[r] < ENOUGH}
tap.ok(not few, f"every routine ran on the GPU at least {ENOUGH} times", *few.items())

for width, blas in LACKING.items():
    lines = right(f"{width}, 8 threads", blas, ["-n", 60], 20 if LONG else 5, TEST_GPU, threads=8)
    tap.ok(len({f["tid"] for f in lines}) == 8, f"{width}: 8 threads in the log")
right("8 threads, hidden behind one another", LACKING["LP64"], ["-n", 60], 4, TEST_GPU, {"TESTGPU_DELAY_US": "2000"},
      threads=8)

# Tiles: what may be used holds a part of the operands; the device is smaller than they are.
SMALL = {"ACCEL_MEMORY": {"ACCEL_MEMORY": "400K"}, "a small device": {"TESTGPU_MEMORY": "5M"}}
TILED = itertools.product(SMALL, ("fortran", "cblas-row"), ("OpenBLAS", "BLIS"))
for name, interface, source in TILED if LONG else (("ACCEL_MEMORY", "fortran", "OpenBLAS"), ("a small device", "cblas-row", "BLIS")):
    blas = OTHERS["BLIS"] if source == "BLIS" else LACKING["LP64"]
    right(f"tiles, {name}, {interface}, {source}", blas, ["-i", interface, "-n", 200], 8 if LONG else 3, TEST_GPU, SMALL[name])

# A cuBLAS without the 64-bit functions; a device that does everything at once, and one that is
# slow.
for name, extra in {"CUDA 12, 32-bit functions alone": {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")},
                    "no delays": {"TESTGPU_DELAY_US": "0"}, "long delays": {"TESTGPU_DELAY_US": "2000"}}.items():
    right(name, LACKING["LP64"], ["-n", 40], 5, TEST_GPU, extra)

# A planted fault must be seen: the check itself is checked.
done = start(LP64, "-c", 10, env={**TEST_GPU, "TESTGPU_WRONG": "3"})
tap.ok(done.returncode == 1 and ", 1 wrong" in done.stdout, "one wrong element is noticed", done.stdout, done.stderr)
tap.done()
