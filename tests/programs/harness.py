"""Runs an unmodified program without libaccel, with it and no GPU, and with the test GPU, and compares.

A program writes each result to a file of raw numbers in the folder it is given and prints a line
    result NAME TYPE SCALE MD5
The bound on a difference is 16 * eps(TYPE) * SCALE, the threshold of the reference BLAS tests: SCALE is
k|alpha||A||B| + |beta||C| for a product; for anything longer the program derives it in a comment. SCALE 0
asks for equality. Output is TAP.
"""

import array
import re
from collections import namedtuple
from pathlib import Path

from lib.log import FAILURES, parse_moves
from lib.programs import NO_GPU, SHIM, TEST_GPU, run
from lib.regress import record
from lib.tap import Tap

WORK = Path(__file__).resolve().parent / "work"
THRESHOLD = 16
TYPES = {  # array code, eps
    "float32": ("f", 2.0**-23),
    "float64": ("d", 2.0**-52),
    "complex64": ("f", 2.0**-23),
    "complex128": ("d", 2.0**-52),
    "int64": ("q", 0.0),
}

# A product the log must show: times=None is "at least once". sym is a regular expression.
Product = namedtuple("Product", "sym m n k times", defaults=(1,))


def results(stdout):
    """name -> (type, scale) of the result lines."""
    found = {}
    for line in stdout.splitlines():
        word = line.split()
        if word[:1] == ["result"]:
            found[word[1]] = (word[2], float(word[3]))
    return found


def without_digests(stdout):
    """stdout less the two fields of a result line that depend on the numbers."""
    return re.sub(r"(?m)^(result \S+ \S+) .*$", r"\1", stdout)


def difference(first, second, kind):
    """Largest absolute difference; infinite where the sizes or the NaNs differ."""
    a, b = array.array(TYPES[kind][0], first), array.array(TYPES[kind][0], second)
    if len(a) != len(b) or not a:
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        if x == y or (x != x and y != y):
            continue
        d = abs(x - y)
        if not d <= worst:
            worst = d if d == d else float("inf")
    return worst


def compare(reference, other):
    """[(name, difference in units of eps * scale, bound met)] for every result."""
    rows = []
    for name, (kind, scale) in results(reference.stdout).items():
        d = difference(reference.files.get(name, b""), other.files.get(name, b""), kind)
        unit = TYPES[kind][1] * scale
        rows.append((name, d / unit if unit else d, d <= THRESHOLD * unit))
    return rows


def same_bytes(tap, name, first, second):
    tap.ok(second.rc == first.rc, f"{name}: same exit status", f"{second.rc}, not {first.rc}", second.stderr)
    tap.ok(second.stdout == first.stdout, f"{name}: same stdout", first.stdout, "---", second.stdout)
    differ = [f for f in first.files.keys() | second.files.keys() if first.files.get(f) != second.files.get(f)]
    tap.ok(not differ, f"{name}: same bytes in every result", *differ)


def decisions(tap, name, text, ran, why, products):
    """Checks that text holds the expected decision lines."""
    try:
        lines = parse_moves(text)
    except ValueError as error:
        lines = []
        tap.ok(False, f"{name}: well-formed lines", error)
    seen = sorted({" ".join(f"{k}={v}" for k, v in f.items() if k in "sym m n k ran why".split()) for f in lines})
    for p in products:
        size = {"m": str(p.m), "n": str(p.n), "k": str(p.k)}
        hits = [f for f in lines if re.fullmatch(p.sym, f["sym"]) and size.items() <= f.items()]
        right = [f for f in hits if (f["ran"], f["why"]) == (ran, why)]
        enough = len(right) == p.times if p.times else bool(right)
        label = f"{name}: {p.sym} {p.m} x {p.n} x {p.k} ran={ran} why={why}"
        tap.ok(enough and len(hits) == len(right), label, f"{len(right)} of {len(hits)} such lines; log:", *seen)
    return lines


def check(tap, name, argv, products):
    """All runs of one program."""
    failed = tap.failed
    plain = run(argv, {})
    if not tap.ok(plain.rc == 0 and results(plain.stdout), f"{name}: runs", plain.stderr, plain.stdout):
        return
    one = run(argv, {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
    floor = {row[0]: row[1] for row in compare(plain, one)}

    for label, env in (("no GPU", NO_GPU), ("ACCEL=0", {**SHIM, "ACCEL": "0"})):
        silent = run(argv, {**env, "ACCEL_LOG": "0"})
        same_bytes(tap, f"{name}, {label}", plain, silent)
        tap.ok(silent.stderr == plain.stderr, f"{name}, {label}: same stderr", silent.stderr)

    logged = run(argv, {**NO_GPU, "ACCEL_LOG": "1"})
    same_bytes(tap, f"{name}, no GPU, logged", plain, logged)
    lines = decisions(tap, f"{name}, no GPU", logged.stderr, "cpu", "no_gpu", products)
    tap.ok(lines and all(f["ran"] == "cpu" for f in lines), f"{name}, no GPU: nothing ran elsewhere")
    spread = max(floor.values(), default=0.0)
    record(tap, name, "no GPU", failed, lines, len(plain.files), 0.0, spread, 0)

    failed = tap.failed
    gpu = run(argv, {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"})
    tap.ok(gpu.rc == 0, f"{name}, test GPU: runs", gpu.rc, gpu.stderr)
    same = without_digests(gpu.stdout) == without_digests(plain.stdout)
    tap.ok(same, f"{name}, test GPU: nothing of libaccel's on stdout", gpu.stdout)
    lines = decisions(tap, f"{name}, test GPU", gpu.log, "gpu0", "forced", products)
    bad = [f for f in lines if f["why"] in FAILURES]
    tap.ok(lines and not bad, f"{name}, test GPU: no failures", *bad)
    rows = compare(plain, gpu)
    for row, distance, good in rows:
        tap.ok(good, f"{name}, test GPU: {row} within bounds", f"{distance:.3g} of {THRESHOLD} (eps * scale)")
        tap.note(f"{distance:.3g} of {THRESHOLD} (eps * scale); 1 thread against 2: {floor[row]:.3g}")
    record(tap, name, "test GPU", failed, lines, len(rows), max((row[1] for row in rows), default=0.0), spread, THRESHOLD)


def main(*programs):
    """Each of programs is (name, argv, products)."""
    tap = Tap()
    for name, argv, products in programs:
        check(tap, name, argv, products)
    tap.done()
