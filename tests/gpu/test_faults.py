#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Every CUDA and cuBLAS call made to fail in turn, once and for good, and every operation on a stream: every
result is still right, one line says why, the program goes on. With TEST_LONG=1 every one of them, else some."""

import re
import tempfile
from collections import namedtuple
from functools import cache
from pathlib import Path

import pytest

from lib.log import lines_for, said
from lib.programs import LONG, TEST_GPU, TESTS, start

SPARSER = 1 if LONG else 10
PROVIDER = ["-f", "y"]  # what OpenBLAS 0.3.21 itself gets wrong: calls.c
LACKING = ["-l", TESTS / "liblacking.so", *PROVIDER]
WORKLOADS = {
    # Few and small, so that the sweep is short; operands in one piece, then in tiles and panels.
    # The last number: every which call is made to fail, with TEST_LONG=1; else each SPARSER-th of
    # those.
    "gemm": (["-c", 1, "-n", 60, "-s", 5, "-r", "?gemm"], {}, 1),
    "gemm in tiles": (["-c", 1, "-n", 160, "-s", 19, "-r", "?gemm"], {"ACCEL_MEMORY": "40K"}, 1),
    "Level 3 by a schedule, short of memory": (["-c", 1, "-n", 200, "-s", 17, "-r",
                                                "@(dgemm|zsymm|dsyrk|zher2k|dtrmm|ztrsm)"],
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
if LONG:  # with memory for all, only large products have a schedule
    WORKLOADS["Level 3 by a schedule"] = (["-c", 1, "-n", 700, "-s", 11, "-r", "@(dgemm|dsyrk)"], {}, 17)

MEMORY = [*(f"cuMemAlloc:{n}" for n in range(1, 9)), "cuMemAlloc:1+", "cuMemAlloc:3+", "cuMemHostAlloc:1",
          "cuMemHostAlloc:1+",
          "cublasCreate:1", "cublasCreate:1+"]
CODES = ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE")
KINDS = ("the n-th call, once", "from the n-th call on", "sticky", "out of memory",
         *(f"{code} while it runs" for code in CODES))
each_workload = pytest.mark.parametrize("workload", WORKLOADS)

Sweep = namedtuple("Sweep", "faults wrong words elsewhere")


def count(arguments, extra, program):
    """name -> how often the program calls it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        start(program, *arguments, env={**TEST_GPU, **extra, "TESTGPU_REPORT": str(report)})
        return {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", report.read_text())}


@cache
def calls_of(workload):
    arguments, extra, _ = WORKLOADS[workload]
    return count(arguments, extra, "random_calls")


def faults_of(workload, kind):
    calls, step = calls_of(workload), WORKLOADS[workload][2] * SPARSER
    # Of lists, the short form has a quarter in each workload, another one in the next.
    some = slice(None) if LONG else slice([*WORKLOADS].index(workload) % 4, None, 4)
    if kind == "the n-th call, once":
        return [f"*:{n}" for n in range(1, sum(calls.values()) + 1, step)]
    if kind == "from the n-th call on":
        return [f"*:{n}+" for n in range(1, sum(calls.values()) + 1, step)]
    if kind == "sticky":
        return [f"{f}:2+=CUDA_ERROR_LAUNCH_FAILED" for f in calls if f.startswith("cu")
                and not f.startswith("cublas")][some]
    if kind == "out of memory":
        return MEMORY[some]
    operations = calls.get("cuMemcpyHtoDAsync_v2", 0) + calls.get("cuMemcpyDtoHAsync_v2", 0)
    return [f"async:{n}={kind.split()[0]}" for n in range(1, operations + 5, step)]


@cache
def sweep(workload, kind):
    """All faults of a kind; one test for each would be too many."""
    arguments, extra, _ = WORKLOADS[workload]
    result = Sweep(faults_of(workload, kind), [], [], [])
    for fault in result.faults:
        done = start("random_calls", *arguments, env={**TEST_GPU, **extra, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
        if done.returncode != 0 or "0 wrong" not in done.stdout:
            result.wrong.append(f"{fault}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
        given_up = lines_for(done, why="error") or lines_for(done, why="no_gpu")
        if given_up and len(said(done)) != 1 or len(said(done)) > 1:
            result.words.append(f"{fault}: {said(done)}")
        result.elsewhere.extend(lines_for(done, ran="gpu0+cpu"))
    return result


@each_workload
def test_there_are_calls_to_fail(workload):
    assert sum(calls_of(workload).values()) > 50


@pytest.mark.parametrize("kind", KINDS)
@each_workload
def test_every_result_is_right_and_one_line_says_where_the_gpu_is_given_up(workload, kind):
    found = sweep(workload, kind)
    assert found.faults
    assert not found.wrong
    assert not found.words


def test_some_calls_were_begun_on_the_gpu_and_finished_on_the_cpu():
    assert any(sweep(workload, "from the n-th call on").elsewhere for workload in WORKLOADS)


# A program whose operands are in device and managed memory, or in part. Short of memory, every
# result is right and nothing stops the program; where the device fails, it is right, or the program
# is stopped.
PLACED = {
    "Level 3": (["-n", 40, "-r", "[dz]@(gemm|symm|syrk|her2k|trsm|trmm)"], {"ACCEL_MEMORY": "60K"}),
    "Level 2": (["-n", 40, "-r", "[dz]@(gemv|hemv|trsv|ger|her2)", "-i", "cblas-row"], {}),
    "batches": ([*LACKING, "-n", 40, "-r", "[dz]gemm_batch*"], {"ACCEL_MEMORY": "60K"}),
    "gemmt, bfloat16": ([*LACKING, "-n", 40, "-r", "@([dz]gemmt|sbgemm)"], {}),
}


@cache
def calls_of_placed(name):
    arguments, extra = PLACED[name]
    return count(["-c", 1, *arguments], extra, "cuda_program")


def sweep_placed(name, faults, may_stop):
    arguments, extra = PLACED[name]
    faults = faults[::SPARSER]
    assert len(faults) > 5
    for fault in faults:
        done = start("cuda_program", "-c", 1, *arguments, env={**TEST_GPU, **extra, "TESTGPU_FAIL": fault,
                                                               "TESTGPU_DELAY_US": "0"})
        own = done.returncode == 3  # the program's own calls fail, too; and without a GPU, it crashes as ever
        own = own or "no GPU is used" in done.stderr
        stopped = may_stop and "cannot be made right" in done.stderr
        right = "\n0 calls wrong" in "\n" + done.stdout
        assert own or stopped or right, f"{fault}: {done.returncode} {done.stdout} {done.stderr[-400:]}"


@pytest.mark.parametrize("name", PLACED)
def test_device_operands_short_of_memory(name):
    calls = calls_of_placed(name)
    faults = [f"cuMemAlloc:{n}{more}" for n in range(1, calls["cuMemAlloc_v2"] + 1, 7) for more in ("", "+")]
    for function in (f for f in calls if re.match("cublas([SDCZ]|GemmEx)", f)):
        for n in range(1, calls[function] + 1, calls[function] // 2 + 1):
            once, twice = (f"{function}:{i}=CUBLAS_STATUS_ALLOC_FAILED" for i in (n, n + 1))
            faults += [once, f"{once},{twice}"]
    sweep_placed(name, faults, may_stop=False)


@pytest.mark.parametrize("name", PLACED)
def test_device_operands_and_a_failure(name):
    calls = calls_of_placed(name)
    total = sum(calls.values())
    faults = [f"{f}:{n}" for f in calls for n in (calls[f] // 2 + 1, calls[f])]
    faults += [f"async:{n}=CUDA_ERROR_LAUNCH_FAILED" for n in range(1, total // 4, total // 60)]
    sweep_placed(name, faults, may_stop=True)


@pytest.mark.parametrize("fault", ["cuStreamSynchronize:1", "cuStreamSynchronize:2", "cublasDgemm:1", "cublasDgemm:2"])
def test_what_is_only_set_to_zero_can_be_made_right_also_in_device_memory(fault):
    """trmm and trsm by alpha = 0."""
    done = start("zero_alpha", env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    assert done.returncode == 0
    assert done.stdout == "0 wrong\n"
    assert lines_for(done, ran="gpu0+cpu")


def test_without_memory_for_those_zeros_the_original_does_all_of_it():
    done = start("zero_alpha", env={**TEST_GPU, "TESTGPU_FAIL": "cuMemAlloc:2", "ACCEL_LOG": "1"})
    assert done.returncode == 0
    assert done.stdout == "0 wrong\n"
    assert lines_for(done, sym="dtrmm_", why="no_memory")


def test_out_of_memory_passes():
    """The GPU stays in use, and nothing is said of it but in the log."""
    done = start("random_calls", "-c", 6, "-s", 3, "-r", "?gemm",
                 env={**TEST_GPU, "TESTGPU_FAIL": "cuMemHostAlloc:1", "ACCEL_LOG": "1"})
    assert len(lines_for(done, why="no_memory")) == 1
    assert lines_for(done, ran="gpu0")
    assert not said(done)


def test_40_threads_none_waits_for_ever():
    """More threads than there are stream contexts wait for one when the device fails."""
    done = start("random_calls", "-c", 2, "-r", "?gemm", 40, timeout=120,
                 env={**TEST_GPU, "TESTGPU_FAIL": "async:60=CUDA_ERROR_LAUNCH_FAILED"})
    assert done.returncode == 0
    assert "0 wrong" in done.stdout


@pytest.mark.parametrize("fault", ["cuEventSynchronize:40+", "cublasDgemm:5", "async:60=CUDA_ERROR_LAUNCH_FAILED",
                                   "cuMemAlloc:6+"])
def test_8_threads_under_way_when_the_device_fails(fault):
    done = start("random_calls", *PROVIDER, "-c", 5 if LONG else 2, 8,
                 env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    assert done.returncode == 0
    assert "0 wrong" in done.stdout
    assert len(said(done)) <= 1
