#!/usr/bin/python3 -B
"""Device memory beside a program that has its own: what libaccel keeps idle does not make the program's allocations fail, and goes
back to the driver; the thread that sees to it ends when nothing is idle, and is out of CUDA at exit."""

import os
import re
import tempfile
from pathlib import Path

from lib.log import said
from lib.programs import TEST_GPU, start
from lib.tap import Tap

ENV = {**TEST_GPU, "TESTGPU_MEMORY": "160M", "TESTGPU_DELAY_US": "0"}

tap = Tap()


def run(*arguments, **env):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start("own_memory", *arguments, env={**ENV, **env, "TESTGPU_REPORT": str(report)}, timeout=300)
        return done, report.read_text() if report.exists() else ""


for case, what in (("right_after", "8 of 10 parts of what is free, right after calls on large operands"),
                   ("step_by_step", "29 of 32 parts, one by one between calls"),
                   ("later", "all that was free is free again, soon after the last call"),
                   ("beside", "calls of two threads end before the program's work on the device does, which giving memory back waits for"),
                   ("forks", "the same after a fork, whose child computes on the CPU and ends well"),
                   ("thread_ends", "there is a thread for that as long as something is idle, and no longer")):
    done, report = run(case)
    tap.ok(done.returncode == 0 and f"{case}: as it should be" in done.stdout and not said(done), f"{case}: {what}",
           done.stdout, done.stderr[-500:])
    tap.ok("call name=cublasDgemm" in report and "testgpu fault " not in report, f"{case}: on the GPU, without misuse of CUDA",
           *re.findall("testgpu fault .*", report))

bad = []
for ms in (0, 100, *range(190, 216, 3), 600, 1190, 1200, 1210, 1400) if os.environ.get("TEST_LONG") == "1" else (0, 199, 202, 1201):
    for early in "01":
        done, report = run("exits", ms, TESTGPU_EXIT_EARLY=early)
        if done.returncode != 0 or said(done) or "testgpu fault " in report:
            bad.append(f"{ms} ms: {done.returncode} {done.stderr} {re.findall('testgpu fault .*', report)}")
tap.ok(not bad, "exit while something is idle, or is being given back", *bad[:4])
tap.done()
