#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Device memory beside a program that has its own: what libaccel keeps idle does not make the program's allocations
fail, and goes back to the driver; the thread that sees to it ends when nothing is idle, and is out of CUDA at exit."""

import pytest

from lib.log import said
from lib.programs import LONG, TEST_GPU, start

CASES = {"right_after": "8 of 10 parts of what is free, right after calls on large operands",
         "step_by_step": "29 of 32 parts, one by one between calls",
         "later": "all that was free is free again, soon after the last call",
         "beside": "calls of two threads end before the program's work on the device does, "
                   "which giving memory back waits for",
         "forks": "the same after a fork, whose child computes on the CPU and ends well",
         "thread_ends": "there is a thread for that as long as something is idle, and no longer"}


def run(folder, *arguments, **env):
    report = folder / "report"
    done = start("own_memory", *arguments, env={**TEST_GPU, "TESTGPU_MEMORY": "160M", "TESTGPU_DELAY_US": "0", **env,
                                                "TESTGPU_REPORT": str(report)})
    assert done.returncode == 0, done.stderr
    assert not said(done)
    assert not report.exists() or "testgpu fault " not in report.read_text()
    return done, report


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case}: {CASES[case]}")
def test_memory_of_the_program(case, tmp_path):
    done, report = run(tmp_path, case)
    assert f"{case}: as it should be" in done.stdout
    assert "call name=cublasDgemm" in report.read_text()


@pytest.mark.parametrize("early", ["0", "1"], ids=["late", "early"])
@pytest.mark.parametrize("ms", (0, 100, *range(190, 216, 3), 600, 1190, 1200, 1210, 1400) if LONG
                         else (0, 199, 202, 1201), ids="{} ms".format)
def test_exit_while_something_is_idle_or_being_given_back(ms, early, tmp_path):
    run(tmp_path, "exits", ms, TESTGPU_EXIT_EARLY=early)
