#!/usr/bin/python3 -B
"""tests/unit/run, on programs that are none: which of them have failed."""

import os
import subprocess
import tempfile
from pathlib import Path

from lib.programs import ROOT
from lib.tap import Tap

MISUSE = 'echo \'testgpu fault what=unordered where=copy detail="x"\' >&2'
tap = Tap()


def run(source, *commands):
    """What tests/unit/run says of a program of these commands, in the place of the one of this source."""
    with tempfile.TemporaryDirectory() as build:
        program = Path(build) / "tests" / Path(source).stem
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n" + "\n".join(commands) + "\n")
        program.chmod(0o755)
        done = subprocess.run([ROOT / "tests/unit/run", source], env={**os.environ, "BUILD": build}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, [line.replace(build, "BUILD") for line in done.stdout.splitlines() if not line.startswith("#")]


for name, source, commands, said in (
        ("all is right", "tests/gpu/test_lane.c", ("echo 1..2", "echo ok 1 - a", "echo ok 2 - b"), (0, ["ok - a", "ok - b", "1..2"])),
        ("a test has failed", "tests/gpu/test_lane.c", ("echo 1..2", "echo ok 1 - a", "echo not ok 2 - b", "exit 1"), (1, ["ok - a", "not ok - b", "1..2"])),
        ("a test has skipped itself", "tests/gpu/test_lane.c", ("echo 1..2", "echo ok 1 - a", "echo 'not ok 2 # SKIP b'"), (0, ["ok - a", "ok - b # SKIP", "1..2"])),
        ("it has crashed", "tests/gpu/test_lane.c", ("echo 1..2", "echo ok 1 - a"), (1, ["not ok - BUILD/tests/test_lane: 1 of 2 tests reported", "ok - a", "1..2"])),
        ("it has misused CUDA", "tests/gpu/test_lane.c", (MISUSE, "echo 1..1", "echo ok 1 - a"),
         (1, ['not ok - BUILD/tests/test_lane: testgpu fault what=unordered where=copy detail="x"', "ok - a", "1..2"])),
        ("the test GPU's own misuse CUDA on purpose", "tests/testgpu/test_testgpu.c", (MISUSE, "echo 1..1", "echo ok 1 - a"), (0, ["ok - a", "1..1"]))):
    found = run(source, *commands)
    tap.ok(found == said, name, *found)
tap.done()
