"""Runs an unmodified program without libaccel, with it and no GPU, and with the test GPU, and compares.

A program writes each result to a file of raw numbers in the folder it is given and prints a line
    result NAME TYPE SCALE MD5
The bound on a difference is 16 * eps(TYPE) * SCALE, the threshold of the reference BLAS tests: SCALE is
k|alpha||A||B| + |beta||C| for a product; for anything longer the program derives it in a comment. SCALE 0
asks for equality.
"""

import array
import re
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import FAILURES, parse_moves
from lib.programs import NO_GPU, SHIM, TEST_GPU, run
from lib.regress import Row

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


def check_same_bytes(first, second):
    """Status, stdout and each result."""
    assert second.rc == first.rc, second.stderr
    assert second.stdout == first.stdout, f"{first.stdout}---\n{second.stdout}"
    differ = [f for f in first.files.keys() | second.files.keys() if first.files.get(f) != second.files.get(f)]
    assert not differ, differ


def check_decisions(lines, ran, why, products):
    """Of each product there are so many decision lines, all of which say this."""
    seen = sorted({" ".join(f"{k}={v}" for k, v in f.items() if k in "sym m n k ran why".split()) for f in lines})
    for p in products:
        size = {"m": str(p.m), "n": str(p.n), "k": str(p.k)}
        hits = [f for f in lines if re.fullmatch(p.sym, f["sym"]) and size.items() <= f.items()]
        wrong = [f for f in hits if (f["ran"], f["why"]) != (ran, why)]
        assert not wrong, (p, wrong)
        assert len(hits) == p.times if p.times else hits, "\n".join([str(p), *seen])


SILENT = {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}}


def runs_of(programs):
    """The fixture `runs` of a file: {name: (argv, products)}."""
    @pytest.fixture(scope="module", params=programs)
    def runs(request):
        return Runs(request, *programs[request.param])

    return runs


class Runs:
    """A program, and its run without libaccel; floor: what another number of threads changes."""

    def __init__(self, request, argv, products):
        self.name, self.argv, self.products = request.param, argv, products
        self.row = Row(request)
        self.plain = run(argv, {})
        assert self.plain.rc == 0, self.plain.stderr
        assert results(self.plain.stdout), self.plain.stdout
        one = run(argv, {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
        self.floor = max((row[1] for row in compare(self.plain, one)), default=0.0)


Logged = namedtuple("Logged", "row done lines")


class ProductTests:
    """The tests of a file that has `runs`."""

    @pytest.mark.parametrize("mode", SILENT)
    def test_without_a_log(self, runs, mode):
        silent = run(runs.argv, {**SILENT[mode], "ACCEL_LOG": "0"})
        check_same_bytes(runs.plain, silent)
        assert silent.stderr == runs.plain.stderr

    @pytest.fixture(scope="class")
    def without(self, runs):
        """Its row, the finished run, its decisions."""
        done = run(runs.argv, {**NO_GPU, "ACCEL_LOG": "1"})
        return Logged(runs.row, done, parse_moves(done.stderr))

    def test_every_byte_is_the_same_without_a_gpu(self, runs, without):
        check_same_bytes(runs.plain, without.done)

    def test_products_run_on_the_cpu_without_a_gpu(self, runs, without):
        check_decisions(without.lines, "cpu", "no_gpu", runs.products)
        assert {f["ran"] for f in without.lines} == {"cpu"}

    def test_row_of_no_gpu(self, runs, without):
        without.row.write(runs.name, "no GPU", without.lines, len(runs.plain.files), 0.0, runs.floor, 0)

    @pytest.fixture(scope="class")
    def on_gpu(self, runs, request):
        """The row, the finished run, its decisions."""
        row = Row(request)
        done = run(runs.argv, {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"})
        return Logged(row, done, parse_moves(done.log))

    def test_runs_on_the_gpu(self, on_gpu):
        assert on_gpu.done.rc == 0, on_gpu.done.stderr

    def test_nothing_of_libaccels_is_on_stdout(self, runs, on_gpu):
        assert without_digests(on_gpu.done.stdout) == without_digests(runs.plain.stdout)

    def test_products_run_on_the_gpu(self, runs, on_gpu):
        check_decisions(on_gpu.lines, "gpu0", "forced", runs.products)

    def test_no_call_fails(self, on_gpu):
        assert on_gpu.lines
        assert not [f for f in on_gpu.lines if f["why"] in FAILURES]

    def test_results_are_within_bounds(self, runs, on_gpu):
        """In units of eps * scale."""
        assert {name: distance for name, distance, good in compare(runs.plain, on_gpu.done) if not good} == {}

    def test_row_of_the_gpu(self, runs, on_gpu):
        rows = compare(runs.plain, on_gpu.done)
        worst = max((row[1] for row in rows), default=0.0)
        on_gpu.row.write(runs.name, "test GPU", on_gpu.lines, len(rows), worst, runs.floor, THRESHOLD)
