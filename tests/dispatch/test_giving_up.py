#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What is given up after a failure, and how that is said: a routine where a library fails at it, LAPACK where cuSOLVER
does not start, the device where its stream is broken or cuBLAS does not start; nothing where memory was short."""

from collections import namedtuple

import pytest

from lib.log import lines_for, outcomes, said
from lib.programs import LOG, TEST_GPU, start

QUICK = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}
ERROR, GPU, NO_MEMORY = ("cpu", "error"), ("gpu0", "forced"), ("cpu", "no_memory")
BROKEN = "cuStreamSynchronize:1+=CUDA_ERROR_ILLEGAL_ADDRESS"

# expected: of each routine where its calls ran and why; words: what the one message has, None for
# no message.
Case = namedtuple("Case", "fault steps expected words env", defaults=({},))
CASES = {
    # A routine, while the stream is fine: 13, 14 of cuBLAS, 7 of cuSOLVER.
    **{f"cublasDgemm: {status}": Case(
        f"cublasDgemm:1=CUBLAS_STATUS_{status}", ["dgemm:100:3", "solve:100:2"],
        {"dgemm_": 3 * [ERROR], "dgesv_": 2 * [GPU]},
        ["dgemm is left to the CPU", "gpu0 goes on with other routines", "cublasDgemm", "CUBLAS_STATUS_" + status])
       for status in ("EXECUTION_FAILED", "INTERNAL_ERROR", "NOT_INITIALIZED", "INVALID_VALUE")},
    **{f"cusolverDnXgetrf: {status}": Case(
        f"cusolverDnXgetrf:1=CUSOLVER_STATUS_{status}", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]},
        ["dgesv is left to the CPU", "cusolverDnXgetrf", "CUSOLVER_STATUS_" + status])
       for status in ("EXECUTION_FAILED", "INTERNAL_ERROR")},
    # The same statuses over a stream or context that is broken.
    "cublasDgemm, and a broken stream": Case(
        "cublasDgemm:1=CUBLAS_STATUS_INTERNAL_ERROR," + BROKEN, ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]},
        ["gpu0 is left alone", "cublasDgemm", "CUBLAS_STATUS_INTERNAL_ERROR", "CUDA_ERROR_ILLEGAL_ADDRESS"]),
    "an operation that breaks the context": Case(
        "async:2=CUDA_ERROR_ILLEGAL_ADDRESS", ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]},
        ["gpu0 is left alone", "CUDA_ERROR_ILLEGAL_ADDRESS"]),
    # cuSOLVER: one failure at its start is tried again, more are LAPACK's end, and not that of
    # BLAS.
    "cusolverDnCreate fails once": Case(
        "cusolverDnCreate:1=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:1"],
        {"dgesv_": 2 * [GPU], "dgemm_": [GPU]}, None),
    "cusolverDnCreate always fails": Case(
        "cusolverDnCreate:1+=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]},
        ["LAPACK is left to the CPU", "goes on with BLAS", "cusolverDnCreate", "CUSOLVER_STATUS_INTERNAL_ERROR"]),
    "cusolverDnSetStream fails": Case(
        "cusolverDnSetStream:1=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]},
        ["LAPACK is left to the CPU", "cusolverDnSetStream"]),
    # It answers INTERNAL_ERROR where memory is short, too: our idle memory makes room.
    "cusolverDnCreate without memory, which lies idle in our pool": Case(
        "", ["dgemm:1200:1", "solve:100:2", "dgemm:100:1"], {"dgesv_": 2 * [GPU], "dgemm_": 2 * [GPU]}, None,
        {"TESTGPU_MEMORY": "40M", "ACCEL_MEMORY": "39M"}),
    "cusolverDnCreate without memory, which others have": Case(
        "", ["solve:100:2", "dgemm:100:2"], {"dgesv_": 2 * [NO_MEMORY], "dgemm_": 2 * [GPU]}, None,
        {"TESTGPU_TAKEN": "1014M"}),
    "cublasDgemm fails where memory is short": Case(
        "cublasDgemm:1=CUBLAS_STATUS_EXECUTION_FAILED", ["dgemm:100:2"], {"dgemm_": [NO_MEMORY, GPU]}, None,
        {"TESTGPU_TAKEN": "900M"}),
    # cuBLAS does not start: lack of memory passes, and says nothing; else the driver does not suit
    # it.
    "cublasCreate: NOT_INITIALIZED with memory ample": Case(
        "cublasCreate:1+=CUBLAS_STATUS_NOT_INITIALIZED", ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]},
        ["gpu0 is left alone", "cublasCreate", "CUBLAS_STATUS_NOT_INITIALIZED", "cuBLAS 13.", "/libcublas.so.13",
         "driver for CUDA 13."]),
    "cublasCreate: NOT_INITIALIZED with memory short": Case(
        "cublasCreate:1=CUBLAS_STATUS_NOT_INITIALIZED,cublasCreate:2=CUBLAS_STATUS_NOT_INITIALIZED", ["dgemm:100:2"],
        {"dgemm_": [NO_MEMORY, GPU]}, None,
        {"TESTGPU_TAKEN": "900M"}),
    "cublasCreate: ALLOC_FAILED": Case("cublasCreate:1,cublasCreate:2", ["dgemm:100:2"], {"dgemm_": [NO_MEMORY, GPU]},
                                       None),
}


def ran(done, symbol):
    return outcomes(lines_for(done, sym=symbol))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_ran_where_and_what_was_said(case):
    done = start("steps", *case.steps, env={**QUICK, "TESTGPU_FAIL": case.fault, **case.env})
    assert done.returncode == 0
    assert done.stdout.count(" 0 wrong") == len(case.steps)
    assert {symbol: ran(done, symbol) for symbol in case.expected} == case.expected
    if case.words is None:
        assert not said(done)
    else:
        (message,) = said(done)
        assert not [word for word in case.words if word not in message]


def test_require_does_not_go_on_without_a_routine_and_says_which():
    done = start("steps", "dgemm:100:1", env={**QUICK, "ACCEL_REQUIRE": "gpu",
                                              "TESTGPU_FAIL": "cublasDgemm:1=CUBLAS_STATUS_INTERNAL_ERROR"})
    assert done.returncode == 1
    assert "cublasDgemm" in said(done)[-1]
    assert "the program is ended" in said(done)[-1]


def test_eight_threads_at_the_same_routine_right_and_said_once():
    done = start("steps", "threads:8:100:6",
                 env={**QUICK, "TESTGPU_FAIL": "cublasDgemm:5+=CUBLAS_STATUS_INTERNAL_ERROR"})
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    assert ERROR in ran(done, "dgemm_")
    assert len(said(done)) == 1


def test_what_had_been_finished_of_a_call_that_goes_in_parts_stays():
    """The CPU does the rest."""
    done = start("steps", "dgemm:300:2", env={**QUICK, "ACCEL_MEMORY": "300K",
                                              "TESTGPU_FAIL": "cublasDgemm:9=CUBLAS_STATUS_INTERNAL_ERROR"})
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    assert ran(done, "dgemm_") == [("gpu0+cpu", "error"), ERROR]
    (message,) = said(done)
    assert "dgemm is left to the CPU" in message


def test_no_gpu_for_a_matrix_on_the_gpu_the_message_says_that_cuda_could_not_be_started():
    """A matrix of the program is on a GPU that libaccel cannot start."""
    done = start("cuda_program", "-c", 1, env={**QUICK, "ACCEL_POLICY": "auto", "ACCEL_DEVICES": "3"})
    assert done.returncode == -6
    assert any("CUDA could not be started (gpu3: there is no device 3" in line for line in said(done))
