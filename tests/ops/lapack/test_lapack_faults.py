#!/usr/bin/python3 -B
"""[workload…] LAPACK while CUDA fails: each CUDA, cuBLAS and cuSOLVER call made to fail in turn, once and for good, short of memory and
while it runs; with TEST_LONG=1 four times as many of them. Every result is right, every INFO as without a fault, the program goes on, one line says why."""

import re
import sys
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import LONG, PLAIN, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
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


def summary(done):
    """The last line of a run's output: how many calls, how many wrong, a digest of every INFO."""
    return (done.stdout.splitlines() or [""])[-1]


def count(arguments, extra):
    """How often each function is called, and how many operations run on streams."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        start("random_lapack", *PROVIDER, *arguments, env={**TEST_GPU, **QUICK, **extra, "TESTGPU_REPORT": str(report)})
        calls = {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", report.read_text())}
    return calls, sum(calls.values()), calls.get("cuMemcpyHtoDAsync_v2", 0) + calls.get("cuMemcpyDtoHAsync_v2", 0)


def sweep(name, expected, arguments, extra, faults):
    """All faults; one line each would be too many, so each group is one test that names what went wrong."""
    bad, loud = [], []
    for fault in faults:
        done = start("random_lapack", *PROVIDER, *arguments,
                     env={**TEST_GPU, **QUICK, **extra, "TESTGPU_FAIL": fault, "ACCEL_LOG": "2"})
        if done.returncode != 0 or summary(done) != expected:
            wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
            bad.append(f"{fault}: {done.returncode} {summary(done)} {wrong[:2]}")
        given_up = lines_for(done, why="error") or lines_for(done, why="no_gpu")
        # A library's failure is the routine's: a line for each of them. Anything else is the
        # device's, or LAPACK's.
        left = [re.match(r"accel: (\w+) is left to the CPU from here on, gpu0 goes on with other routines", line) for line in said(done)]
        right = len({m[1] for m in left}) == len(left) if all(left) else len(left) == 1
        if not right or bool(left) != bool(given_up):
            loud.append(f"{fault}: {said(done)}")
    tap.ok(faults and not bad, f"{name}: {len(faults)} faults, every result right", *bad[:5])
    tap.ok(not loud, f"{name}: one line for what is given up", *loud[:5])


for workload, (arguments, extra, step) in WORKLOADS.items():
    if len(sys.argv) > 1 and workload not in sys.argv:
        continue
    native = start("random_lapack", *PROVIDER, *arguments, env={**PLAIN, **QUICK})
    expected = summary(native)
    tap.ok(native.returncode == 0 and " 0 wrong," in expected, f"{workload}: right without libaccel", native.stdout, native.stderr)
    calls, total, operations = count(arguments, extra)
    tap.ok(total > 50, f"{workload}: {total} calls to fail")

    def faults(name, faults):
        return sweep(f"{workload}, {name}", expected, arguments, extra, faults)

    numbers = range(1, total + 1, step * SPARSER)
    faults("the n-th call, once", [f"*:{n}" for n in numbers])
    faults("from the n-th call on", [f"*:{n}+" for n in list(numbers)[::2]])
    # Of each function of the libraries a call in the middle; the solvers' own ways to fail.
    faults("each function", [f"{f}:{n // 2 + 1}" for f, n in calls.items() if f.startswith("cu") and "_v2" not in f][::SPARSER])
    solvers = [f for f in calls if f.startswith("cusolverDn") and not re.search("Create|Destroy|SetStream", f)]
    faults("a solver without memory, or without this type",
           [f"{f}:1{more}=CUSOLVER_STATUS_{status}" for f in solvers
            for more in ("", "+") for status in ("ALLOC_FAILED", "NOT_SUPPORTED", "INTERNAL_ERROR")][::5 * SPARSER])
    faults("out of memory", [f"cuMemAlloc:{n}" for n in range(1, calls["cuMemAlloc_v2"] + 1, calls["cuMemAlloc_v2"] // (6 // SPARSER) + 1)] +
           ["cuMemAlloc:1+", "cuMemAlloc:3+", "cuMemHostAlloc:1", "cuMemHostAlloc:1+", "cusolverDnCreate:1", "cusolverDnCreate:1+"])
    for code in ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE"):
        faults(f"{code} while it runs", [f"async:{n}={code}" for n in range(1, operations + 5, operations // (8 // SPARSER) + 1)])

# With 8 threads under way when the device fails.
native = start("random_lapack", *PROVIDER, "-n", 24, "-r", "d*", 8, env={**PLAIN, **QUICK})
for fault in ("cuEventSynchronize:40+", "cusolverDnDgetrs:2", "async:60=CUDA_ERROR_LAUNCH_FAILED", "cuMemAlloc:30+"):
    done = start("random_lapack", *PROVIDER, "-n", 24, "-r", "d*", 8, env={**TEST_GPU, **QUICK, "TESTGPU_FAIL": fault, "ACCEL_LOG": "1"})
    tap.ok(done.returncode == 0 and summary(done) == summary(native), f"8 threads, {fault}", done.returncode, summary(done),
           *[line for line in done.stderr.splitlines() if line.startswith("wrong: ")][:4])
    tap.ok(len(said(done)) <= 1, f"8 threads, {fault}: said once", *said(done))
tap.done()
