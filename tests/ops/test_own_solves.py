#!/usr/bin/python3 -B
"""Solutions by a triangle with the kernel of our own, where the calibration says that it is faster: the program's results are exact, whole or in blocks, on every
side and with every flag; also if the kernel cannot be loaded or fails. Without such a line, and for complex numbers, matrices that the program keeps on the device, and
builds without the kernel, cuBLAS solves. With TEST_LONG=1 more random calls."""

import re
import tempfile
from pathlib import Path

from lib.calibrated import keys, put
from lib.log import lines_for
from lib.programs import BUILD, LONG, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
IS_BUILT = (BUILD / "gpu/own/own.fatbin").stat().st_size > 0
KERNEL = r" run own_substitute_(\w) "
SOLVES = "solve_s_blas_gbps=70\nsolve_d_blas_gbps=70\nsolve_d_blas_row_ms=0.0004\n"
OWN = SOLVES + "solve_s_own_gbps=300\nsolve_d_own_gbps=300\nsolve_s_own_nrhs=400\nsolve_d_own_nrhs=400\n"


def run(case, solves, program="triangles", **env):
    """The finished process, the first line of its log, the kernel's launches by type, the calls of cuBLAS's solve, and the test GPU's report."""
    with tempfile.TemporaryDirectory() as folder:
        model, trace, report = (Path(folder, name) for name in ("model", "trace", "report"))
        found = keys(folder)
        put(model, {found["blas"]: "", found["lapack"]: "", found["gpu"]: f"up_gbps=11\ndown_gbps=11\n{solves}"})
        done = start(program, *case.split(), env={**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off", "ACCEL_MODEL": str(model), "TESTGPU_DELAY_US": "0",
                                             "TESTGPU_TRACE": str(trace), "TESTGPU_REPORT": str(report), **env})
        text = trace.read_text()
        return done, (lines_for(done) or [{}])[0], re.findall(KERNEL, text), len(re.findall(r" run \w*trsm\w* ", text)), report.read_text()


WHOLE = [f"{t}trsm:{flags}:{order}:{sides}:3" for t, flags, order, sides in
         (("d", "LUNN", 100, 500), ("s", "LLTU", 65, 430), ("d", "RLCN", 64, 400), ("s", "RUNU", 150, 410))]
DIVIDED = ["dtrsm:LLNN:300:2600:0", "dtrsm:RLNU:300:1800:5", "strsm:LUTN:520:1900:0"]
for case in WHOLE + DIVIDED if IS_BUILT else []:
    expected = start("triangles", case).stdout
    done, line, own, blas, report = run(case, OWN)
    tap.ok(done.stdout == expected and line.get("ran") == "gpu0" and "testgpu fault " not in report, f"{case}: the result is exact", done.stdout, expected, line, report[-300:])
    tap.ok(set(own) == {case[0]} and blas < len(own), f"{case}: {len(own)} launches of the kernel", own[:3], blas)  # triangles of less than 64 rows are cuBLAS's
    # cuBLAS's: the same line of the log, except for times.
    done, line, own, blas, _ = run(case, SOLVES)
    tap.ok(done.stdout == expected and line.get("ran") == "gpu0" and not own and blas, f"{case}: cuBLAS solves if it is faster", own[:3], blas)
if not IS_BUILT:
    print("# skipped: the build has no nvcc, so there is no kernel")

# Every flag, gaps, NaN in what must not be read, NaN and Inf beside numbers.
ANY = OWN.replace("nrhs=400", "nrhs=1")
for order, calls in ((90, 60), (400, 12)) if IS_BUILT else ():
    done, _, own, blas, report = run(f"-c {calls * (5 if LONG else 1)} -n {order} -s {order} -r [sd]trsm", ANY, program="random_calls")
    tap.ok(done.returncode == 0 and done.stdout.endswith(" 0 wrong\n") and "testgpu fault " not in report, f"random calls, orders up to {order}: all are right", done.stdout[-200:], report[-300:])
    tap.ok(len(own) > calls / 4 and set(own) == {"s", "d"}, f"random calls, orders up to {order}: {len(own)} launches of the kernel", own[:3], blas)

# Host, device and managed memory: a matrix that is on the device is cuBLAS's.
done, _, own, blas, report = run("-c 12 -n 90 -r [sd]trsm", ANY, program="cuda_program")
tap.ok(done.returncode == 0 and "testgpu fault " not in report and (own or not IS_BUILT) and blas, "a program with CUDA of its own: all is right, by both ways", done.returncode,
       done.stdout[-200:], done.stderr[-200:], len(own), blas)

case = "ztrsm:LLCN:100:1100:0"
done, line, own, blas, report = run(case, OWN)
tap.ok(done.stdout == start("triangles", case).stdout and line.get("ran") == "gpu0" and not own and blas, f"{case}: cuBLAS solves", own, blas)

# ---- Estimates ----


def estimated(solves, nrhs, routine="dtrsm", **env):
    """What a call is thought to take."""
    with tempfile.TemporaryDirectory() as folder:
        found, model = keys(folder), Path(folder, "model")
        put(model, {found["blas"]: "", found["lapack"]: "", found["gpu"]: f"up_gbps=11\ndown_gbps=11\n{solves}"})
        done = start("triangles", f"{routine}:LLNN:300:{nrhs}:0", env={**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off", "ACCEL_MODEL": str(model), "TESTGPU_DELAY_US": "0", **env})
        return float((lines_for(done) or [{"est_gpu_ms": 0}])[0]["est_gpu_ms"])


VALUES = "solve_d_blas_gbps={}\nsolve_d_blas_row_ms={}\nsolve_d_own_gbps={}\nsolve_d_own_row_ms={}\nsolve_d_own_nrhs={}\n"
fast, slow = (1000, 1e-5), (0.5, 0.1)
all_fast, blas_slow, own_slow = (estimated(VALUES.format(*blas, *own, 1), 2600) for blas, own in ((fast, fast), (slow, fast), (fast, slow)))
tap.ok(own_slow > 2 * all_fast and abs(blas_slow / all_fast - 1) < 0.01, "where our own kernel solves, estimates count its time", all_fast, blas_slow, own_slow)
all_fast, blas_slow, own_slow = (estimated(VALUES.format(*blas, *own, 10 ** 6), 2600) for blas, own in ((fast, fast), (slow, fast), (fast, slow)))
tap.ok(blas_slow > 2 * all_fast and abs(own_slow / all_fast - 1) < 0.01, "where cuBLAS solves, its own", all_fast, blas_slow, own_slow)

single = [VALUES.format(*fast, *own, 1).replace("_d_", "_s_") for own in (fast, slow)]
native, other = ([estimated(values, 5200, "strsm", ACCEL_PRECISION=precision) for values in single] for precision in ("native", "tf32"))
tap.ok(native[1] > 2 * native[0] and abs(other[1] / other[0] - 1) < 0.01, "in another precision cuBLAS solves, too", native, other)

# ---- Failures ----

# Before a kernel is launched, cuBLAS takes its place: the image has nothing for this device, or its
# memory is short, or the driver fails.
case = "dtrsm:LUNN:200:500:3"
expected = start("triangles", case).stdout
for call in ("cuModuleLoadData:1=200", "cuModuleLoadData:1+=2", "cuModuleGetFunction:1", "cuFuncGetAttribute:1", "cuOccupancyMaxActiveBlocksPerMultiprocessor:1") if IS_BUILT else ():
    done, line, own, blas, report = run(case, OWN, TESTGPU_FAIL=call)
    tap.ok(done.stdout == expected and line.get("ran") == "gpu0" and "fired=0" not in report and not own and blas, f"{case}: cuBLAS solves if {call} fails", line, own, blas,
           report[-200:], done.stderr[-300:])

# Behind that, the program's own BLAS does: all of a small call, of others what has not come down.
for case, calls in {case: ("cuModuleGetFunction:2", "cuLaunchKernel:1", "cublasDgemm_v2_64:1", "cuLaunchKernel:2"),
                    "dtrsm:LLNN:300:2600:0": [f"{name}:{n}" for name in ("cuLaunchKernel", "cublasDgemm_v2_64") for n in (1, 2, 4, 5)],
                    "dtrsm:RLNU:300:1800:5": [f"{name}:{n}" for name in ("cuLaunchKernel", "cublasDgemm_v2_64") for n in (1, 2, 3)]}.items() if IS_BUILT else ():
    expected = start("triangles", case).stdout
    for call in calls:
        done, line, own, blas, report = run(case, OWN, TESTGPU_FAIL=call)
        tap.ok(done.stdout == expected and line.get("ran") in ("cpu", "gpu0+cpu") and "fired=1" in report, f"{case}: the result is exact if {call} fails", line, own, blas,
               report[-200:], done.stderr[-300:])
tap.done()
