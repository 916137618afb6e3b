#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Random calls of every routine of the table in every interface, integer width and type: right, and nothing else
read or touched. Sizes with 0 and 1, all flags, increments, ld > rows, NaN and Inf, NaN in what must not be read, the
same matrix twice, batches of any number of groups, callers without hidden lengths, 8 threads, tiles, and the
originals that people have. Each routine must run on the test GPU hundreds of times, with TEST_LONG=1 thousands."""

import re
from collections import Counter, namedtuple
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, TEST_GPU, leave_out, start
from lib.table import routine_table

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
MODES = {"without libaccel": PLAIN, "no GPU": NO_GPU, "test GPU": TEST_GPU}
TABLE = list(routine_table("ROUTINE"))
ENOUGH = 2000 if LONG else 150

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
# BLIS's threads spin while they wait for each other: slow beside other work.
ONE_THREAD = {"BLIS_NUM_THREADS": "1"}


def system(folder):
    return {"LD_LIBRARY_PATH": str(SYSTEM / folder), **ONE_THREAD}


def wheel(pattern):
    """The OpenBLAS that NumPy's or SciPy's wheel brings."""
    library, = (BUILD / "venv/lib").glob(f"python3*/site-packages/{pattern}")
    return library


# wheels: what brings the library. What libraries get wrong by themselves, the program finds
# (own_faults.h), but for -f.
Blas = namedtuple("Blas", "program arguments env wheels", defaults=([], {}, None))
OF_WHEELS = ["-p", "scipy_", "-f", "y"]
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
    "linked BLIS": Blas(LP64, [], system("blis-pthread")),
    "BLIS": Blas(LP64, ["-l", SYSTEM / "blis-pthread/libblis.so.4"], ONE_THREAD),
    "SciPy's OpenBLAS": Blas(LP64, OF_WHEELS, wheels="scipy.libs/libscipy_openblas-*"),
    "NumPy's OpenBLAS, ILP64": Blas(ILP64, [*OF_WHEELS, "-x", "64_"], wheels="numpy.libs/libscipy_openblas64_-*"),
}
for name in [name for name, blas in OTHERS.items() if blas.wheels and not (BUILD / "venv").exists()]:
    leave_out(f"{name}: there is no build/venv")
    del OTHERS[name]

# count: so many calls of each routine in each thread.
Case = namedtuple("Case", "blas arguments count env extra threads", defaults=({}, 1))


def sweep():
    seed = 0
    for width, blas in LACKING.items():
        for interface in INTERFACES:
            seed += 1000
            for mode, env in MODES.items():
                count = {"without libaccel": 40, "no GPU": 100,
                         "test GPU": 600}[mode] if LONG else 20 if env is PLAIN else 40
                yield f"{width} {interface}, {mode}", Case(blas, ["-i", interface, "-s", seed], count, env,
                                                           {"TESTGPU_DELAY_US": "0"})
    for first, (name, blas) in enumerate(OTHERS.items()):
        for interface in INTERFACES if LONG else INTERFACES[first % 4:][:1]:
            seed += 1000
            for mode, env in MODES.items():
                yield f"{name} {interface}, {mode}", Case(blas, ["-i", interface, "-s", seed], 30 if LONG else 15, env,
                                                          {"TESTGPU_DELAY_US": "0"})


# Tiles: what may be used holds a part of the operands; the device is smaller than they are.
SMALL = {"ACCEL_MEMORY": {"ACCEL_MEMORY": "400K"}, "a small device": {"TESTGPU_MEMORY": "5M"}}
TILED = product(SMALL, ("fortran", "cblas-row"), ("OpenBLAS", "BLIS")) if LONG else (
    ("ACCEL_MEMORY", "fortran", "OpenBLAS"), ("a small device", "cblas-row", "BLIS"))
# A cuBLAS without the 64-bit functions; a device that does everything at once, and one that is
# slow.
DEVICES = {"CUDA 12, 32-bit functions alone": {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")},
           "no delays": {"TESTGPU_DELAY_US": "0"}, "long delays": {"TESTGPU_DELAY_US": "2000"}}

SWEEP = dict(sweep())
THREADS = {f"{width}, 8 threads": Case(blas, ["-n", 60], 20 if LONG else 5, TEST_GPU, threads=8) for width,
           blas in LACKING.items()}
CASES = {
    **SWEEP, **THREADS,
    "8 threads, hidden behind one another": Case(LACKING["LP64"], ["-n", 60], 4, TEST_GPU, {"TESTGPU_DELAY_US": "2000"},
                                                 threads=8),
    **{f"tiles, {name}, {interface}, {source}": Case(OTHERS["BLIS"] if source == "BLIS" else LACKING["LP64"],
                                                     ["-i", interface, "-n", 200], 8 if LONG else 3, TEST_GPU,
                                                     SMALL[name])
       for name, interface, source in TILED},
    **{name: Case(LACKING["LP64"], ["-n", 40], 5, TEST_GPU, extra) for name, extra in DEVICES.items()},
}

# What is kept of a run. made: calls that the program has made, if all were right. decided, ran:
# routine -> decisions, and those for the GPU. elsewhere: decisions that a case does not expect.
Outcome = namedtuple("Outcome", "returncode made output lacks decided ran elsewhere threads said")


def routine(line):
    """The routine that a log line's sym names."""
    return re.fullmatch(r"(?:scipy_)?(?:cblas_)?(\w+?)_?(?:64_)?", line["sym"])[1]


@cache
def outcome(name):
    case = CASES[name]
    library = ["-l", wheel(case.blas.wheels)] if case.blas.wheels else []
    done = start(case.blas.program, *library, *case.blas.arguments, *case.arguments, "-c", case.count, case.threads,
                 env={**case.env, **LOG, **case.blas.env, **case.extra})
    lines = lines_for(done)
    made = re.search(r"^(\d+) calls, 0 wrong$", done.stdout, re.M)
    expected = (("gpu0",), ("cpu", "empty")) if case.env is TEST_GPU else (("cpu",),)
    return Outcome(
        done.returncode, made and int(made[1]), done.stdout + done.stderr[-800:],
        next((line.split()[1:] for line in done.stdout.splitlines() if line.startswith("lacks: ")), []),
        # A grouped batch has a line for each group, and perhaps no group.
        Counter(routine(f) for f in lines if "group" not in f),
        Counter(routine(f) for f in lines if f["ran"] == "gpu0"),
        [f for f in lines if (f["ran"],) not in expected and (f["ran"], f["why"]) not in expected][:5],
        {f["tid"] for f in lines}, said(done))


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    assert outcome(name).returncode == 0, outcome(name).output
    assert outcome(name).made, outcome(name).output


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.env is not PLAIN])
def test_each_call_is_decided_once_and_runs_where_it_should(name):
    case, found = CASES[name], outcome(name)
    calls = case.count * case.threads
    expected = {r: n for r, n in found.decided.items() if r in TABLE and not r.endswith("gemm_batch")}
    batches = [r for r in TABLE if r.endswith("gemm_batch") and r not in found.lacks]
    assert expected
    assert not {r: n for r, n in expected.items() if n != calls}
    assert not set(found.decided) - set(TABLE)
    assert found.made == calls * (len(expected) + len(batches))
    assert not found.elsewhere
    if case.env is TEST_GPU:
        assert found.ran
        assert not found.said


def test_every_routine_ran_on_the_gpu_often_enough():
    on_gpu = sum((outcome(name).ran for name in SWEEP), Counter())
    assert not {r: on_gpu[r] for r in TABLE if on_gpu[r] < ENOUGH}


@pytest.mark.parametrize("name", THREADS)
def test_8_threads_in_the_log(name):
    assert len(outcome(name).threads) == 8


@pytest.mark.parametrize("mode", MODES)
def test_what_a_library_gets_wrong_by_itself_is_left_out_and_named(mode):
    done = start(LP64, "-l", BUILD / "tests/libwrong_gemmt.so", "-r", "cgemmt", "-c", 40, env=MODES[mode])
    assert (done.returncode, done.stdout) == (0, "40 calls, 0 wrong\n"), done.stderr
    assert re.findall("(?m)^# left out: (.*):", done.stderr) == ["complex gemmt and gemmtr with trans = C"]


def test_one_wrong_element_is_noticed():
    """A planted fault must be seen: the check itself is checked."""
    done = start(LP64, "-c", 10, env={**TEST_GPU, "TESTGPU_WRONG": "3"})
    assert done.returncode == 1
    assert ", 1 wrong" in done.stdout
