#!/usr/bin/python3 -B
"""Every CUDA and cuBLAS call made to fail in turn, once and for good, and every operation on a stream: every
result is still right, one line says why, the program goes on. With TEST_LONG=1 every one of them, else some."""

import re
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import LONG, TEST_GPU, TESTS, start
from lib.tap import Tap

SPARSER = 1 if LONG else 10
tap = Tap()
PROVIDER = ["-f", "y"]  # what OpenBLAS 0.3.21 itself gets wrong: calls.c
LACKING = ["-l", TESTS / "liblacking.so", *PROVIDER]
WORKLOADS = {
    # Few and small, so that the sweep is short; operands in one piece, then in tiles and panels.
    # The last number: every which call is made to fail, with TEST_LONG=1; else each SPARSER-th of
    # those.
    "gemm": (["-c", 1, "-n", 60, "-s", 5, "-r", "?gemm"], {}, 1),
    "gemm in tiles": (["-c", 1, "-n", 160, "-s", 19, "-r", "?gemm"], {"ACCEL_MEMORY": "40K"}, 1),
    "Level 3 by a schedule, short of memory": (["-c", 1, "-n", 200, "-s", 17, "-r", "@(dgemm|zsymm|dsyrk|zher2k|dtrmm|ztrsm)"],
                                               {"ACCEL_MEMORY": "80K"}, 23),
    "copies that threads help with": (["-c", 3, "-n", 900, "-s", 3, "-r", "d@(gemv|ger|syr2)"], {}, 8),
    "double precision": (["-c", 1, "-n", 40, "-s", 3, "-r", "d*"], {}, 7),
    "complex in panels": (["-c", 1, "-n", 120, "-s", 7, "-r", "[z]*"], {"ACCEL_MEMORY": "120K"}, 17),
    "level 2 in strips": (["-c", 3, "-n", 150, "-s", 2, "-r", "[cd]@(ge|he|sy|tr)@(mv|r|rc|r2|sv)"],
                          {"ACCEL_MEMORY": "40K"}, 23),
    "batches": ([*LACKING, "-c", 3, "-n", 60, "-s", 4, "-r", "[dc]gemm_batch*"], {}, 3),
    "batches in loads and tiles": ([*LACKING, "-c", 3, "-n", 60, "-s", 4, "-r", "[dc]gemm_batch*"],
                                   {"ACCEL_MEMORY": "60K"}, 17),
    "gemmt, bfloat16": ([*LACKING, "-c", 2, "-n", 150, "-s", 117, "-r", "@([sz]gemmt|sbgemm)"],
                        {"ACCEL_MEMORY": "60K"}, 1),
}


def count(arguments, extra, program="random_calls"):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        start(program, *arguments, env={**TEST_GPU, **extra, "TESTGPU_REPORT": str(report)})
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


if LONG:  # with memory for all, only large products have a schedule
    WORKLOADS["Level 3 by a schedule"] = (["-c", 1, "-n", 700, "-s", 11, "-r", "@(dgemm|dsyrk)"], {}, 17)

begun = 0
for first, (workload, (arguments, extra, step)) in enumerate(WORKLOADS.items()):
    step *= SPARSER
    # Of lists, the short form has a quarter in each workload, another one in the next.
    some = slice(None) if LONG else slice(first % 4, None, 4)
    calls, total = count(arguments, extra)
    tap.ok(total > 50, f"{workload}: {total} calls to fail")
    sweep(f"{workload}, the n-th call, once", arguments, extra, [f"*:{n}" for n in range(1, total + 1, step)])
    elsewhere = sweep(f"{workload}, from the n-th call on", arguments, extra, [f"*:{n}+" for n in range(1, total + 1, step)])
    tap.note(f"{workload}: {elsewhere} calls were begun on the GPU and finished on the CPU")
    begun += elsewhere
    sweep(f"{workload}, sticky", arguments, extra,
          [f"{f}:2+=CUDA_ERROR_LAUNCH_FAILED" for f in calls if f.startswith("cu") and not f.startswith("cublas")][some])
    memory = [f"cuMemAlloc:{n}" for n in range(1, 9)] + ["cuMemAlloc:1+", "cuMemAlloc:3+", "cuMemHostAlloc:1", "cuMemHostAlloc:1+",
              "cublasCreate:1", "cublasCreate:1+"]
    sweep(f"{workload}, out of memory", arguments, extra, memory[some])
    operations = calls.get("cuMemcpyHtoDAsync_v2", 0) + calls.get("cuMemcpyDtoHAsync_v2", 0)
    for code in ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE"):
        sweep(f"{workload}, {code} while it runs", arguments, extra,
              [f"async:{n}={code}" for n in range(1, operations + 5, step)])
tap.ok(begun > 0, "some calls were begun on the GPU and finished on the CPU")

# A program whose operands are in device and managed memory, or in part. Short of memory, every
# result is right and nothing stops the program; where the device fails, it is right, or the program
# is stopped.
for name, arguments, extra in (
    ("Level 3", ["-n", 40, "-r", "[dz]@(gemm|symm|syrk|her2k|trsm|trmm)"], {"ACCEL_MEMORY": "60K"}),
    ("Level 2", ["-n", 40, "-r", "[dz]@(gemv|hemv|trsv|ger|her2)", "-i", "cblas-row"], {}),
    ("batches", [*LACKING, "-n", 40, "-r", "[dz]gemm_batch*"], {"ACCEL_MEMORY": "60K"}),
    ("gemmt, bfloat16", [*LACKING, "-n", 40, "-r", "@([dz]gemmt|sbgemm)"], {}),
):
    arguments = ["-c", 1, *arguments]
    calls, total = count(arguments, extra, "cuda_program")
    short = [f"cuMemAlloc:{n}{more}" for n in range(1, calls["cuMemAlloc_v2"] + 1, 7) for more in ("", "+")]
    for function in (f for f in calls if re.match("cublas([SDCZ]|GemmEx)", f)):
        for n in range(1, calls[function] + 1, calls[function] // 2 + 1):
            once, twice = (f"{function}:{i}=CUBLAS_STATUS_ALLOC_FAILED" for i in (n, n + 1))
            short += [once, f"{once},{twice}"]
    lost = [f"{f}:{n}" for f in calls
            for n in (calls[f] // 2 + 1, calls[f])]
    lost += [f"async:{n}=CUDA_ERROR_LAUNCH_FAILED" for n in range(1, total // 4, total // 60)]
    for kind, faults, may_stop in ("short of memory", short, False), ("a failure", lost, True):
        bad, stopped = [], 0
        faults = faults[::SPARSER]
        for fault in faults:
            done = start("cuda_program", *arguments, env={**TEST_GPU, **extra, "TESTGPU_FAIL": fault, "TESTGPU_DELAY_US": "0"})
            is_stopped = "cannot be made right" in done.stderr
            stopped += is_stopped
            own = done.returncode == 3  # the program's own calls fail, too; and without a GPU, it crashes as ever
            own = own or "no GPU is used" in done.stderr
            if not (own or "\n0 calls wrong" in "\n" + done.stdout or is_stopped and may_stop):
                bad.append(f"{fault}: {done.returncode} {done.stdout} {done.stderr[-400:]}")
        tap.ok(len(faults) > 5 and not bad,
               f"device operands, {name}, {kind}: {len(faults)} faults, {stopped} stopped, none wrong", *bad[:4])

# What is only set to zero can be made right after a failure, also in device memory.
for fault in ("cuStreamSynchronize:1", "cuStreamSynchronize:2", "cublasDgemm:1", "cublasDgemm:2"):
    done = start("zero_alpha", env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    tap.ok(done.returncode == 0 and done.stdout == "0 wrong\n" and lines_for(done, ran="gpu0+cpu"), f"trmm and trsm by alpha = 0, {fault}", done.stdout, done.stderr[-500:])

# Without memory for those zeros, the original does all of it.
done = start("zero_alpha", env={**TEST_GPU, "TESTGPU_FAIL": "cuMemAlloc:2", "ACCEL_LOG": "1"})
tap.ok(done.returncode == 0 and done.stdout == "0 wrong\n" and lines_for(done, sym="dtrmm_", why="no_memory"), "trmm by alpha = 0 without memory for zeros",
       done.stdout, done.stderr[-500:])

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
    done = start("random_calls", *PROVIDER, "-c", 5 if LONG else 2, 8, env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, f"8 threads, {fault}", done.stdout, done.stderr[-500:])
    tap.ok(len(said(done)) <= 1, f"8 threads, {fault}: said once", *said(done))
tap.done()
