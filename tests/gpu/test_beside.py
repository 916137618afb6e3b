#!/usr/bin/python3 -B
"""Kernels of different blocks run beside each other on two streams, with a workspace each: each stream has its share of them, whatever a block of a panel needs of the
other stream's is there, and results are exact. Not where the program's cuBLAS takes no workspace, nor where memory is short. The workspace is the same whatever
is on the device already; and a lane whose cuBLAS did not come back from the other stream serves no further call."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.calibrated import calibrate_copies
from lib.log import lines_for, said
from lib.programs import BUILD, TEST_GPU, TESTS, start
from lib.tap import Tap

CASES = """dsymm:LU:1500:800:3 zhemm:RL:901:500:2 dtrmm:LLNN:1500:700:0 dtrmm:RUTU:1301:600:3 ctrmm:LUCN:1700:400:0 dtrsm:LUTN:1400:700:0 dtrsm:RLNU:1301:600:5
    ztrsm:LLCN:1100:400:0 dsyrk:LN:1500:700:0 zher2k+:LC:1200:300:0""".split()
ENV = {**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off"}

tap = Tap()
MODEL = tempfile.TemporaryDirectory()
ENV["ACCEL_MODEL"] = f"{MODEL.name}/model"
calibrate_copies(ENV["ACCEL_MODEL"], MODEL.name)


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
    complaints = [words for words in said(done) if " has nothing for " not in words]  # it is of one version of cuBLAS, and of some libraries
    tap.ok(done.stdout == expected and line.get("ran") == "gpu0" and not mistaken and not complaints and streams(kernels), f"{case}: {what}", done.stdout, line,
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

# ---- The workspace ----

with tempfile.TemporaryDirectory() as folder:
    sizes = {}
    for resident in ("off", "hash"):
        trace = Path(folder, resident)
        done = start("again", "blocks", 4, env={**ENV, "ACCEL_RESIDENT": resident, "TESTGPU_TRACE": str(trace)})
        sizes[resident] = set(re.findall(r"cublasSetWorkspace_v2\(.* bytes=(\d+)", trace.read_text()))
        kept = sum(float(line.get("kept_mb", 0)) > 0 for line in lines_for(done))
        tap.ok(done.returncode == 0 and (kept > 0) == (resident == "hash"), f"{resident}: calls find operands on the device, or none", kept, done.stdout)
    tap.ok(sizes["off"] == sizes["hash"] and len(sizes["off"]) == 1, "one workspace, whatever is on the device already", sizes)

# ---- A lane that is astray ----

bad, fired = [], 0
with tempfile.TemporaryDirectory() as folder:
    for n in range(2, 14):
        report = Path(folder, f"report{n}")
        done = start("random_calls", "-l", TESTS / "liblacking.so", "-f", "y", "-c", 4, "-n", 800, "-s", 1, "-r", "d@(gemm|syrk|symm)",
                     env={**ENV, "TESTGPU_FAIL": f"cublasSetStream_v2:{n}", "TESTGPU_REPORT": str(report)})
        fired += "fired=1" in report.read_text()
        if done.returncode != 0 or not done.stdout.endswith(" 0 wrong\n") or "testgpu fault " in report.read_text():
            bad.append(f"{n}: {done.returncode} {done.stdout[-200:]} {re.findall('testgpu fault .*', report.read_text())[:2]}")
tap.ok(not bad and fired >= 6, "the stream of cuBLAS cannot be set at one time: further calls are right", fired, *bad)
tap.done()
