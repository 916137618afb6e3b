#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""On a terminal, commands that take long say what they are doing; elsewhere they do not."""

import pytest

from lib.programs import BUILD, TESTS, start
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
PROGRAM = (str(TESTS / "steps"), "dgemm:20:1")
RUNS = ("without libaccel", "with another number of threads", "with libaccel")
CASES = {"diff": ["--"], "estimate": ["--gpu", "H200", "--"]}
SAYS = {"diff": [f"accel diff: run {n} of 3: the run {which}" for n, which in enumerate(RUNS, 1)],
        "estimate": [f"accel estimate: {PROGRAM[0]} runs on the CPU; the table follows when it has ended"]}


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "-1"}


@pytest.mark.parametrize("command", CASES)
def test_on_a_terminal(command, env):
    shown = on_terminal(TOOL, command, *CASES[command], *PROGRAM, stdout=False, stderr=True,
                        env=env).decode().splitlines()
    assert [line for line in shown if line in SAYS[command]] == SAYS[command]


@pytest.mark.parametrize("command", CASES)
def test_elsewhere(command, env):
    done = start(TOOL, command, *CASES[command], *PROGRAM, env=env)
    assert done.returncode == 0
    assert not [line for line in SAYS[command] if line in done.stderr + done.stdout]
