#!/usr/bin/python3 -B
"""LAPACK results of more than 16 MB that take their input's place. A device that fails before the first of it has come leaves the call
to the CPU; one that fails after that has made a right result impossible: the program is stopped, with a message, and
never goes on with a wrong one."""

import re

from faults import GPU, Fault, judge, report_on, run, sweep, uses
from lib.log import parse_log
from lib.tap import Tap

TRIANGLES = "dpotrf dtrtri".split()  # half of 17 MB comes down, in copies of columns without what is above them
CASES = "dgetrf dgeqrf dpotrf dtrtri dgesv dposv dgels dgesdd".split()

tap = Tap()
for case in CASES:
    done, baseline = run("write_back", [case], GPU)
    lines = [f for f in parse_log(done.stderr) if f["sym"] == case + "_" and f["why"] != "workspace_query"]
    if not tap.ok(done.returncode == 0 and [f["ran"] for f in lines] == ["gpu0"] and float(lines[0]["down_mb"]) > (8.7 if case in TRIANGLES else 16),
                  f"{case}: right on the GPU, {lines[0]['down_mb'] if lines else 0} MB come back", done.stdout, done.stderr[-500:]):
        continue
    copy = "cuMemcpy2DAsync" if case in TRIANGLES else "cuMemcpyDtoHAsync"
    down = baseline.calls[copy + "_v2"]
    waits = baseline.calls["cuEventSynchronize"]
    last = range(max(1, down - 18), down + 1)  # copies of 1 MB at most
    numbers = {last[0], last[1], last[len(last) // 2], last[-1]} | {1}
    if case in TRIANGLES:  # half of them go up
        tap.ok(down >= 64, f"{case}: goes up and comes down in {down} pieces")
        numbers |= {down // 2, down // 2 + 1, down // 2 + 2}
    faults = [Fault(kind, f"{copy}:{n}{code}", copy, True) for n in sorted(numbers)
              for kind, code in (("once", ""), ("sticky", "=CUDA_ERROR_LAUNCH_FAILED"), ("no memory", "=CUDA_ERROR_OUT_OF_MEMORY"))]
    faults += [Fault("once", f"cuEventSynchronize:{n}", "cuEventSynchronize", True) for n in uses(waits, 4)[1:] + [max(1, waits - 9)]]
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_ECC_UNCORRECTABLE", "async", True) for n in uses(baseline.operations(), 4)]
    if case in TRIANGLES:
        faults += [Fault("for good", f"{copy}:{n}+", copy, True) for n in (1, down // 2, down // 2 + 2, down)]
    faults += [Fault("once", f"cuStreamSynchronize:{baseline.calls['cuStreamSynchronize']}", "cuStreamSynchronize", True)]

    def attempt(fault):
        done, report = run("write_back", [case], {**GPU, "TESTGPU_FAIL": fault.plant})
        return judge(fault, done, report, baseline, f"{case}: 0 wrong", may_stop=True)

    outcomes = sweep(faults, attempt)
    count = report_on(tap, case, "results over 16 MB", outcomes, least=15)
    tap.ok(count["stopped"] > 0 and count["recovered"] > 0, f"{case}: before it is written, the CPU computes; after that, the program is stopped")
    messages = {o.detail for o in outcomes if o.what == "stopped"}
    tap.ok(messages and all(re.match(rf"accel: {case}_: (the GPU failed \(cu\w+: |no memory is left )", m) for m in messages), f"{case}: the message names the call and what failed",
           *messages)
tap.done()
