#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Calls that two devices share, or three: each call of CUDA and cuBLAS made to fail, at its first, second, … use:
once, for good, with an error after which that device fails; without memory; one device lost at each copy and kernel.
The other one takes its part, or the CPU, the results are complete, and what has failed is left alone afterwards."""

from collections import Counter

import pytest

from faults.faults import run
from faults.shared_calls import break_each, env_of
from lib.log import parse_log, said
from lib.programs import LONG, TESTS
from lib.split import behind_slow_links

BLAS_OF = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK = ["-f", "yemv", "-m", 110, "-n", 130, "-k", "@(uniform|well)"]
# One routine of each kind; of a product, parts that come up and down in several blocks, and results
# whose old values are read.
WORKLOADS = {
    "products": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 11, "-r", "[dz]gemm", "-c", 3, 1], {}),
    "in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 21, "-r", "dgemm", "-c", 5, 1], {"ACCEL_MEMORY": "100K"}),
    "panels in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 23, "-r", "ztrsm", "-c", 5,
                                         1], {"ACCEL_MEMORY": "100K"}),
    "panels": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 21, "-r", "@(dtrmm|ctrsm)", "-c", 5, 1], {}),
    "triangles": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 3, 1], {}),
    "symmetric": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "@(dsymm|chemm)", "-c", 5, 1],
                  {}), "Cholesky": ("random_lapack", [*LAPACK, "-s", 31, "-r", "@(dpotrf|zposv)", "-c",
                                                      4], {"ACCEL_MEMORY": "100K"}),
    "LU": ("random_lapack", [*LAPACK, "-s", 32, "-r", "@(dgetrf|dgesv)", "-c", 3], {"ACCEL_MEMORY": "100K"}),
    "batches": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 23, "-r", "dgemm_batch_strided", "-c", 16, 1], {})
}
# A triangle is cut into a grid there.
BEHIND_SLOW_LINKS = {
    "grids": ("random_calls", [*BLAS_OF, "-n", 60, "-s", 14, "-r", "@(dsyrk|zher2k|sgemmt)", "-c", 4, 1], {}),
    "grids in tiles": ("random_calls", [*BLAS_OF, "-n", 110, "-s", 15, "-r", "zsyrk", "-c", 4,
                                        1], {"ACCEL_MEMORY": "100K"}),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_shared_calls(name):
    break_each(*WORKLOADS[name])


@pytest.mark.parametrize("name", BEHIND_SLOW_LINKS)
def test_shared_calls_behind_slow_links(name, tmp_path):
    program, arguments, extra = BEHIND_SLOW_LINKS[name]
    break_each(program, arguments, {**behind_slow_links(3, str(tmp_path)), **extra})


# ---- The other device goes on ----


def ran(done):
    return [line["ran"] for line in parse_log(done.stderr)]


def left_alone(done):
    return [line for line in said(done) if "is left alone" in line]


def test_one_device_is_lost_at_each_copy_and_kernel():
    """The other computes its part and all later calls, the CPU none."""
    _, baseline = run("steps", ["dgemm:256:4"], env_of({}))
    points = baseline.operations() // 2  # of the first two calls
    assert points >= 10
    for n in range(1, points + 1):
        done, _ = run("steps", ["dgemm:256:4"], {**env_of({}), "TESTGPU_FAIL": f"async:{n}=CUDA_ERROR_LAUNCH_FAILED"})
        places, left = ran(done), left_alone(done)
        assert done.returncode == 0, n
        assert " 0 wrong" in done.stdout, n
        assert len(left) == 1, (n, said(done))
        assert places[-1] in ("gpu0", "gpu1"), (n, places)
        assert "cpu" not in "".join(places), (n, places)
        assert places[-1] not in left[0][:20], (n, left)


def test_one_device_is_lost_in_a_factorisation():
    """The other one does all of it."""
    small = env_of({"ACCEL_MEMORY": "600K"})  # LU of a matrix of 2 MB is shared
    _, baseline = run("steps", ["solve:500:1"], small)
    places = Counter()
    for n in range(1, baseline.operations() + 1, 1 if LONG else 17):
        done, report = run("steps", ["solve:500:1"], {**small, "TESTGPU_FAIL": f"async:{n}=CUDA_ERROR_LAUNCH_FAILED"})
        if report.fired == 0:  # the number of copies varies a little
            continue
        places.update(line["ran"] for line in parse_log(done.stderr) if line["sym"] == "dgesv_")
        assert done.returncode == 0, n
        assert " 0 wrong" in done.stdout, n
        assert len(left_alone(done)) == 1, (n, said(done))
    assert set(places) == {"gpu0", "gpu1"}
    assert places.total() > 30


def test_both_fail_and_the_cpu_computes():
    done, _ = run("steps", ["dgemm:256:4"], {**env_of({}), "TESTGPU_FAIL": "cublasDgemm_v2_64:3+"})
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    assert ran(done)[0] == "gpu0+gpu1"
    assert ran(done)[-1] == "cpu"
