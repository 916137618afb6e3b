#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""tests/unit/run, on programs that are none: which of them have failed."""

import os
import subprocess
from pathlib import Path

import pytest

from lib.programs import ROOT

MISUSE = 'echo \'testgpu fault what=unordered where=copy detail="x"\' >&2'
LANE = "tests/gpu/test_stream_ctx.c"


@pytest.mark.parametrize("source, commands, status, lines", [
    pytest.param(LANE, ("echo 1..2", "echo ok 1 - a", "echo ok 2 - b"), 0, ["ok - a", "ok - b", "1..2"],
                 id="all is right"),
    pytest.param(LANE, ("echo 1..2", "echo ok 1 - a", "echo not ok 2 - b", "exit 1"), 1,
                 ["ok - a", "not ok - b", "1..2"], id="a test has failed"),
    pytest.param(LANE, ("echo 1..2", "echo ok 1 - a", "echo 'not ok 2 # SKIP b'"), 0,
                 ["ok - a", "ok - b # SKIP", "1..2"], id="a test has skipped itself"),
    pytest.param(LANE, ("echo 1..2", "echo ok 1 - a"), 1, ["not ok - BUILD/tests/test_stream_ctx: 1 of 2 tests reported",
                                                           "ok - a", "1..2"], id="it has crashed"),
    pytest.param(LANE, (MISUSE, "echo 1..1", "echo ok 1 - a"), 1,
                 ['not ok - BUILD/tests/test_stream_ctx: testgpu fault what=unordered where=copy detail="x"', "ok - a",
                  "1..2"], id="it has misused CUDA"),
    pytest.param("tests/testgpu/test_testgpu.c", (MISUSE, "echo 1..1", "echo ok 1 - a"), 0, ["ok - a", "1..1"],
                 id="the test GPU's own misuse CUDA on purpose")])
def test_run(source, commands, status, lines, tmp_path):
    """What it says of a program of these commands, in the place of the one of this source."""
    program = tmp_path / "tests" / Path(source).stem
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + "\n".join(commands) + "\n")
    program.chmod(0o755)
    done = subprocess.run([ROOT / "tests/unit/run", source], env={**os.environ, "BUILD": str(tmp_path)},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert [line.replace(str(tmp_path), "BUILD") for line in done.stdout.splitlines()
            if not line.startswith("#")] == lines
    assert done.returncode == status
