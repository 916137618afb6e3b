#!/usr/bin/python3 -B
"""Products with matrices that stay on the GPU, and change now and then; every CUDA and cuBLAS call made to fail at its first, second, … n-th
use. A copy that has not arrived, or that a failure has left behind, is never taken for the matrix."""

from faults import GPU, judge, plan, report_on, run, sweep
from lib.log import parse_log
from lib.programs import LONG
from lib.tap import Tap

ENV = {**GPU, "ACCEL_RESIDENT": "hash"}

tap = Tap()
for name, arguments, more in (("ample memory", ["many", 40], {}), ("little memory", ["many", 40], {"ACCEL_MEMORY": "4M"}),
                              ("two threads", ["threads", 6], {})):
    env = {**ENV, **more}
    done, baseline = run("again", arguments, env)
    found = [f for f in parse_log(done.stderr) if float(f.get("kept_mb", 0)) > 0]
    if not tap.ok(done.returncode == 0 and len(found) >= 5, f"{name}: {len(found)} calls find a matrix on the GPU", done.stdout, done.stderr[-500:]):
        continue

    def attempt(fault):
        done, report = run("again", arguments, {**env, "TESTGPU_FAIL": fault.plant})
        return judge(fault, done, report, baseline, "0 calls wrong")

    report_on(tap, name, "kept operands", sweep(list(plan(baseline, 12 if LONG else 4)), attempt))
tap.done()
