#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Eigenvalues of matrices that are larger than the device's memory: spectral divide and conquer, by calls of Level 3
and Cholesky factors on the GPU. Random calls of all four types, with every kind of matrix, both triangles, ld above the
rows, by columns and by rows: the same INFO as without libaccel, every residual within the bound of LAPACK's own tests,
nothing else touched. One device, and two that share the inner calls. What cannot be done so is the CPU's, and so is
what the CPU does faster. With TEST_LONG=1 each of these in all types, and more calls."""

import re

import pytest

from lib.log import outcomes, parse_log
from lib.programs import LONG, LOG, TEST_GPU
from lib.split import several
from ops.lapack import compared
from ops.lapack.compared import SIZES

DIVIDED = "@(uniform|well|bad|singular|indefinite)"
MORE = 4 if LONG else 1
# In the short form real and complex matrices on one device, in either precision, and one type each
# of the rest.
each_type = pytest.mark.parametrize("dtype", "sdcz" if LONG else "d")


def of_eigenvalues(lines):
    return [f for f in lines if "ev" in f["sym"] and f["why"] not in ("workspace_query", "bad_argument", "empty")
            and "depth" not in f]


def run(arguments, env):
    """The finished process, and its decisions on eigenvalues."""
    done, _, lines = compared.run("random_lapack", arguments, {**TEST_GPU, **LOG, **env})
    return done, of_eigenvalues(lines)


def same_as_native(arguments, memory, env={}, program="random_lapack"):
    """Its decisions on eigenvalues."""
    return of_eigenvalues(compared.same_as_native(program, arguments, {**env, "ACCEL_MEMORY": f"{memory}K"})[1])


def of_type(dtype, count, *arguments, env={}):
    routines = dtype + "@(syev|syevd|heev|heevd)"
    return same_as_native(["-n", 190, "-m", 140, "-c", count, *arguments, "-r", routines], 20 * SIZES[dtype], env)


@pytest.mark.parametrize("dtype", "sdcz" if LONG else "dc")
def test_one_device(dtype):
    lines = of_type(dtype, 4 * MORE, "-k", DIVIDED)
    assert {f["ran"] for f in lines} == {"gpu0"}
    # Most matrices have more bytes than the memory.
    assert len([f for f in lines if int(f["n"]) ** 2 > 1024 * 20]) > len(lines) / 2
    # Values and vectors.
    assert {f["args"] for f in lines} > {"V,L"} or {f["args"][0] for f in lines} == set("NV")


@each_type
def test_every_kind_on_the_gpu_or_refused(dtype):
    assert set(outcomes(of_type(dtype, 6 * MORE, "-s", 100))) == {("gpu0", "forced"), ("cpu", "unsupported")}


@each_type
def test_two_devices_share_them(dtype):
    assert {f["ran"] for f in of_type(dtype, 3 * MORE if LONG else 2, "-k", DIVIDED, env=several(2))} == {"gpu0+gpu1"}


def test_64_bit_integers():
    arguments = ["-n", 190, "-m", 140, "-c", 3 * MORE if LONG else 1, "-k", DIVIDED, "-r", "[dz]@(syevd|heev)"]
    assert {f["ran"] for f in same_as_native(arguments, 160, program="random_lapack64")} == {"gpu0"}


def test_delays():
    """Copies and kernels in random order between the streams."""
    lines = same_as_native(["-n", 150, "-m", 140, "-c", 1, "-k", "well", "-r", "dsyevd"], 160,
                           {"TESTGPU_DELAY_US": "100"})
    assert {f["ran"] for f in lines} == {"gpu0"}


def test_tf32_within_the_bounds_of_single_precision():
    """Other precisions are for what the program calls, not for inner calls."""
    lines = same_as_native(["-n", 190, "-m", 140, "-c", 2, "-k", "well", "-r", "ssyevd"], 80,
                           {"ACCEL_PRECISION": "tf32"})
    assert {f["ran"] for f in lines} == {"gpu0"}


def test_4_threads_share_the_memory():
    _, lines = run(["-n", 150, "-m", 140, "-c", 1, "-k", "well", "-r", "[dz]@(syevd|heevd)", 4],
                   {"ACCEL_MEMORY": "400K"})
    assert lines
    assert {f["why"] for f in lines} <= {"forced", "no_memory"}


def test_small_matrices_are_the_cpus():
    """Where the estimate decides: a matrix of this order is faster on the CPU, and that is the reason."""
    _, lines = run(["-n", 190, "-m", 140, "-c", 2, "-k", "well", "-r", "dsyevd"],
                   {"ACCEL_MEMORY": "160K", "ACCEL_POLICY": "auto", "ACCEL_START": "wait"})
    assert {f["ran"] for f in lines} == {"cpu"}
    assert {f["why"] for f in lines} <= {"slower", "small", "no_gpu"}


def test_the_log_has_one_line_for_a_call_with_the_bytes_that_the_device_has_seen(tmp_path):
    report = tmp_path / "report"
    done, (line,) = run(["-n", 150, "-m", 150, "-c", 1, "-k", "well", "-r", "dsyevd"],
                        {"ACCEL_MEMORY": "160K", "TESTGPU_REPORT": str(report)})
    copied = dict(re.findall(r"(h2d|d2h)_bytes=(\d+)", report.read_text()))
    assert 0.9 < float(line["up_mb"]) * 1e6 / int(copied["h2d"]) < 1.001
    assert 0.9 < float(line["down_mb"]) * 1e6 / int(copied["d2h"]) < 1.001
    assert {f["sym"] for f in parse_log(done.stderr)} == {"dsyevd_"}
    assert "\ntestgpu fault " not in "\n" + report.read_text()
