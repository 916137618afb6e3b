"""Runs an unmodified program whose LAPACK calls are to run on the GPU, and judges what it computed.

Before each thing it tries the program writes `case NAME` to stderr, where libaccel's log goes too: so a decision
belongs to a case. On stdout it prints `residual CASE X`, where X is the size of what should be 0, in units of
eps * n * (the norms it is relative to). LAPACK's own tests allow 30.

What a case has to show is a list of routines, without type, in the real types' names: `syevd` is zheevd, too.
    getrf   some call of it, and every one that has sizes runs on the GPU
    -geev   some call of it, and the log says that the CPU ran it, as `unsupported`
"""

import re
from collections import namedtuple

import pytest

from lib.log import FAILURES, parse_log
from lib.programs import NO_GPU, SERVED, TEST_GPU, run
from lib.regress import Row
from lib.table import routine_table
from programs.harness import SILENT, check_same_bytes

LIMIT = 30
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Nothing is computed in these calls.
IDLE = {"workspace_query", "empty", "bad_argument"}
REAL_NAMES = (("heev", "syev"), ("hegv", "sygv"), ("ungqr", "orgqr"), ("unmqr", "ormqr"))
TABLE = set(routine_table("LAPACK"))


def routine(sym):
    """getrf of scipy_dgetrf_64_; None for what is not LAPACK."""
    bare = re.sub(r"^scipy_|(_64)?_$", "", sym)
    if bare not in TABLE:
        return None
    for hermitian, real in REAL_NAMES:
        if bare[1:].startswith(hermitian):
            return real + bare[1 + len(hermitian):]
    return bare[1:]


def by_case(stderr):
    """case -> its decisions on LAPACK routines, and everything else of stderr."""
    cases, name, others = {}, None, []
    for line in stderr.splitlines():
        if line.startswith("case "):
            name = line[5:]
            cases.setdefault(name, [])
        elif line.startswith("accel "):
            for fields in parse_log(line):
                if routine(fields["sym"]):
                    cases.setdefault(name, []).append(fields)
        else:
            others.append(line)
    return cases, others


def residuals(stdout):
    """The largest of each case."""
    worst = {}
    for line in stdout.splitlines():
        word = line.split()
        if word[:1] == ["residual"]:
            value = float(word[2])
            worst[word[1]] = max(worst.get(word[1], 0.0), value if value == value else float("inf"))
    return worst


def too_large(worst):
    return {case: value for case, value in worst.items() if not value <= LIMIT}


def fault_of_decisions(lines, expected):
    """What is wrong with the decisions of one case, `expected` as described above; None: nothing."""
    on_cpu = {word[1:] for word in expected.split() if word[0] == "-"}
    on_gpu = {word for word in expected.split() if word[0] != "-"}
    wrong, seen = [], set()
    for f in lines:
        bare = routine(f["sym"])
        if f["why"] in IDLE:
            continue
        if f["ran"] == "gpu0" and f["why"] == "forced" and bare not in on_cpu:
            seen.add(bare)
        elif f["ran"] == "cpu" and f["why"] == "unsupported" and bare in on_cpu:
            seen.add(bare)
        else:
            wrong.append(f)
    missing = sorted((on_cpu | on_gpu) - seen)
    return f"missing: {missing} wrong: {wrong} log: {lines}" if wrong or missing else None


def without_type(case):
    return re.sub(r"^(float|complex)\d+_", "", case)


def runs_of(programs):
    """The fixture `runs` of a file: {name: (argv, {case, without the type that it may begin with: routines}[,
    environment])}."""
    @pytest.fixture(scope="module", params=programs)
    def runs(request):
        return Runs(request, *programs[request.param])

    return runs


class Runs:
    """A program, and its run without libaccel."""

    def __init__(self, request, argv, expected, extra={}):
        self.name, self.argv, self.expected = request.param, argv, expected
        self.env = {**ONE_THREAD, **extra}
        self.row = Row(request)
        self.plain = run(argv, self.env)
        self.cases, self.others = by_case(self.plain.stderr)
        assert self.plain.rc == 0, self.plain.stderr[-3000:]
        assert self.cases


OnGpu = namedtuple("OnGpu", "row done residuals lines")


class LapackTests:
    """The tests of a file that has `runs`."""

    def test_residuals_without_libaccel(self, runs):
        assert too_large(residuals(runs.plain.stdout)) == {}

    @pytest.mark.parametrize("mode", SILENT)
    def test_without_a_log(self, runs, mode):
        silent = run(runs.argv, {**runs.env, **SILENT[mode], "ACCEL_LOG": "0"})
        check_same_bytes(runs.plain, silent)
        assert silent.stderr == runs.plain.stderr

    def test_row_of_no_gpu(self, runs):
        floor = max(residuals(runs.plain.stdout).values(), default=0.0)
        runs.row.write(runs.name + ", LAPACK", "no GPU", None, len(runs.plain.stdout.splitlines()), 0.0, floor, 0)

    @pytest.fixture(scope="class")
    def on_gpu(self, runs, request):
        row = Row(request)
        done = run(runs.argv, {**runs.env, **TEST_GPU, "ACCEL_LOG": "1"})
        assert done.rc == 0, done.stderr[-3000:]
        return OnGpu(row, done, residuals(done.stdout), parse_log(done.stderr))

    def test_residuals(self, on_gpu):
        assert too_large(on_gpu.residuals) == {}

    def test_the_same_residuals_are_printed(self, runs, on_gpu):
        shapes = lambda stdout: [line.rsplit(" ", 1)[0] for line in stdout.splitlines()]
        assert shapes(on_gpu.done.stdout) == shapes(runs.plain.stdout)

    def test_nothing_else_is_on_stderr(self, runs, on_gpu):
        assert by_case(on_gpu.done.stderr)[1] == runs.others

    def test_no_call_fails(self, on_gpu):
        assert not [f for f in on_gpu.lines if f["why"] in FAILURES]

    def test_cases_are_those_listed(self, runs):
        assert {without_type(case) for case in runs.cases} == set(runs.expected)

    def test_each_case_calls_its_routines_on_the_gpu(self, runs, on_gpu):
        seen = by_case(on_gpu.done.stderr)[0]
        # A server takes no laswp: which rows it exchanges, its pivots say.
        here = lambda case: [f for f in seen.get(case, []) if not (SERVED and "laswp" in f["sym"])]
        faults = {
            case: fault_of_decisions(here(case), runs.expected.get(without_type(case), ""))
            for case in runs.cases
        }
        assert {case: fault for case, fault in faults.items() if fault} == {}

    def test_row_of_the_gpu(self, runs, on_gpu):
        floor = max(residuals(runs.plain.stdout).values(), default=0.0)
        on_gpu.row.write(runs.name + ", LAPACK", "test GPU", on_gpu.lines, len(on_gpu.done.stdout.splitlines()),
                         max(on_gpu.residuals.values(), default=0.0), floor, LIMIT)
