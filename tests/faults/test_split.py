#!/usr/bin/python3 -B
"""Calls that two devices share, or three: each call of CUDA and cuBLAS made to fail, at its first, second, … use: once, for good, with an error after which
that device fails; without memory; one device lost at each copy and kernel. The other one takes its part, or the CPU, the results are
complete, and what has failed is left alone afterwards."""

import tempfile
from collections import Counter

from faults import QUICK, Fault, Outcome, amiss, plan, report_on, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import LONG, TESTS
from lib.split import behind_slow_links, several
from lib.tap import Tap

tap = Tap()
BLAS_OF = ["-l", TESTS / "liblacking.so", "-f", "y"]
MOST = 6 if LONG else 2
LAPACK = ["-f", "yemv", "-m", 110, "-n", 130, "-k", "@(uniform|well)"]
# One routine of each kind; of a product, parts that come up and down in several blocks, and results whose old values are read.
WORKLOADS = {"products": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 11, "-r", "[dz]gemm", "-c", 3, 1], {}),
             "in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 21, "-r", "dgemm", "-c", 5, 1], {"ACCEL_MEMORY": "100K"}),
             "panels in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 23, "-r", "ztrsm", "-c", 5, 1], {"ACCEL_MEMORY": "100K"}),
             "panels": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 21, "-r", "@(dtrmm|ctrsm)", "-c", 5, 1], {}),
             "triangles": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 3, 1], {}),
             "symmetric": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "@(dsymm|chemm)", "-c", 5, 1], {}),
             "Cholesky": ("random_lapack", [*LAPACK, "-s", 31, "-r", "@(dpotrf|zposv)", "-c", 4], {"ACCEL_MEMORY": "100K"}),
             "LU": ("random_lapack", [*LAPACK, "-s", 32, "-r", "@(dgetrf|dgesv)", "-c", 3], {"ACCEL_MEMORY": "100K"}),
             "batches": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "dgemm_batch_strided", "-c", 16, 1], {})}
GOOD = {"+".join(f"gpu{i}" for i in range(3) if some >> i & 1) + cpu for some in range(1, 8) for cpu in ("", "+cpu")} | {"cpu"}
links = tempfile.TemporaryDirectory()
SLOW_LINKS = behind_slow_links(3, links.name)  # a triangle is cut into a grid there
WORKLOADS |= {"grids": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 4, 1], SLOW_LINKS),
              "grids in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 15, "-r", "zsyrk", "-c", 4, 1], {**SLOW_LINKS, "ACCEL_MEMORY": "100K"})}


def env_of(extra):
    return {**several(2), **QUICK, **extra}


def told(done):
    """What libaccel says, but that the calibration has nothing for CPUs."""
    return [line for line in said(done) if "has nothing for " not in line]


def judge(fault, done, report, names, calls):
    """The results are right and complete, each call has one line, and the lines say of each failure what it was."""
    lines = [line for line in parse_log(done.stderr) if line["sym"] in names]  # an original may call others
    spoken = told(done)
    outcome = amiss(fault, done, report, lines, calls, GOOD, spoken)
    if outcome:
        return outcome
    reasons = Counter(line["why"] for line in lines)
    elsewhere = reasons["error"] + reasons["no_memory"] + reasons["no_gpu"] + reasons["unsupported"]
    # A device that is left alone has no further part.
    for gpu in ("gpu0", "gpu1", "gpu2"):
        if any(f"accel: {gpu} is left alone" in line for line in spoken) and gpu in lines[-1]["ran"] and len(lines) > 20:
            return Outcome(fault, "wrong", f"{fault.plant}: {gpu} goes on {spoken[-3:]}", 0)
    kept = sum(line["ran"].endswith("+cpu") for line in lines)
    return Outcome(fault, "recovered" if elsewhere or spoken else "absorbed", "", kept)


for name, (program, arguments, extra) in WORKLOADS.items():
    done, baseline = run(program, arguments, env_of(extra))
    lines = parse_log(done.stderr)
    shared = sum("+" in line["ran"] for line in lines)
    tap.ok(done.returncode == 0 and shared >= 3 and not told(done), f"{name}: {shared} of {len(lines)} calls are shared", done.stdout[-400:], *said(done)[:3])
    faults = list(plan(baseline, MOST))
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_{code}", "async", True) for n in uses(baseline.operations(), 80 if LONG else 12)
               for code in (("LAUNCH_FAILED", "ECC_UNCORRECTABLE") if LONG else ("LAUNCH_FAILED",))]

    def attempt(fault):
        try:
            ended, report = run(program, arguments, {**env_of(extra), "TESTGPU_FAIL": fault.plant})
        except Exception as error:  # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)
        return judge(fault, ended, report, {line["sym"] for line in lines}, len(lines))

    report_on(tap, f"several devices, {name}", "several devices", sweep(faults, attempt))

# ---- The other device goes on ----

_, baseline = run("steps", ["dgemm:256:4"], env_of({}))
points = baseline.operations() // 2  # of the first two calls
wrong = []
for n in range(1, points + 1):
    done, report = run("steps", ["dgemm:256:4"], {**env_of({}), "TESTGPU_FAIL": f"async:{n}=CUDA_ERROR_LAUNCH_FAILED"})
    ran = [line["ran"] for line in parse_log(done.stderr)]
    left = [line for line in said(done) if "is left alone" in line]
    if done.returncode or " 0 wrong" not in done.stdout or len(left) != 1 or not set(ran[-1:]) < {"gpu0", "gpu1"} or "cpu" in "".join(ran) or ran[-1] in left[0][:20]:
        wrong.append((n, ran, *said(done)))
tap.ok(points >= 10 and not wrong, f"one device is lost at each of {points} copies and kernels: the other computes its part and all later calls, the CPU none",
       *wrong[:5])
done, report = run("steps", ["dgemm:256:4"], {**env_of({}), "TESTGPU_FAIL": "cublasDgemm_v2_64:3+"})
ran = [line["ran"] for line in parse_log(done.stderr)]
tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and ran[0] == "gpu0+gpu1" and ran[-1] == "cpu", "both fail: the CPU computes", ran, *said(done))
tap.done()
