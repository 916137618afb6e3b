#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK on matrices that fit on the device, behind a link so slow that their panels come up while those before them
are factored. Random calls, with every flag, all four types, both integer widths, every kind of matrix, with NaN and
Inf: the same INFO as without libaccel, every residual within the bound of LAPACK's own tests, nothing else touched.
Kernels run before all has come up, nothing comes down before the last one, and each byte moves once. What stays on the
device for a later call changes no bit. With TEST_LONG=1 in all types, and more calls."""

import re

import pytest

from lib.calibrated import calibrate_in_core
from lib.log import parse_log
from lib.programs import LONG, LOG, TEST_GPU, start
from ops.lapack.compared import QUICK, run, same_as_native

ROUTINES = "potrf posv getrf gesv geqrf gels".split()
MORE = 6 if LONG else 1
# In the short form a real type and, by 64-bit integers, a complex one.
TYPES = [("random_lapack", dtype) for dtype in ("sdcz" if LONG else "d")] + [("random_lapack64", dtype)
                                                                             for dtype in ("sdcz" if LONG else "c")]


@pytest.fixture(scope="module")
def in_core(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    calibrate_in_core(folder / "model", folder, QUICK)
    return {**TEST_GPU, **LOG, **QUICK, "ACCEL_LOG": "2", "ACCEL_MODEL": str(folder / "model")}


def in_panels(done):
    """Routine -> the most panels in which a matrix has come up: those lines that the call's own line ends."""
    most, since = {}, 0
    for line in done.stderr.splitlines():
        if " event=h2d operand=a " in line:
            since += 1
        elif " ran=" in line:
            routine = re.search(r" sym=(\w+?)_? ", line)[1]
            most[routine] = max(most.get(routine, 0), since)
            since = 0
    return most


@pytest.mark.parametrize("program, dtype", TYPES)
def test_each_routines_matrix_comes_up_in_several_panels(program, dtype, in_core):
    most = in_panels(same_as_native(program, ["-m", 120, "-n", 200, "-c", 2 * MORE, "-r",
                                              f"{dtype}@({'|'.join(ROUTINES)})", "-k", "@(uniform|well)"], in_core)[0])
    assert not {routine for routine in ROUTINES if most.get(dtype + routine, 0) < 3}


@pytest.mark.parametrize("program, dtype", TYPES)
def test_every_kind(program, dtype, in_core):
    same_as_native(program, ["-m", 80, "-n", 160, "-c", 2 * MORE, "-s", 100, "-r", f"{dtype}@({'|'.join(ROUTINES)})"],
                   in_core)


def test_delays(in_core):
    same_as_native("random_lapack", ["-m", 120, "-n", 180, "-c", 1, "-r", "[sz]@(potrf|getrf|geqrf)"],
                   {**in_core, "TESTGPU_DELAY_US": "100"})


def test_8_threads(in_core):
    same_as_native("random_lapack", ["-m", 120, "-n", 160, "-c", 1, "-r", "d@(potrf|gesv|gels)", "-k", "well", 8],
                   in_core)


@pytest.mark.parametrize("routine, kernel, share", [("dgetrf", "Xgetrf", (1, 1)), ("dgeqrf", "Xgeqrf", (1, 1)),
                                                    ("dpotrf", "Xpotrf", (0.5, 0.75))])
def test_the_order_and_the_bytes_as_the_device_sees_them(routine, kernel, share, in_core, tmp_path):
    trace = tmp_path / "trace"
    _, _, lines = run("random_lapack", ["-m", 190, "-n", 200, "-c", 1, "-k", "well", "-r", routine],
                      {**in_core, "TESTGPU_TRACE": str(trace)})
    call = re.compile(r"(?m) (cuMemcpyHtoDAsync|cuMemcpyDtoHAsync|cusolverDn\w+|cublas[SDCZ]\w+)(?:_v2\([^)]*bytes=(\d+))?")
    calls = [(match[1], int(match[2] or 0)) for match in call.finditer(trace.read_text())]
    kernels = [i for i, (name, _) in enumerate(calls) if kernel in name and "buffer" not in name]
    ups, downs = ([(i, size) for i, (name, size) in enumerate(calls) if name == f"cuMemcpy{way}Async"]
                  for way in ("HtoD", "DtoH"))
    # A panel is factored when less than half has been sent for.
    assert kernels[0] < kernels[-1]
    assert sum(size for i, size in ups if i < kernels[0]) < 0.5 * sum(size for _, size in ups)
    # Nothing comes down before the last kernel.
    assert downs[0][0] > kernels[-1]
    # Each element comes up once.
    (line,) = [f for f in lines if f["sym"] == routine + "_" and f["ran"] == "gpu0"]
    size = 8 * int(line.get("m", line["n"])) * int(line["n"])
    assert share[0] * size <= float(line["up_mb"]) * 1e6 * 1.001 <= share[1] * size * 1.002


def test_a_matrix_that_comes_the_third_time_is_there_already(in_core):
    """The kernels are those of the first time, and so are the results, bit for bit."""
    hashed, off = (start("again", "factors", 6, env={**in_core, "ACCEL_RESIDENT": how}) for how in ("hash", "off"))
    assert hashed.returncode == 0
    assert off.returncode == 0
    assert not [name for name in ("dgetrf", "dpotrf", "dgeqrf") if in_panels(off).get(name, 0) <= 2]
    assert hashed.stdout == off.stdout
    assert {"dgetrf_", "dpotrf_", "dgeqrf_"} <= {f["sym"] for f in parse_log(hashed.stderr)
                                                 if float(f.get("kept_mb", 0)) > 1}
