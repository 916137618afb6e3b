#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK while CUDA fails: each CUDA, cuBLAS and cuSOLVER call made to fail in turn, once and for good,
short of memory and while it runs; with TEST_LONG=1 four times as many of them. Every result is right, every INFO as
without a fault, the program goes on, one line says why."""

import re
import tempfile
from functools import cache
from pathlib import Path

import pytest

from lib.log import lines_for, said
from lib.programs import LONG, PLAIN, TEST_GPU, start

# What OpenBLAS 0.3.21 itself gets wrong: cases.h. Its threads change the rounding, and here nothing
# else.
PROVIDER = ["-f", "tyesmv", "-c", 1, "-k", "@(uniform|well)"]
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
# The last number: every which call is made to fail; in the short form each SPARSER-th of those.
SPARSER = 1 if LONG else 4
WORKLOADS = {
    "LU": (["-n", 30, "-s", 3, "-r", "[dc]@(getr[fis]|gesv|laswp|gecon)"], {}, 9),
    "Cholesky, triangular": (["-n", 30, "-s", 4, "-r", "[sz]@(po*|tr*|lauum|lacpy)"], {}, 11),
    "Bunch-Kaufman": (["-n", 30, "-s", 5, "-r", "[dz]sy@(trf|trs|sv)"], {}, 7),
    "QR, least squares": (["-n", 30, "-s", 11, "-r", "d@(geqrf|or*|gels*)"], {}, 17),
    "eigenvalues": (["-n", 24, "-s", 7, "-r", "@([dz]@(sy|he)@(ev|evd|gvx)|[sc]geev)"], {}, 67),
    "singular values": (["-n", 24, "-s", 8, "-r", "[sz]ges@(vd|dd)"], {}, 5),
    "all in little memory": (["-n", 24, "-s", 9, "-r", "d*"], {"ACCEL_MEMORY": "20K"}, 607),
}
CODES = ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE")
KINDS = ("the n-th call, once", "from the n-th call on", "each function",
         "a solver without memory, or without this type",
         "out of memory", *(f"{code} while it runs" for code in CODES))


def run(*arguments, env):
    return start("random_lapack", *PROVIDER, *arguments, env={**QUICK, **env})


def summary(done):
    """The last line of a run's output: how many calls, how many wrong, a digest of every INFO."""
    return (done.stdout.splitlines() or [""])[-1]


@cache
def native(workload):
    done = run(*WORKLOADS[workload][0], env=PLAIN)
    assert done.returncode == 0, done.stderr
    assert " 0 wrong," in summary(done)
    return summary(done)


@cache
def calls_of(workload):
    """How often each function is called."""
    arguments, extra, _ = WORKLOADS[workload]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        run(*arguments, env={**TEST_GPU, **extra, "TESTGPU_REPORT": str(report)})
        return {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", report.read_text())}


def faults_of(workload, kind):
    calls = calls_of(workload)
    numbers = range(1, sum(calls.values()) + 1, WORKLOADS[workload][2] * SPARSER)
    if kind == "the n-th call, once":
        return [f"*:{n}" for n in numbers]
    if kind == "from the n-th call on":
        return [f"*:{n}+" for n in numbers[::2]]
    if kind == "each function":  # of the libraries: a call in the middle
        return [f"{f}:{n // 2 + 1}" for f, n in calls.items() if f.startswith("cu") and "_v2" not in f][::SPARSER]
    if kind.startswith("a solver"):  # their own ways to fail
        solvers = [f for f in calls if f.startswith("cusolverDn") and not re.search("Create|Destroy|SetStream", f)]
        return [f"{f}:1{more}=CUSOLVER_STATUS_{status}" for f in solvers
                for more in ("", "+") for status in ("ALLOC_FAILED", "NOT_SUPPORTED", "INTERNAL_ERROR")][::5 * SPARSER]
    if kind == "out of memory":
        taken = calls["cuMemAlloc_v2"]
        return [f"cuMemAlloc:{n}" for n in range(1, taken + 1, taken // (6 // SPARSER) + 1)] + [
            "cuMemAlloc:1+", "cuMemAlloc:3+", "cuMemHostAlloc:1", "cuMemHostAlloc:1+", "cusolverDnCreate:1",
            "cusolverDnCreate:1+"]
    operations = calls.get("cuMemcpyHtoDAsync_v2", 0) + calls.get("cuMemcpyDtoHAsync_v2", 0)
    return [f"async:{n}={kind.split()[0]}" for n in range(1, operations + 5, operations // (8 // SPARSER) + 1)]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_right_without_libaccel_and_there_are_calls_to_fail(workload):
    assert native(workload)
    assert sum(calls_of(workload).values()) > 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_result_is_right_and_one_line_says_what_is_given_up(workload, kind):
    """All faults of a kind; one test for each would be too many."""
    (arguments, extra, _), faults, bad, loud = WORKLOADS[workload], faults_of(workload, kind), [], []
    assert faults
    for fault in faults:
        done = run(*arguments, env={**TEST_GPU, **extra, "TESTGPU_FAIL": fault, "ACCEL_LOG": "2"})
        if done.returncode != 0 or summary(done) != native(workload):
            wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
            bad.append(f"{fault}: {done.returncode} {summary(done)} {wrong[:2]}")
        given_up = lines_for(done, why="error") or lines_for(done, why="no_gpu")
        # A library's failure is the routine's: a line for each of them. Anything else is the
        # device's, or LAPACK's.
        left = [re.match(r"accel: (\w+) is left to the CPU from here on, gpu0 goes on with other routines", line)
                for line in said(done)]
        right = len({m[1] for m in left}) == len(left) if all(left) else len(left) == 1
        if not right or bool(left) != bool(given_up):
            loud.append(f"{fault}: {said(done)}")
    assert not bad
    assert not loud


@pytest.mark.parametrize("fault", ["cuEventSynchronize:40+", "cusolverDnDgetrs:2", "async:60=CUDA_ERROR_LAUNCH_FAILED",
                                   "cuMemAlloc:30+"])
def test_8_threads_under_way_when_the_device_fails(fault):
    arguments = ["-n", 24, "-r", "d*", 8]
    done = run(*arguments, env={**TEST_GPU, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    assert done.returncode == 0, [line for line in done.stderr.splitlines() if line.startswith("wrong: ")][:4]
    assert summary(done) == summary(run(*arguments, env=PLAIN))
    assert len(said(done)) <= 1
