#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Results of symm, trmm, trsm, syrk and ger that take their input's place come straight to it, in whole columns, or
in panels of columns or rows, these in tiles. A device that fails on the way leaves what is not there to the CPU,
which finds its input untouched, or put back."""

import pytest

from faults.faults import GPU, Fault, check, judge, run, sweep
from lib.log import parse_log

CODES = {"once": "", "sticky": "=CUDA_ERROR_LAUNCH_FAILED", "no memory": "=CUDA_ERROR_OUT_OF_MEMORY"}
CASES = "dsymm dtrmm dtrsm dtrmm-L dtrsm-L dtrmm-R dtrsm-R dtrsm-T dger dsyrk-L dsyrk-U".split()

@pytest.mark.parametrize("case", CASES)
def test_columns_that_have_come_are_kept_and_the_cpu_does_the_rest(case):
    done, baseline = run("columns", [case], GPU)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert [f["ran"] for f in parse_log(done.stderr)] == ["gpu0"]
    down, waits = baseline.calls.get("cuMemcpyDtoHAsync_v2", 0), baseline.calls.get("cuEventSynchronize", 0)
    planes = baseline.calls.get("cuMemcpy2DAsync_v2", 0)  # of triangles: up and down
    assert down + planes > 1
    faults = [Fault(kind, f"{copy}:{n}{code}", copy, True)
              for copy, count in (("cuMemcpyDtoHAsync", down), ("cuMemcpy2DAsync", planes))
              for n in range(1, count + 1) for kind, code in CODES.items()]
    faults += [Fault("once", f"cuEventSynchronize:{n}", "cuEventSynchronize", True) for n in range(1, waits + 1)]
    faults += [Fault("once", "cuStreamSynchronize:1", "cuStreamSynchronize", True)]
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_ECC_UNCORRECTABLE", "async", True)
               for n in range(1, baseline.operations() + 1)]
    begun = []

    def attempt(fault):
        done, report = run("columns", [case], {**GPU, "TESTGPU_FAIL": fault.plant})
        begun.extend(f for f in parse_log(done.stderr) if f["ran"] == "gpu0+cpu")
        return judge(fault, done, report, baseline, f"{case}: 0 wrong")

    check("results in columns", sweep(faults, attempt), least=8)
    assert begun
