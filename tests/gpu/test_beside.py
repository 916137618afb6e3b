#!/usr/bin/python3 -B
"""Kernels of different blocks run beside each other on two streams, with a workspace each: each stream has its share of them, whatever a block of a panel needs of the
other stream's is there, and results are exact. Not where the program's cuBLAS takes no workspace, nor where memory is short."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, TEST_GPU, start
from lib.tap import Tap

CASES = """dsymm:LU:1500:800:3 zhemm:RL:901:500:2 dtrmm:LLNN:1500:700:0 dtrmm:RUTU:1301:600:3 ctrmm:LUCN:1700:400:0 dtrsm:LUTN:1400:700:0 dtrsm:RLNU:1301:600:5
    ztrsm:LLCN:1100:400:0 dsyrk:LN:1500:700:0 zher2k+:LC:1200:300:0""".split()
ENV = {**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off"}

tap = Tap()


def by_stream(trace):
    return Counter(re.findall(r" run (?!copy|fill)\w+ stream=(\S+)", trace))


def run(case, **env):
    """The finished process, its one line of the log, the kernels by stream, and whether the test GPU found a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        trace, report = Path(folder, "trace"), Path(folder, "report")
        done = start("triangles", case, env={**ENV, "TESTGPU_TRACE": str(trace), "TESTGPU_REPORT": str(report), **env})
        return done, (lines_for(done) or [{}])[0], by_stream(trace.read_text()), "testgpu fault " in report.read_text()


def right(case, expected, what, streams, **env):
    done, line, kernels, mistaken = run(case, **env)
    tap.ok(done.stdout == expected and line.get("ran") == "gpu0" and not mistaken and not said(done) and streams(kernels), f"{case}: {what}", done.stdout, line,
           dict(kernels), done.stderr[-300:])


for case in CASES:
    expected = start("triangles", case).stdout
    shared = lambda kernels: len(kernels) == 2 and min(kernels.values()) >= 0.2 * sum(kernels.values())
    for delay in ("0", "2000"):
        right(case, expected, f"on two streams, each step up to {delay} us late", shared, TESTGPU_DELAY_US=delay)
case = CASES[0]
expected = start("triangles", case).stdout
alone = lambda kernels: len(kernels) == 1
right(case, expected, "on one stream, where memory is short", alone, ACCEL_MEMORY="8M")
right(case, expected, "on one stream, where cuBLAS takes no workspace", alone, ACCEL_CUDA_DIR=str(BUILD / "testgpu-cuda12"))
tap.done()
