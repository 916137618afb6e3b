#!/usr/bin/python3 -B
"""Results of symm, trmm, trsm, syrk and ger that take their input's place come straight to it, in whole columns, or in panels of
columns or rows, these in cells. A device that fails on the way leaves what is not there to the CPU, which finds its input untouched, or put back."""

from faults import GPU, Fault, judge, report_on, run, sweep
from lib.log import parse_log
from lib.tap import Tap

CASES = "dsymm dtrmm dtrsm dtrmm-L dtrsm-L dtrmm-R dtrsm-R dtrsm-T dger dsyrk-L dsyrk-U".split()

tap = Tap()
for case in CASES:
    done, baseline = run("columns", [case], GPU)
    tap.ok(done.returncode == 0 and [f["ran"] for f in parse_log(done.stderr)] == ["gpu0"], f"{case}: right on the GPU", done.stdout, done.stderr[-500:])
    down, waits = baseline.calls.get("cuMemcpyDtoHAsync_v2", 0), baseline.calls.get("cuEventSynchronize", 0)
    planes = baseline.calls.get("cuMemcpy2DAsync_v2", 0)  # of triangles: up and down
    tap.ok(down + planes > 1, f"{case}: the result comes down in several of {down} and {planes} pieces")
    faults = [Fault(kind, f"cuMemcpyDtoHAsync:{n}{code}", "cuMemcpyDtoHAsync", True) for n in range(1, down + 1)
              for kind, code in (("once", ""), ("sticky", "=CUDA_ERROR_LAUNCH_FAILED"), ("no memory", "=CUDA_ERROR_OUT_OF_MEMORY"))]
    faults += [Fault("once", f"cuEventSynchronize:{n}", "cuEventSynchronize", True) for n in range(1, waits + 1)]
    faults += [Fault(kind, f"cuMemcpy2DAsync:{n}{code}", "cuMemcpy2DAsync", True) for n in range(1, planes + 1)
               for kind, code in (("once", ""), ("sticky", "=CUDA_ERROR_LAUNCH_FAILED"), ("no memory", "=CUDA_ERROR_OUT_OF_MEMORY"))]
    faults += [Fault("once", "cuStreamSynchronize:1", "cuStreamSynchronize", True)]
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_ECC_UNCORRECTABLE", "async", True) for n in range(1, baseline.operations() + 1)]
    begun = []

    def attempt(fault):
        done, report = run("columns", [case], {**GPU, "TESTGPU_FAIL": fault.plant})
        begun.extend(f for f in parse_log(done.stderr) if f["ran"] == "gpu0+cpu")
        return judge(fault, done, report, baseline, f"{case}: 0 wrong")

    report_on(tap, case, "results in columns", sweep(faults, attempt), least=8)
    tap.ok(begun, f"{case}: {len(begun)} runs keep the columns that have come, and the CPU does the rest")
tap.done()
