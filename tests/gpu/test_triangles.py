#!/usr/bin/python3 -B
"""Triangles of Level 3 that go over the link in cells: little more than the triangle does, up and down; what is beside it is neither read nor written; results
are exact, whatever the side, triangle, type and leading dimension, on one device and on two; and a triangle that stays on the device is found there."""

import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from lib.log import events, lines_for, said
from lib.programs import LOG, TEST_GPU, start
from lib.split import several
from lib.tap import Tap

CASES = """dsymm:LU:1500:800:3 dsymm+:RL:1301:700:0 zhemm:LL:1100:600:1 zhemm+:RU:901:500:2 csymm:RL:1250:700:0
    dtrmm:LLNN:1500:700:0 dtrmm:RUTU:1301:600:3 ztrmm:LUCN:1111:400:1 ctrmm:RLCU:1700:400:0
    dtrsm:LUTN:1400:700:0 dtrsm:RLNU:1301:600:5 ztrsm:LLCN:1100:400:0 ctrsm:RUNN:1201:400:3
    dsyrk:LN:2048:700:0 dsyrk+:UT:1701:500:3 ssyrk:LT:2700:500:1 zherk+:LN:1300:500:0 zherk:UC:1201:400:1
    dsyr2k+:UN:1501:500:3 zher2k+:LC:1200:300:0 csyr2k:UT:1600:300:1 dgemmt+:LTN:1601:500:0 zgemmt:UNC:1100:300:2""".split()
SIZE = {"s": 4, "d": 8, "c": 8, "z": 16}
ENV = {**TEST_GPU, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0", "ACCEL_RESIDENT": "off"}

tap = Tap()


def moved(done, size):
    """Megabytes, by way and operand; cells that were as long as wide; and by way the bytes that may lie between columns, to whole lines."""
    mb, squares, gaps = defaultdict(float), Counter(), Counter()
    for way in ("h2d", "d2h"):
        for event in events(done.stderr, way):
            rows, cols, line = int(event["rows"]), int(event["cols"]), 64 // size
            mb[way, event["operand"]] += float(event["mb"])
            squares[way, event["operand"]] += rows == cols
            gaps[way] += cols * (-rows % line) * size
    return mb, squares, gaps


def triangle(case):
    """What a case's triangle is: where it goes, and the least megabytes of it."""
    routine, order = case.split(":")[0], int(case.split(":")[2])
    least = order * (order + 1) / 2 * SIZE[case[0]] * 1e-6
    if re.match("[sdcz](symm|hemm|trmm|trsm)", routine):
        return [("h2d", "a")], least
    return [("d2h", "c")] + [("h2d", "c")] * ("+" in routine), least


# ---- One device ----

in_cells, expected = 0, {}
with tempfile.TemporaryDirectory() as folder:
    for case in CASES:
        report = Path(folder, "report")
        expected[case], done = start("triangles", case).stdout, start("triangles", case, env={**ENV, "TESTGPU_REPORT": str(report)})
        (line,) = lines_for(done) or [{}]
        tap.ok(done.returncode == 0 and done.stdout == expected[case] and line.get("ran") == "gpu0" and not said(done), f"{case}: exact", done.stdout, expected[case], line, done.stderr[-300:])
        mb, squares, gaps = moved(done, SIZE[case[0]])
        ways, least = triangle(case)
        for way in ways:
            tap.ok(least <= mb[way] * 1.0001 and mb[way] <= (1.22 if case.startswith(("dtrsm", "ztrsm", "ctrsm")) else 1.13) * least, f"{case}: {way[1]}, {way[0]}: {mb[way] / least:.3f} of its triangle crosses the link", dict(mb))
        in_cells += squares[ways[0]] > 1
        copied = dict(re.findall(r"(h2d|d2h)_bytes=(\d+)", report.read_text()))
        for way, key in ("h2d", "up_mb"), ("d2h", "down_mb"):
            # Of cells that are no triangle, also what lies between the columns. The log has four
            # digits.
            logged, seen = float(line.get(key, 0)) * 1e6, int(copied[way])
            tap.ok(-6e-4 * logged < seen - logged < gaps[way] + 6e-4 * logged, f"{case}: {key} is what the device has seen", logged, seen, gaps)
        faults = [line for line in report.read_text().splitlines() if line.startswith("testgpu fault ")]
        tap.ok(not faults, f"{case}: no misuse of the device", *faults[:3])
tap.ok(in_cells >= 10, f"{in_cells} of {len(CASES)} triangles go in several cells on the diagonal")

# Too short for memory: cells are smaller, and go up more than once.
for case in CASES[::4]:
    done = start("triangles", case, env={**ENV, "ACCEL_MEMORY": "12M"})
    tap.ok(done.returncode == 0 and done.stdout == expected[case] and [f["ran"] for f in lines_for(done)] == ["gpu0"], f"{case}: in little memory", done.stdout, *lines_for(done))

# ---- What stays ----

for case in ("dsyrk=:LN:1700:600:0", "dsyrk=:UT:1601:500:3"):
    done = start("triangles", case, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_RESIDENT": "hash"})
    lines, (_, order, other, _) = lines_for(done), (int(x) if x.isdigit() else 0 for x in case.split(":")[1:])
    reader, others = lines[-1], order * (other // 2) * 8e-6
    tap.ok(done.returncode == 0 and done.stdout == start("triangles", case).stdout and [f["sym"] for f in lines] == ["dsyrk_", "dsymm_"], f"{case}: exact", done.stdout, *lines)
    tap.ok(float(reader.get("kept_mb", 0)) > 0 and float(reader["up_mb"]) < 1.01 * others, "the next call finds the triangle on the device, where it was trimmed on its way down", reader)

# ---- Two devices ----

for case in CASES[::3]:
    done = start("triangles", case, env=several(2, ACCEL_RESIDENT="off"))
    tap.ok(done.returncode == 0 and done.stdout == expected[case] and [f["ran"] for f in lines_for(done)] == ["gpu0+gpu1"], f"{case}: exact on two devices",
           done.stdout, *lines_for(done))
tap.done()
