#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Triangles of Level 3 that go over the link in tiles: little more than the triangle does, up and down; what is beside
it is neither read nor written; results are exact, whatever the side, triangle, type and leading dimension, on one
device and on two; and a triangle that stays on the device is found there."""

import re
import tempfile
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from lib.log import events, lines_for, said
from lib.programs import LOG, PLAIN, REFERENCE, TEST_GPU, start
from lib.split import several

CASES = """dsymm:LU:1500:800:3 dsymm+:RL:1301:700:0 zhemm:LL:1100:600:1 zhemm+:RU:901:500:2 csymm:RL:1250:700:0
    dtrmm:LLNN:1500:700:0 dtrmm:RUTU:1301:600:3 ztrmm:LUCN:1111:400:1 ctrmm:RLCU:1700:400:0
    dtrsm:LUTN:1400:700:0 dtrsm:RLNU:1301:600:5 ztrsm:LLCN:1100:400:0 ctrsm:RUNN:1201:400:3
    dsyrk:LN:2048:700:0 dsyrk+:UT:1701:500:3 ssyrk:LT:2700:500:1 zherk+:LN:1300:500:0 zherk:UC:1201:400:1
    dsyr2k+:UN:1501:500:3 zher2k+:LC:1200:300:0 csyr2k:UT:1600:300:1
    dgemmt+:LTN:1601:500:0 zgemmt:UNC:1100:300:2""".split()
SIZE = {"s": 4, "d": 8, "c": 8, "z": 16}
ENV = {**TEST_GPU, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0", "ACCEL_RESIDENT": "off"}
each_case = pytest.mark.parametrize("case", CASES)


@cache
def expected(case):
    """The reference BLAS's, where newer OpenBLAS has a complex gemmt, which conjugates B (docs/limits.md)."""
    return start("triangles", case, env=REFERENCE if re.match("[cz]gemmt", case) else PLAIN).stdout


@cache
def one_device(case):
    """A run of the case on one device, and the test GPU's report of it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        return start("triangles", case, env={**ENV, "TESTGPU_REPORT": str(report)}), report.read_text()


def moved(case):
    """Megabytes, by way and operand; tiles that were as long as wide; and by way the bytes that may lie between
    columns, to whole lines."""
    mb, squares, gaps, size = defaultdict(float), Counter(), Counter(), SIZE[case[0]]
    for way in ("h2d", "d2h"):
        for event in events(one_device(case)[0].stderr, way):
            rows, cols, line = int(event["rows"]), int(event["cols"]), 64 // size
            mb[way, event["operand"]] += float(event["mb"])
            squares[way, event["operand"]] += rows == cols
            gaps[way] += cols * (-rows % line) * size
    return mb, squares, gaps


def ways_of(case):
    """Where the triangle of a case goes."""
    if re.match("[sdcz](symm|hemm|trmm|trsm)", case):
        return [("h2d", "a")]
    return [("d2h", "c")] + [("h2d", "c")] * ("+" in case)


def check_exact(case, done, ran):
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout == expected(case)
    assert [line["ran"] for line in lines_for(done)] == [ran]


@each_case
def test_exact_on_one_device(case):
    done, report = one_device(case)
    check_exact(case, done, "gpu0")
    assert not said(done)
    assert "testgpu fault " not in report


@pytest.mark.parametrize("case, way", [(case, way) for case in CASES for way in ways_of(case)],
                         ids=lambda value: value if isinstance(value, str) else ", ".join(reversed(value)))
def test_little_more_than_its_triangle_crosses_the_link(case, way):
    order = int(case.split(":")[2])
    least, mb = order * (order + 1) / 2 * SIZE[case[0]] * 1e-6, moved(case)[0]
    assert least <= mb[way] * 1.0001
    assert mb[way] <= (1.22 if case.startswith(("dtrsm", "ztrsm", "ctrsm")) else 1.13) * least


@pytest.mark.parametrize("way, key", [("h2d", "up_mb"), ("d2h", "down_mb")])
@each_case
def test_the_log_says_what_the_device_has_seen(case, way, key):
    done, report = one_device(case)
    logged, seen = float(lines_for(done)[0].get(key, 0)) * 1e6, int(re.search(rf"{way}_bytes=(\d+)", report)[1])
    # Of tiles that are no triangle, also what lies between the columns. The log has four digits.
    assert -6e-4 * logged < seen - logged < moved(case)[2][way] + 6e-4 * logged


def test_triangles_go_in_several_tiles_on_the_diagonal():
    assert sum(moved(case)[1][ways_of(case)[0]] > 1 for case in CASES) >= 10


@pytest.mark.parametrize("case", CASES[::4])
def test_exact_in_little_memory(case):
    """Tiles are smaller, and go up more than once."""
    check_exact(case, start("triangles", case, env={**ENV, "ACCEL_MEMORY": "12M"}), "gpu0")


@pytest.mark.parametrize("case", CASES[::3])
def test_exact_on_two_devices(case):
    check_exact(case, start("triangles", case, env=several(2, ACCEL_RESIDENT="off")), "gpu0+gpu1")


@pytest.mark.parametrize("case", ["dsyrk=:LN:1700:600:0", "dsyrk=:UT:1601:500:3"])
def test_the_next_call_finds_the_triangle_on_the_device(case):
    """Where it was trimmed on its way down."""
    done = start("triangles", case, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_RESIDENT": "hash"})
    assert done.returncode == 0
    assert done.stdout == expected(case)
    lines, (order, other) = lines_for(done), map(int, case.split(":")[2:4])
    assert [f["sym"] for f in lines] == ["dsyrk_", "dsymm_"]
    assert float(lines[-1].get("kept_mb", 0)) > 0
    assert float(lines[-1]["up_mb"]) < 1.01 * order * (other // 2) * 8e-6
