#!/usr/bin/python3 -B
"""Calls that two devices share, or three: each call of CUDA and cuBLAS made to fail, at its first, second, … use: once, for good, with an error after which
that device fails; without memory; one device lost at each copy and kernel. The other one takes its part, or the CPU, the results are
complete, and what has failed is left alone afterwards."""

import tempfile
from collections import Counter

from faults import run
from lib.log import parse_log, said
from lib.programs import LONG, TESTS
from lib.split import behind_slow_links
from lib.tap import Tap
from shared_calls import break_each, env_of

tap = Tap()
BLAS_OF = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK = ["-f", "yemv", "-m", 110, "-n", 130, "-k", "@(uniform|well)"]
# One routine of each kind; of a product, parts that come up and down in several blocks, and results
# whose old values are read.
WORKLOADS = {"products": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 11, "-r", "[dz]gemm", "-c", 3, 1], {}),
             "in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 21, "-r", "dgemm", "-c", 5, 1], {"ACCEL_MEMORY": "100K"}),
             "panels in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 23, "-r", "ztrsm", "-c", 5, 1], {"ACCEL_MEMORY": "100K"}),
             "panels": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 21, "-r", "@(dtrmm|ctrsm)", "-c", 5, 1], {}),
             "triangles": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 3, 1], {}),
             "symmetric": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "@(dsymm|chemm)", "-c", 5, 1], {}),
             "Cholesky": ("random_lapack", [*LAPACK, "-s", 31, "-r", "@(dpotrf|zposv)", "-c", 4], {"ACCEL_MEMORY": "100K"}),
             "LU": ("random_lapack", [*LAPACK, "-s", 32, "-r", "@(dgetrf|dgesv)", "-c", 3], {"ACCEL_MEMORY": "100K"}),
             "batches": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "dgemm_batch_strided", "-c", 16, 1], {})}
links = tempfile.TemporaryDirectory()
SLOW_LINKS = behind_slow_links(3, links.name)  # a triangle is cut into a grid there
WORKLOADS |= {"grids": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 4, 1], SLOW_LINKS),
              "grids in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 15, "-r", "zsyrk", "-c", 4, 1], {**SLOW_LINKS, "ACCEL_MEMORY": "100K"})}

for name, (program, arguments, extra) in WORKLOADS.items():
    break_each(tap, name, program, arguments, extra)

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
SMALL = {"ACCEL_MEMORY": "600K"}  # LU of a matrix of 2 MB is shared
_, baseline = run("steps", ["solve:500:1"], env_of(SMALL))
ran, wrong = Counter(), []
for n in range(1, baseline.operations() + 1, 1 if LONG else 17):
    done, report = run("steps", ["solve:500:1"], {**env_of(SMALL), "TESTGPU_FAIL": f"async:{n}=CUDA_ERROR_LAUNCH_FAILED"})
    if report.fired == 0:  # the number of copies varies a little
        continue
    ran.update(line["ran"] for line in parse_log(done.stderr) if line["sym"] == "dgesv_")
    if done.returncode or " 0 wrong" not in done.stdout or len([line for line in said(done) if "is left alone" in line]) != 1:
        wrong.append((n, done.stdout, *said(done)))
tap.ok(not wrong and set(ran) == {"gpu0", "gpu1"} and ran.total() > 30, f"one device is lost in a factorisation at {ran.total()} copies and kernels: the other one does all of it", ran, *wrong[:3])
done, report = run("steps", ["dgemm:256:4"], {**env_of({}), "TESTGPU_FAIL": "cublasDgemm_v2_64:3+"})
ran = [line["ran"] for line in parse_log(done.stderr)]
tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and ran[0] == "gpu0+gpu1" and ran[-1] == "cpu", "both fail: the CPU computes", ran, *said(done))
tap.done()
