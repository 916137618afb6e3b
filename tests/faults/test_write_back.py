#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK results of more than 16 MB that take their input's place. A device that fails before the first of it has
come leaves the call to the CPU; one that fails after that has made a right result impossible: the program is stopped,
with a message, and never goes on with a wrong one."""

import re

import pytest

from faults.faults import GPU, Fault, check, judge, run, sweep, uses
from lib.log import parse_log

TRIANGLES = "dpotrf dtrtri".split()  # half of 17 MB comes down, in copies of columns without what is above them
CODES = {"once": "", "sticky": "=CUDA_ERROR_LAUNCH_FAILED", "no memory": "=CUDA_ERROR_OUT_OF_MEMORY"}
CASES = "dgetrf dgeqrf dpotrf dtrtri dgesv dposv dgels dgesdd".split()

@pytest.mark.parametrize("case", CASES)
def test_before_it_is_written_the_cpu_computes_and_after_that_the_program_is_stopped(case):
    done, baseline = run("write_back", [case], GPU)
    lines = [f for f in parse_log(done.stderr) if f["sym"] == case + "_" and f["why"] != "workspace_query"]
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert [f["ran"] for f in lines] == ["gpu0"]
    assert float(lines[0]["down_mb"]) > (8.7 if case in TRIANGLES else 16)
    copy = "cuMemcpy2DAsync" if case in TRIANGLES else "cuMemcpyDtoHAsync"
    down = baseline.calls[copy + "_v2"]
    waits = baseline.calls["cuEventSynchronize"]
    last = range(max(1, down - 18), down + 1)  # copies of 1 MB at most
    numbers = {last[0], last[1], last[len(last) // 2], last[-1]} | {1}
    if case in TRIANGLES:  # half of them go up
        assert down >= 64
        numbers |= {down // 2, down // 2 + 1, down // 2 + 2}
    faults = [Fault(kind, f"{copy}:{n}{code}", copy, True) for n in sorted(numbers) for kind, code in CODES.items()]
    faults += [Fault("once", f"cuEventSynchronize:{n}", "cuEventSynchronize", True)
               for n in uses(waits, 4)[1:] + [max(1, waits - 9)]]
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_ECC_UNCORRECTABLE", "async", True)
               for n in uses(baseline.operations(), 4)]
    if case in TRIANGLES:
        faults += [Fault("for good", f"{copy}:{n}+", copy, True) for n in (1, down // 2, down // 2 + 2, down)]
    last_wait = f"cuStreamSynchronize:{baseline.calls['cuStreamSynchronize']}"
    faults.append(Fault("once", last_wait, "cuStreamSynchronize", True))

    def attempt(fault):
        done, report = run("write_back", [case], {**GPU, "TESTGPU_FAIL": fault.plant})
        return judge(fault, done, report, baseline, f"{case}: 0 wrong", may_stop=True)

    outcomes = sweep(faults, attempt)
    count = check("results over 16 MB", outcomes, least=15)
    assert count["stopped"] > 0
    assert count["recovered"] > 0
    # The message names the call and what failed.
    for message in {o.detail for o in outcomes if o.what == "stopped"}:
        assert re.match(rf"accel: {case}_: (the GPU failed \(cu\w+: |no memory is left )", message)
