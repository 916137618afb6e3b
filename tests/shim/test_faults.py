#!/usr/bin/python3 -B
"""Every CUDA and cuBLAS call made to fail in turn, once and for good, and every operation on a stream: every
result is still right, one line says why, the program goes on."""

import re
import tempfile
from pathlib import Path

from common import TEST_GPU, Tap, lines_for, said, start

tap = Tap()
WORKLOADS = {
    # Few and small, so that the sweep is short; operands in one piece, then in tiles and panels. The last number:
    # every which call is made to fail.
    "gemm": (["-c", 1, "-n", 60, "-s", 5, "-r", "?gemm"], {}, 1),
    "gemm in tiles": (["-c", 1, "-n", 160, "-s", 19, "-r", "?gemm"], {"ACCEL_MEMORY": "100K"}, 1),
    "double precision": (["-c", 1, "-n", 40, "-s", 3, "-r", "d*"], {}, 7),
    "complex in panels": (["-c", 1, "-n", 120, "-s", 7, "-r", "[z]*"], {"ACCEL_MEMORY": "120K"}, 17),
}


def count(arguments, extra):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        start("random_calls", *arguments, env={**TEST_GPU, **extra, "TESTGPU_REPORT": str(report)})
        text = report.read_text()
    calls = {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", text)}
    return calls, sum(calls.values())


def sweep(name, arguments, extra, faults):
    """All faults; one line each would be too many, so each group is one test that names what went wrong."""
    bad, quiet, finished_elsewhere = [], [], 0
    for fault in faults:
        done = start("random_calls", *arguments, env={**TEST_GPU, **extra, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
        if done.returncode != 0 or "0 wrong" not in done.stdout:
            bad.append(f"{fault}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
        given_up = lines_for(done, why="error") or lines_for(done, why="no_gpu")
        if given_up and len(said(done)) != 1 or len(said(done)) > 1:
            quiet.append(f"{fault}: {said(done)}")
        finished_elsewhere += len(lines_for(done, ran="gpu0+cpu"))
    tap.ok(faults and not bad, f"{name}: {len(faults)} faults, every result right", *bad[:5])
    tap.ok(not quiet, f"{name}: one line where the GPU is given up", *quiet[:5])
    return finished_elsewhere


begun = 0
for workload, (arguments, extra, step) in WORKLOADS.items():
    calls, total = count(arguments, extra)
    tap.ok(total > 50, f"{workload}: {total} calls to fail")
    sweep(f"{workload}, the n-th call, once", arguments, extra, [f"*:{n}" for n in range(1, total + 1, step)])
    elsewhere = sweep(f"{workload}, from the n-th call on", arguments, extra, [f"*:{n}+" for n in range(1, total + 1, step)])
    tap.note(f"{workload}: {elsewhere} calls were begun on the GPU and finished on the CPU")
    begun += elsewhere
    sweep(f"{workload}, sticky", arguments, extra,
          [f"{f}:2+=CUDA_ERROR_LAUNCH_FAILED" for f in calls if f.startswith("cu") and not f.startswith("cublas")])
    memory = [f"cuMemAlloc:{n}" for n in range(1, 9)] + ["cuMemAlloc:1+", "cuMemAlloc:3+", "cuMemHostAlloc:1", "cuMemHostAlloc:1+",
              "cublasCreate:1", "cublasCreate:1+"]
    sweep(f"{workload}, out of memory", arguments, extra, memory)
    operations = calls.get("cuMemcpyHtoDAsync_v2", 0) + calls.get("cuMemcpyDtoHAsync_v2", 0)
    for code in ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE"):
        sweep(f"{workload}, {code} while it runs", arguments, extra,
              [f"async:{n}={code}" for n in range(1, operations + 5, step)])
tap.ok(begun > 0, "some calls were begun on the GPU and finished on the CPU")

# Out of memory passes: the GPU stays in use.
done = start("random_calls", "-c", 6, "-s", 3, "-r", "?gemm", env={**TEST_GPU, "TESTGPU_FAIL": "cuMemHostAlloc:1", "ACCEL_LOG": "1"})
tap.ok(len(lines_for(done, why="no_memory")) == 1 and lines_for(done, ran="gpu0"), "out of memory is not for good",
       done.stderr[-600:])
tap.ok(not said(done), "and nothing is said of it but in the log", *said(done))

# More threads than there are lanes wait for one when the device fails.
done = start("random_calls", "-c", 2, "-r", "?gemm", 40, timeout=120,
             env={**TEST_GPU, "TESTGPU_FAIL": "async:60=CUDA_ERROR_LAUNCH_FAILED"})
tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, "40 threads: none waits for ever", done.stdout, done.stderr[-500:])

# With 8 threads under way when the device fails.
for fault in ("cuEventSynchronize:40+", "cublasDgemm:5", "async:60=CUDA_ERROR_LAUNCH_FAILED", "cuMemAlloc:6+"):
    done = start("random_calls", "-c", 5, 8, env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, f"8 threads, {fault}", done.stdout, done.stderr[-500:])
    tap.ok(len(said(done)) <= 1, f"8 threads, {fault}: said once", *said(done))
tap.done()
