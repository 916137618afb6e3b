"""Runs an unmodified program whose LAPACK calls are to run on the GPU, and judges what it computed.

Before each thing it tries the program writes `case NAME` to stderr, where libaccel's log goes too: so a decision
belongs to a case. On stdout it prints `residual CASE X`, where X is the size of what should be 0, in units of
eps * n * (the norms it is relative to). LAPACK's own tests allow 30.

What a case has to show is a list of routines, without type, in the real types' names: `syevd` is zheevd, too.
    getrf   some call of it, and every one that has sizes runs on the GPU
    -geev   some call of it, and the log says that the CPU ran it, as `unsupported`
"""

import re

from harness import same_bytes
from lib.log import FAILURES, parse_log
from lib.programs import NO_GPU, SHIM, TEST_GPU, run
from lib.regress import record
from lib.table import routine_table
from lib.tap import Tap

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


def residuals(tap, name, stdout):
    """The largest of each case."""
    worst = {}
    for line in stdout.splitlines():
        word = line.split()
        if word[:1] == ["residual"]:
            value = float(word[2])
            worst[word[1]] = max(worst.get(word[1], 0.0), value if value == value else float("inf"))
    for case, value in worst.items():
        tap.ok(value <= LIMIT, f"{name}: {case} residual", f"{value:.3g} of {LIMIT}")
    if worst:
        case = max(worst, key=worst.get)
        tap.note(f"{name}: largest residual {worst[case]:.3g} of {LIMIT}, {case}")
    return worst


def decided(tap, name, case, lines, expected):
    """Checks the decisions of one case, `expected` as described above."""
    on_cpu = {word[1:] for word in expected.split() if word[0] == "-"}
    on_gpu = {word for word in expected.split() if word[0] != "-"}
    busy = [f for f in lines if f["why"] not in IDLE]
    wrong, seen = [], set()
    for f in busy:
        bare = routine(f["sym"])
        if f["ran"] == "gpu0" and f["why"] == "forced" and bare not in on_cpu:
            seen.add(bare)
        elif f["ran"] == "cpu" and f["why"] == "unsupported" and bare in on_cpu:
            seen.add(bare)
        else:
            wrong.append(f)
    missing = sorted((on_cpu | on_gpu) - seen)
    label = f"{name}: {case} {expected or '(no routine of the table)'}"
    tap.ok(not wrong and not missing, label, "missing:", *missing, "wrong:", *wrong, "log:", *lines)


def check(tap, name, argv, expected, extra):
    """All runs of one program. expected: case, without the type that it may begin with -> routines."""
    failed, program = tap.failed, name
    plain = run(argv, {**ONE_THREAD, **extra})
    cases, others = by_case(plain.stderr)
    if not tap.ok(plain.rc == 0 and cases, f"{name}: runs", plain.stderr[-3000:]):
        return
    floor = max(residuals(tap, name, plain.stdout).values(), default=0.0)

    for label, env in (("no GPU", NO_GPU), ("ACCEL=0", {**SHIM, "ACCEL": "0"})):
        silent = run(argv, {**ONE_THREAD, **extra, **env, "ACCEL_LOG": "0"})
        same_bytes(tap, f"{name}, {label}", plain, silent)
        tap.ok(silent.stderr == plain.stderr, f"{name}, {label}: same stderr", silent.stderr[-2000:])

    record(tap, program + ", LAPACK", "no GPU", failed, None, len(plain.stdout.splitlines()), 0.0, floor, 0)

    failed = tap.failed
    gpu = run(argv, {**ONE_THREAD, **extra, **TEST_GPU, "ACCEL_LOG": "1"})
    if not tap.ok(gpu.rc == 0, f"{name}, test GPU: runs", gpu.rc, gpu.stderr[-3000:]):
        return
    name += ", test GPU"
    worst = residuals(tap, name, gpu.stdout)
    shapes = lambda stdout: [line.rsplit(" ", 1)[0] for line in stdout.splitlines()]
    tap.ok(shapes(gpu.stdout) == shapes(plain.stdout), f"{name}: the same residuals are printed", *worst)
    try:
        all_lines = parse_log(gpu.stderr)
        seen, gpu_others = by_case(gpu.stderr)
    except ValueError as error:
        tap.ok(False, f"{name}: well-formed lines", error)
        return
    tap.ok(gpu_others == others, f"{name}: nothing else on stderr", *gpu_others)
    bad = [f for f in all_lines if f["why"] in FAILURES]
    tap.ok(not bad, f"{name}: no failures", *bad)

    bare = lambda case: re.sub(r"^(float|complex)\d+_", "", case)
    tap.ok({bare(case) for case in cases} == set(expected), f"{name}: the cases are those listed here",
           *({bare(case) for case in cases} ^ set(expected)))
    for case in cases:
        decided(tap, name, case, seen.get(case, []), expected.get(bare(case), ""))
    record(tap, program + ", LAPACK", "test GPU", failed, all_lines, len(gpu.stdout.splitlines()), max(worst.values(), default=0.0), floor, LIMIT)


def main(*programs):
    """Each of programs is (name, argv, expected) or (name, argv, expected, environment)."""
    tap = Tap()
    for name, argv, expected, *extra in programs:
        check(tap, name, argv, expected, *(extra or [{}]))
    tap.done()
