#!/usr/bin/python3 -B
"""Products with matrices that stay on the GPU, and change now and then; every CUDA and cuBLAS call made to fail at its first, second, … n-th
use. A copy that has not arrived, or that a failure has left behind, is never taken for the matrix. So does each call by which the kernel is
asked who has written to it: then digests know it, or it goes up."""

import tempfile
from pathlib import Path

from faults import GPU, judge, plan, report_on, run, sweep, uses
from lib.calibrated import calibrate_slow_copies
from lib.log import events, parse_log, said
from lib.programs import LONG, TESTS, start
from lib.tap import Tap

ENV = {**GPU, "ACCEL_RESIDENT": "hash"}
OVER_16_MB = "LAPACK's triangles over 16 MB"  # a program is stopped whose matrix is half overwritten

tap = Tap()
for name, arguments, more in (("ample memory", ["many", 40], {}), ("little memory", ["many", 40], {"ACCEL_MEMORY": "4M"}),
                              ("two threads", ["threads", 6], {}), ("results", ["chain", 12], {}), ("blocks", ["blocks", 2], {}),
                              ("triangles", ["triangles", 2], {}), ("batches", ["batches", 4], {}), ("LAPACK", ["factors", 3], {}), (OVER_16_MB, ["cholesky", 2], {}),
                              ("vectors", ["vectors", 12], {"ACCEL_RESIDENT": "auto"})):
    env = {**ENV, **more}
    done, baseline = run("again", arguments, env)
    found = [f for f in parse_log(done.stderr) if float(f.get("kept_mb", 0)) > 0]
    if not tap.ok(done.returncode == 0 and len(found) >= 5, f"{name}: {len(found)} calls find a matrix on the GPU", done.stdout, done.stderr[-500:]):
        continue

    def attempt(fault):
        done, report = run("again", arguments, {**env, "TESTGPU_FAIL": fault.plant})
        return judge(fault, done, report, baseline, "0 calls wrong", may_stop=name == OVER_16_MB)

    report_on(tap, name, "kept operands", sweep(list(plan(baseline, 12 if LONG else 2 if name == OVER_16_MB else 4)), attempt))

# ---- The kernel's record of writes ----

folder = tempfile.TemporaryDirectory(prefix="accel-resident-")
calibrate_slow_copies(f"{folder.name}/model", folder.name, {"OPENBLAS_NUM_THREADS": "1"})
WATCHED = {**GPU, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": f"{folder.name}/model",
           "LD_PRELOAD": f"{TESTS / 'libtracking_fails.so'}:{GPU['LD_PRELOAD']}"}
NOW = {"ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}  # calls with a vector bring their matrix
if not events(start("storm", "mix", 12, 5, "fresh", env=WATCHED).stderr, "untracked"):
    arguments, env = ["vectors", 12], {**WATCHED, "ACCEL_POLICY": "auto", "ACCEL_GPU": "dgemm"}  # whose first call waits for the GPU
    done, baseline = run("again", arguments, env)
    found = [f for f in parse_log(done.stderr) if float(f.get("kept_mb", 0)) > 0]
    if tap.ok(done.returncode == 0 and len(found) >= 8, f"brought: {len(found)} calls find a matrix on the GPU", done.stdout, done.stderr[-500:]):

        def bring(fault):
            done, report = run("again", arguments, {**env, "TESTGPU_FAIL": fault.plant})
            return judge(fault, done, report, baseline, "0 calls wrong")

        report_on(tap, "brought", "kept operands", sweep(list(plan(baseline, 12 if LONG else 4)), bring))

STORM = ["mix", 12, 5, "fresh"]
done = start("storm", *STORM, env={**WATCHED, "TRACKING_COUNTS": f"{folder.name}/counts"})
counts = {name: int(count) for name, count in (line.split() for line in Path(f"{folder.name}/counts").read_text().splitlines())}
if events(done.stderr, "untracked"):
    tap.skip("the kernel's record of writes", events(done.stderr, "untracked")[0]["reason"])
elif tap.ok(done.returncode == 0 and all(counts.values()), f"each call is used: {counts}", done.stdout, done.stderr[-300:]):
    plants = [(f"{name}:{n}{more}", way) for name, count in counts.items() for n in uses(count, 24 if LONG else 6) for more in ("", "+")
              for way in ((), ("vector",), ("vector", NOW))]

    def fail(planted):
        plant, way = planted
        done = start("storm", *STORM, *way[:1], env={**WATCHED, "TRACKING_FAILS": plant, **(way[1] if way[1:] else {})})
        why = [line["reason"] for line in events(done.stderr, "untracked")]
        right = done.returncode == 0 and done.stdout.endswith(" 0 wrong\n") and not said(done) and len(why) <= 1
        return None if right else f"{plant}: status {done.returncode} {done.stdout[-100:]} {why} {done.stderr[-200:]}"

    wrong = list(filter(None, sweep(plants, fail)))
    tap.ok(len(plants) > 20 and not wrong, f"{len(plants)} failures of it: no result is wrong", *wrong[:6])
tap.done()
