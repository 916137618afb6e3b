#!/usr/bin/python3 -B
"""On a terminal, commands that take long say what they are doing; elsewhere they do not."""

import tempfile

from lib.programs import BUILD, TESTS, start
from lib.tap import Tap
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
PROGRAM = (str(TESTS / "steps"), "dgemm:20:1")
tap = Tap()

with tempfile.TemporaryDirectory() as folder:
    env = {"HOME": folder, "CUDA_VISIBLE_DEVICES": "-1"}
    for command, says in ((("diff", "--"), [f"accel diff: run {n} of 3: the run {which}" for n, which in ((1, "without libaccel"), (2, "with another number of threads"), (3, "with libaccel"))]),
                          (("estimate", "--gpu", "H200", "--"), [f"accel estimate: {PROGRAM[0]} runs on the CPU; the table follows when it has ended"])):
        shown = on_terminal(TOOL, *command, *PROGRAM, stdout=False, stderr=True, env=env).decode().splitlines()
        tap.ok([line for line in shown if line in says] == says, f"accel {command[0]} on a terminal", *shown)
        done = start(TOOL, *command, *PROGRAM, env=env)
        tap.ok(done.returncode == 0 and not any(line in done.stderr + done.stdout for line in says), f"accel {command[0]} elsewhere", done)
tap.done()
