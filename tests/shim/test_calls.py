#!/usr/bin/python3 -B
"""Random calls of all of Level 3 in every interface, integer width and type: right, and nothing else read or
touched. Sizes with 0 and 1, all flags, ld > rows, NaN in what must not be read, callers without hidden lengths,
8 threads, tiles, other originals. What shim/routines.def has must run on the test GPU."""

import re

from common import BUILD, LOG, NO_GPU, PLAIN, ROOT, TEST_GPU, Tap, lines_for, said, start

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
PROGRAMS = {"LP64": "random_calls", "ILP64": "random_calls64"}
MODES = {"without libaccel": PLAIN, "no GPU": NO_GPU, "test GPU": TEST_GPU}
ALL = 30  # routines the program knows
TABLE = set(re.findall(r"(?m)^ROUTINE\((\w+),", (ROOT / "shim/routines.def").read_text()))

tap = Tap()


def routine(line):
    """The routine that a log line's sym names."""
    return re.fullmatch(r"(?:cblas_)?(\w+?)_?", line["sym"]).group(1)


def right(name, program, arguments, env, calls):
    """Runs the program; `calls` of each routine must be right, and in the log as env asks. Returns the log."""
    done = start(program, *arguments, env={**env, **LOG})
    said_so = f"{ALL * calls} calls, 0 wrong"
    tap.ok(done.returncode == 0 and done.stdout.strip() == said_so, name, done.stdout, done.stderr[-800:])
    lines = lines_for(done)
    if env is PLAIN:
        return lines
    count = {r: sum(routine(f) == r for f in lines) for r in TABLE}
    tap.ok(len(lines) == len(TABLE) * calls and set(count.values()) == {calls}, f"{name}: each call decided once",
           *(f"{r}: {n}, not {calls}" for r, n in count.items() if n != calls))
    if "ACCEL_CUDA_DIR" in env:
        missing = TABLE - {routine(f) for f in lines if f["ran"] == "gpu0"}
        other = [f for f in lines if f["ran"] != "gpu0" and (f["ran"], f["why"]) != ("cpu", "empty")]
        tap.ok(not missing and not other and not said(done), f"{name}: every routine on the test GPU",
               *sorted(missing), *other[:5], *said(done))
    else:
        other = [f for f in lines if f["ran"] != "cpu"]
        tap.ok(not other, f"{name}: nothing ran elsewhere", *other[:5])
    return lines


seed = 0
for width, program in PROGRAMS.items():
    for interface in INTERFACES:
        seed += 1000
        for mode, env in MODES.items():
            count = 40 if mode == "without libaccel" else 100
            right(f"{width} {interface}, {mode}", program, ["-i", interface, "-c", count, "-s", seed], env, count)

for width, program in PROGRAMS.items():
    lines = right(f"{width}, 8 threads", program, ["-c", 20, "-n", 60, 8], TEST_GPU, 8 * 20)
    tap.ok(len({f["tid"] for f in lines}) == 8, f"{width}: 8 threads in the log")
right("8 threads, hidden behind one another", "random_calls", ["-c", 4, "-n", 60, 8],
      {**TEST_GPU, "TESTGPU_DELAY_US": "2000"}, 8 * 4)

# Other libraries as the original; a CBLAS that calls the Fortran name is decided once.
for library, folder in {"reference": "blas", "BLIS": "blis-pthread", "OpenBLAS": "openblas-pthread"}.items():
    # BLIS's threads spin while they wait for each other: slow beside other work.
    path = {"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/{folder}", "BLIS_NUM_THREADS": "1"}
    for interface in ("fortran", "cblas-column", "cblas-row"):
        for mode, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
            right(f"{library}, {interface}, {mode}", "random_calls", ["-i", interface, "-c", 20], {**env, **path}, 20)

# Tiles: what may be used holds a part of the operands; the device is smaller than they are.
for name, extra in {"ACCEL_MEMORY": {"ACCEL_MEMORY": "400K"}, "a small device": {"TESTGPU_MEMORY": "5M"}}.items():
    for interface in ("fortran", "cblas-row"):
        right(f"tiles, {name}, {interface}", "random_calls", ["-i", interface, "-c", 8, "-n", 200],
              {**TEST_GPU, **extra}, 8)

# A cuBLAS without the 64-bit functions; a device that does everything at once, and one that is slow.
for name, extra in {"CUDA 12, 32-bit functions alone": {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")},
                    "no delays": {"TESTGPU_DELAY_US": "0"}, "long delays": {"TESTGPU_DELAY_US": "2000"}}.items():
    right(name, "random_calls", ["-c", 5], {**TEST_GPU, **extra}, 5)

# A planted fault must be seen: the check itself is checked.
done = start("random_calls", "-c", 10, env={**TEST_GPU, "TESTGPU_WRONG": "3"})
tap.ok(done.returncode == 1 and ", 1 wrong" in done.stdout, "one wrong element is noticed", done.stdout, done.stderr)
tap.done()
