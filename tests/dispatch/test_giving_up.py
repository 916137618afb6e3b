#!/usr/bin/python3 -B
"""What is given up after a failure, and how that is said: a routine where a library fails at it, LAPACK where cuSOLVER does not start, the
device where its stream is broken or cuBLAS does not start; nothing where memory was short."""

from lib.log import lines_for, outcomes, said
from lib.programs import LOG, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
QUICK = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}


def ran(done, symbol):
    return outcomes(lines_for(done, sym=symbol))


def attempt(name, fault, steps, expected, words, env={}, status=0):
    """expected: of each routine where its calls ran and why; words: what the one message has, None for no message."""
    done = start("steps", *steps, env={**QUICK, "TESTGPU_FAIL": fault, **env})
    right = done.returncode == status and (status or done.stdout.count(" 0 wrong") == len(steps))
    tap.ok(right and all(ran(done, symbol) == wanted for symbol, wanted in expected.items()), f"{name}: what ran where", done.stdout, done.stderr)
    spoken = said(done)
    tap.ok(not spoken if words is None else len(spoken) == 1 and all(word in spoken[0] for word in words), f"{name}: what was said", *spoken)


ERROR, GPU = ("cpu", "error"), ("gpu0", "forced")

# A routine, while the stream is fine: 13, 14 of cuBLAS, 7 of cuSOLVER.
for status in ("EXECUTION_FAILED", "INTERNAL_ERROR", "NOT_INITIALIZED", "INVALID_VALUE"):
    attempt(f"cublasDgemm: {status}", f"cublasDgemm:1=CUBLAS_STATUS_{status}", ["dgemm:100:3", "solve:100:2"],
            {"dgemm_": 3 * [ERROR], "dgesv_": 2 * [GPU]},
            ["dgemm is left to the CPU", "gpu0 goes on with other routines", "cublasDgemm", "CUBLAS_STATUS_" + status])
for status in ("EXECUTION_FAILED", "INTERNAL_ERROR"):
    attempt(f"cusolverDnXgetrf: {status}", f"cusolverDnXgetrf:1=CUSOLVER_STATUS_{status}", ["solve:100:2", "dgemm:100:2"],
            {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]}, ["dgesv is left to the CPU", "cusolverDnXgetrf", "CUSOLVER_STATUS_" + status])

# The same statuses over a stream or context that is broken.
broken = "cuStreamSynchronize:1+=CUDA_ERROR_ILLEGAL_ADDRESS"
attempt("cublasDgemm, and a broken stream", "cublasDgemm:1=CUBLAS_STATUS_INTERNAL_ERROR," + broken, ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]}, ["gpu0 is left alone", "cublasDgemm", "CUBLAS_STATUS_INTERNAL_ERROR", "CUDA_ERROR_ILLEGAL_ADDRESS"])
attempt("an operation that breaks the context", "async:2=CUDA_ERROR_ILLEGAL_ADDRESS", ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]}, ["gpu0 is left alone", "CUDA_ERROR_ILLEGAL_ADDRESS"])

# cuSOLVER: one failure at its start is tried again, more are LAPACK's end, and not that of BLAS.
attempt("cusolverDnCreate fails once", "cusolverDnCreate:1=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:1"],
        {"dgesv_": 2 * [GPU], "dgemm_": [GPU]}, None)
attempt("cusolverDnCreate always fails", "cusolverDnCreate:1+=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]}, ["LAPACK is left to the CPU", "goes on with BLAS", "cusolverDnCreate", "CUSOLVER_STATUS_INTERNAL_ERROR"])
attempt("cusolverDnSetStream fails", "cusolverDnSetStream:1=CUSOLVER_STATUS_INTERNAL_ERROR", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [ERROR], "dgemm_": 2 * [GPU]}, ["LAPACK is left to the CPU", "cusolverDnSetStream"])

# It answers INTERNAL_ERROR where memory is short, too: our idle memory makes room.
full = {"TESTGPU_MEMORY": "40M", "ACCEL_MEMORY": "39M"}
attempt("cusolverDnCreate without memory, which lies idle in our pool", "", ["dgemm:1200:1", "solve:100:2", "dgemm:100:1"],
        {"dgesv_": 2 * [GPU], "dgemm_": 2 * [GPU]}, None, full)
attempt("cusolverDnCreate without memory, which others have", "", ["solve:100:2", "dgemm:100:2"],
        {"dgesv_": 2 * [("cpu", "no_memory")], "dgemm_": 2 * [GPU]}, None, {"TESTGPU_TAKEN": "1014M"})
attempt("cublasDgemm fails where memory is short", "cublasDgemm:1=CUBLAS_STATUS_EXECUTION_FAILED", ["dgemm:100:2"],
        {"dgemm_": [("cpu", "no_memory"), GPU]}, None, {"TESTGPU_TAKEN": "900M"})

# cuBLAS does not start: lack of memory passes, and says nothing; else the driver does not suit it.
attempt("cublasCreate: NOT_INITIALIZED with memory ample", "cublasCreate:1+=CUBLAS_STATUS_NOT_INITIALIZED", ["dgemm:100:2", "solve:100:1"],
        {"dgemm_": 2 * [ERROR], "dgesv_": [ERROR]},
        ["gpu0 is left alone", "cublasCreate", "CUBLAS_STATUS_NOT_INITIALIZED", "cuBLAS 13.", "/libcublas.so.13", "driver for CUDA 13."])
attempt("cublasCreate: NOT_INITIALIZED with memory short", "cublasCreate:1=CUBLAS_STATUS_NOT_INITIALIZED,cublasCreate:2=CUBLAS_STATUS_NOT_INITIALIZED",
        ["dgemm:100:2"], {"dgemm_": [("cpu", "no_memory"), GPU]}, None, {"TESTGPU_TAKEN": "900M"})
attempt("cublasCreate: ALLOC_FAILED", "cublasCreate:1,cublasCreate:2", ["dgemm:100:2"], {"dgemm_": [("cpu", "no_memory"), GPU]}, None)

# ACCEL_REQUIRE=gpu does not go on without a routine, and says which.
done = start("steps", "dgemm:100:1", env={**QUICK, "ACCEL_REQUIRE": "gpu", "TESTGPU_FAIL": "cublasDgemm:1=CUBLAS_STATUS_INTERNAL_ERROR"})
tap.ok(done.returncode == 1 and "cublasDgemm" in said(done)[-1] and "the program is ended" in said(done)[-1], "ACCEL_REQUIRE=gpu: the program is ended",
       done.returncode, done.stderr)

# Several threads at the same routine: said once.
done = start("steps", "threads:8:100:6", env={**QUICK, "TESTGPU_FAIL": "cublasDgemm:5+=CUBLAS_STATUS_INTERNAL_ERROR"})
tap.ok(done.returncode == 0 and len(said(done)) == 1 and ERROR in ran(done, "dgemm_") and " 0 wrong" in done.stdout, "eight threads: right, and said once",
       done.stdout, *said(done))

# What had been finished of a call that goes in parts stays, and the CPU does the rest.
done = start("steps", "dgemm:300:2", env={**QUICK, "ACCEL_MEMORY": "300K", "TESTGPU_FAIL": "cublasDgemm:9=CUBLAS_STATUS_INTERNAL_ERROR"})
tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and ran(done, "dgemm_") == [("gpu0+cpu", "error"), ERROR] and len(said(done)) == 1
       and "dgemm is left to the CPU" in said(done)[0], "in parts: finished by the CPU", done.stdout, done.stderr)

# A matrix of the program is on a GPU that libaccel cannot start.
done = start("cuda_program", "-c", 1, env={**QUICK, "ACCEL_POLICY": "auto", "ACCEL_DEVICES": "3"})
tap.ok(done.returncode == -6 and any("CUDA could not be started (gpu3: there is no device 3" in line for line in said(done)),
       "no GPU for a matrix on the GPU: the message says that CUDA could not be started", done.stdout, done.stderr[-500:])
tap.done()
