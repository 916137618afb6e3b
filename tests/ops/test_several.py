#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Random calls of Level 3 and of batches on two, three and five test GPUs, which share each of them that can be
divided: right, nothing else read or touched, in all interfaces and types, in tiles, from several threads."""

import re
from collections import Counter, namedtuple
from functools import cache

import pytest

from lib.log import complaints, lines_for, said
from lib.programs import LONG, TESTS, start
from lib.split import behind_slow_links, several
from lib.table import routine_table

KINDS = "gemm|gemmt|gemmtr|gemm3m|symm|hemm|syrk|herk|syr2k|her2k|trmm|trsm|gemm_batch|gemm_batch_strided"
DIVIDED = [name for name in routine_table("ROUTINE") if re.fullmatch(f"[sdczb]+({KINDS})", name)]

Case = namedtuple("Case", "devices arguments count threads program env", defaults=(1, "random_calls", {}))
COUNT = 60 if LONG else 20
CASES = {
    **{f"{interface}, {devices} devices": Case(devices, ["-i", interface, "-s", 100 + seed], COUNT)
       for seed, (interface, devices) in enumerate({"fortran": 2, "cblas-row": 3, "cblas-column": 5,
                                                    "no-lengths": 3}.items())},
    "ILP64": Case(3, ["-i", "fortran", "-s", 200], COUNT, program="random_calls64"),
    "larger": Case(3, ["-i", "fortran", "-n", 110, "-s", 300], 20 if LONG else 2),
    "tiles": Case(3, ["-i", "cblas-row", "-n", 110, "-s", 400], 20 if LONG else 2, env={"ACCEL_MEMORY": "200K"}),
    "late and in any order": Case(3, ["-n", 60, "-s", 500], 20 if LONG else 3, env={"TESTGPU_DELAY_US": "500"}),
    "8 threads": Case(2, ["-n", 60, "-s", 600], 10 if LONG else 2, threads=8),
}


def random_calls(routines, case):
    lacking = TESTS / f"liblacking{'64' * case.program.endswith('64')}.so"
    return start(case.program, "-l", lacking, "-f", "y", "-r", routines, *case.arguments, "-c", case.count,
                 case.threads,
                 env=several(case.devices, TESTGPU_REPORT="/dev/stderr", **case.env), timeout=600)


def check_right(done):
    assert done.returncode == 0, done.stdout[-600:]
    assert re.search(r"^\d+ calls, 0 wrong$", done.stdout, re.M)
    assert "testgpu faults n=0" in done.stderr


@cache
def run(name):
    return random_calls(f"[sdczb]*@({KINDS})", CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_right_on_devices_and_none_for_two_parts(name):
    done, devices = run(name), range(CASES[name].devices)
    check_right(done)
    assert not said(done)
    parts = [[i for i in devices if number >> i & 1] for number in range(1, 1 << len(devices))]
    assert {line["ran"] for line in lines_for(done) if line["why"] != "empty"} <= {"+".join(f"gpu{i}" for i in some)
                                                                                   for some in parts}


# Links so slow that parts which need few lines are faster.
@pytest.mark.parametrize("devices, size, env", [(3, 60, {}), (4, 60, {}), (5, 60, {}), (8, 60, {}), (13, 60, {}),
                                                (6, 120, {"ACCEL_MEMORY": "100K"}),
                                                (3, 120, {"ACCEL_MEMORY": "100K"})], ids=str)
def test_triangles_in_grids(devices, size, env, tmp_path):
    grid = behind_slow_links(8, str(tmp_path))
    grid = {key: grid[key] for key in ("ACCEL_MODEL", "TESTGPU_ATTRIBUTES")}
    done = random_calls("[sdcz]@(gemmt|gemmtr|syrk|herk|syr2k|her2k)",
                        Case(devices, ["-n", size, "-s", 700 + devices], 20 if LONG else 4, env={**grid, **env}))
    check_right(done)
    assert not complaints(done)
    assert len([line for line in lines_for(done) if "+" in line["ran"]]) >= 35  # most are shared


def test_calls_of_each_routine_were_shared():
    shared = Counter(re.fullmatch(r"(?:cblas_)?(\w+?)_?(?:64_)?", line["sym"])[1] for name in CASES
                     for line in lines_for(run(name)) if "+" in line["ran"])
    assert len(DIVIDED) == 49
    assert not {name: shared[name] for name in DIVIDED if shared[name] < 8}
