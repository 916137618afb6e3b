#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Solutions by a triangle with the kernel of our own, where the calibration says that it is faster: the program's
results are exact, whole or in blocks, on every side and with every flag; also if the kernel cannot be loaded or fails.
Without such a line, and for complex numbers, matrices that the program keeps on the device, and builds without the
kernel, cuBLAS solves. With TEST_LONG=1 more random calls."""

import re
from collections import namedtuple
from functools import cache

import pytest

from lib.calibrated import keys, put
from lib.log import lines_for
from lib.programs import BUILD, LONG, TEST_GPU, start

OWN_FILE = BUILD / "gpu/own/own.fatbin"
IS_BUILT = OWN_FILE.exists() and OWN_FILE.stat().st_size > 0
kernel_is_built = pytest.mark.skipif(not IS_BUILT, reason="the build has no nvcc, so there is no kernel")

SOLVES = "solve_s_blas_gbps=70\nsolve_d_blas_gbps=70\nsolve_d_blas_row_ms=0.0004\n"
OWN = SOLVES + "solve_s_own_gbps=300\nsolve_d_own_gbps=300\nsolve_s_own_nrhs=400\nsolve_d_own_nrhs=400\n"

# own: the kernel's launches by type. blas: how many solves were cuBLAS's. report: the test GPU's.
Run = namedtuple("Run", "done own blas report")


@cache
def expected(case):
    return start("triangles", case).stdout


def run(folder, case, solves, program="triangles", **env):
    model, trace, report = (folder / name for name in ("model", "trace", "report"))
    found = keys(folder)
    put(model, {found["blas"]: "", found["lapack"]: "", found["gpu"]: f"up_gbps=11\ndown_gbps=11\n{solves}"})
    done = start(program, *case.split(), env={**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off",
                                              "ACCEL_MODEL": str(model), "TESTGPU_DELAY_US": "0",
                                              "TESTGPU_TRACE": str(trace), "TESTGPU_REPORT": str(report), **env})
    text = trace.read_text()
    return Run(done, re.findall(r" run own_substitute_(\w) ", text), len(re.findall(r" run \w*trsm\w* ", text)),
               report.read_text())


WHOLE = [f"{t}trsm:{flags}:{order}:{sides}:3" for t, flags, order, sides in
         (("d", "LUNN", 100, 500), ("s", "LLTU", 65, 430), ("d", "RLCN", 64, 400), ("s", "RUNU", 150, 410))]
DIVIDED = ["dtrsm:LLNN:300:2600:0", "dtrsm:RLNU:300:1800:5", "strsm:LUTN:520:1900:0"]


@kernel_is_built
@pytest.mark.parametrize("case", WHOLE + DIVIDED)
def test_our_kernel_solves(case, tmp_path):
    done, own, blas, report = run(tmp_path, case, OWN)
    assert done.stdout == expected(case)
    assert lines_for(done)[0]["ran"] == "gpu0"
    assert "testgpu fault " not in report
    assert set(own) == {case[0]}
    assert blas < len(own)  # triangles of less than 64 rows are cuBLAS's


@kernel_is_built
@pytest.mark.parametrize("case", WHOLE + DIVIDED)
def test_cublas_solves_if_it_is_faster(case, tmp_path):
    done, own, blas, _ = run(tmp_path, case, SOLVES)
    assert done.stdout == expected(case)
    assert lines_for(done)[0]["ran"] == "gpu0"
    assert not own
    assert blas


# Every flag, gaps, NaN in what must not be read, NaN and Inf beside numbers.
ANY = OWN.replace("nrhs=400", "nrhs=1")


@kernel_is_built
@pytest.mark.parametrize("order, calls", [(90, 60), (400, 12)], ids="{}".format)
def test_random_calls(order, calls, tmp_path):
    done, own, _, report = run(tmp_path, f"-c {calls * (5 if LONG else 1)} -n {order} -s {order} -r [sd]trsm", ANY,
                               program="random_calls")
    assert done.returncode == 0
    assert done.stdout.endswith(" 0 wrong\n")
    assert "testgpu fault " not in report
    assert len(own) > calls / 4
    assert set(own) == {"s", "d"}


def test_a_program_with_cuda_of_its_own(tmp_path):
    """Host, device and managed memory: a matrix that is on the device is cuBLAS's."""
    done, own, blas, report = run(tmp_path, "-c 12 -n 90 -r [sd]trsm", ANY, program="cuda_program")
    assert done.returncode == 0
    assert "testgpu fault " not in report
    assert own or not IS_BUILT
    assert blas


def test_cublas_solves_for_complex_numbers(tmp_path):
    case = "ztrsm:LLCN:100:1100:0"
    done, own, blas, _ = run(tmp_path, case, OWN)
    assert done.stdout == expected(case)
    assert lines_for(done)[0]["ran"] == "gpu0"
    assert not own
    assert blas


# ---- Estimates ----

VALUES = ("solve_d_blas_gbps={}\nsolve_d_blas_row_ms={}\n"
          "solve_d_own_gbps={}\nsolve_d_own_row_ms={}\nsolve_d_own_nrhs={}\n")
FAST, SLOW = (1000, 1e-5), (0.5, 0.1)


def estimates(folder, values, case, **env):
    """What a call is thought to take, by each of these values."""
    return [float(lines_for(run(folder, case, solves, **env).done)[0]["est_gpu_ms"]) for solves in values]


@pytest.mark.parametrize("nrhs", [pytest.param(1, id="where our own kernel solves, estimates count its time"),
                                  pytest.param(10 ** 6, id="where cuBLAS solves, its own")])
def test_estimates(nrhs, tmp_path):
    values = [VALUES.format(*blas, *own, nrhs) for blas, own in ((FAST, FAST), (SLOW, FAST), (FAST, SLOW))]
    fast, blas_slow, own_slow = estimates(tmp_path, values, "dtrsm:LLNN:300:2600:0")
    counted, other = (own_slow, blas_slow) if nrhs == 1 else (blas_slow, own_slow)
    assert counted > 2 * fast
    assert abs(other / fast - 1) < 0.01


def test_in_another_precision_cublas_solves_too(tmp_path):
    values = [VALUES.format(*FAST, *own, 1).replace("_d_", "_s_") for own in (FAST, SLOW)]
    native, other = (estimates(tmp_path, values, "strsm:LLNN:300:5200:0", ACCEL_PRECISION=precision)
                     for precision in ("native", "tf32"))
    assert native[1] > 2 * native[0]
    assert abs(other[1] / other[0] - 1) < 0.01


# ---- Failures ----

SMALL = "dtrsm:LUNN:200:500:3"


@kernel_is_built
@pytest.mark.parametrize("call", ["cuModuleLoadData:1=200", "cuModuleLoadData:1+=2", "cuModuleGetFunction:1",
                                  "cuFuncGetAttribute:1",
                                  "cuOccupancyMaxActiveBlocksPerMultiprocessor:1"])
def test_cublas_takes_the_kernels_place_before_it_is_launched(call, tmp_path):
    """The image has nothing for this device, or its memory is short, or the driver fails."""
    done, own, blas, report = run(tmp_path, SMALL, OWN, TESTGPU_FAIL=call)
    assert done.stdout == expected(SMALL)
    assert lines_for(done)[0]["ran"] == "gpu0"
    assert "fired=0" not in report
    assert not own
    assert blas


BEHIND = {SMALL: ("cuModuleGetFunction:2", "cuLaunchKernel:1", "cublasDgemm_v2_64:1", "cuLaunchKernel:2"),
          "dtrsm:LLNN:300:2600:0": [f"{name}:{n}" for name in ("cuLaunchKernel", "cublasDgemm_v2_64")
                                    for n in (1, 2, 4, 5)],
          "dtrsm:RLNU:300:1800:5": [f"{name}:{n}" for name in ("cuLaunchKernel", "cublasDgemm_v2_64")
                                    for n in (1, 2, 3)]}


@kernel_is_built
@pytest.mark.parametrize("case, call", [(case, call) for case, calls in BEHIND.items() for call in calls])
def test_behind_that_the_programs_own_blas_takes_its_place(case, call, tmp_path):
    """It does all of a small call, of others what has not come down."""
    done, _, _, report = run(tmp_path, case, OWN, TESTGPU_FAIL=call)
    assert done.stdout == expected(case)
    assert lines_for(done)[0]["ran"] in ("cpu", "gpu0+cpu")
    assert "fired=1" in report
