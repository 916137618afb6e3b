#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LAPACK on matrices that are larger than the device's memory: factorisations, solutions, inverses and products by
factors run there in panels. Random calls, with every flag, all four types, both integer widths, every kind of matrix
from well-conditioned to singular, with NaN and Inf, m < n, m > n, ld above the rows, by columns and by rows: the same
INFO as without libaccel, every residual within the bound of LAPACK's own tests, nothing else touched. The log has the
bytes that went up and down. What cannot be had in panels, and what the host has no memory for, is the CPU's. With
TEST_LONG=1 each in all types, and more calls."""

import re
from functools import cache

import pytest

from lib.log import lines_for
from lib.programs import LONG, LOG, TEST_GPU, start
from lib.split import several
from ops.lapack.compared import QUICK, SIZES, run, same_as_native

FACTORED = "potrf posv potrs getrf gesv getrs trtrs"
INVERTED = "potri trtri getri lauum"
REFLECTED = "geqrf orgqr ungqr ormqr unmqr gels gels-wide"  # their workspaces are larger
LARGE = "@(uniform|well)"
MORE = 6 if LONG else 1
# The program, the memory for type s, the orders, the routines, and the types of the short form: in
# that, each routine in one type, or in a real and a complex one where their names or flags differ;
# all four types come up.
CASES = {
    "factors": ("random_lapack", 38, (105, 140), FACTORED, "dc"),
    "factors, 64-bit integers": ("random_lapack64", 38, (105, 140), FACTORED, "sz"),
    "inverses": ("random_lapack", 38, (105, 140), INVERTED, "s"),
    "inverses, 64-bit integers": ("random_lapack64", 38, (105, 140), INVERTED, "d"),
    "reflectors": ("random_lapack", 108, (170, 200), REFLECTED, "sz"),
}
each_type = pytest.mark.parametrize("name, dtype", [(name, dtype) for name in CASES
                                                    for dtype in (SIZES if LONG else CASES[name][-1])])


def number(fields, name):
    return int(fields.get(name, 0))


def exceeds(fields, memory):
    """Whether the matrix alone is more than the memory, in KB: of a product by Q, that of its reflectors."""
    rows, cols = number(fields, "m") or number(fields, "n"), number(fields, "n")
    if "mqr" in fields["sym"]:
        rows, cols = rows if fields["args"][0] == "L" else cols, number(fields, "k")
    return rows * cols * SIZES[fields["sym"][0]] > 1024 * memory


def kind(fields):
    """The routine, without its type; wide matrices apart where they are factored in another way."""
    name = fields["sym"].rstrip("_")[1:]
    return name + "-wide" * (name == "gels" and number(fields, "m") < number(fields, "n"))


def above_memory(program, arguments, memory, env={}, ran=("gpu0",)):
    """The decisions, on the device, on matrices above its memory; and all."""
    _, lines = same_as_native(program, arguments, {"ACCEL_MEMORY": f"{memory}K", **env})
    return [f for f in lines if f["ran"] in ran and exceeds(f, memory)], lines


def run_type(name, dtype, *arguments):
    program, memory, (_, most), wanted, _ = CASES[name]
    routines = f"{dtype}@({'|'.join(routine for routine in wanted.split() if '-' not in routine)})"
    return above_memory(program, ["-n", most, "-r", routines, *arguments], memory * SIZES[dtype] // 4)[0]


@cache
def large(name, dtype):
    return run_type(name, dtype, "-m", CASES[name][2][0], "-c", MORE, "-k", LARGE)


@each_type
def test_as_without_libaccel(name, dtype):
    large(name, dtype)


@each_type
def test_every_kind_as_without_libaccel(name, dtype):
    run_type(name, dtype, "-s", 100, "-c", 2 * MORE)


@pytest.mark.parametrize("name", CASES)
def test_each_routine_ran_on_the_gpu_with_a_matrix_above_its_memory(name):
    lines = [f for dtype in (SIZES if LONG else CASES[name][-1]) for f in large(name, dtype)]
    assert not set(CASES[name][3].split()) - {kind(f) for f in lines}
    # Most of a matrix goes up several times.
    assert [f for f in lines if float(f["up_mb"]) * 1e6 > 1300 * (CASES[name][1] * SIZES[f["sym"][0]] // 4)
            and kind(f) not in ("trtrs", "trtri", "lauum")]


def test_workspaces_that_grow():
    """With less memory for panels, another schedule is the fastest, whose workspaces are larger."""
    _, lines = above_memory("random_lapack", ["-m", 125, "-n", 125, "-c", 2, "-r", "z@(potrf)", "-k", LARGE], 232)
    assert {f["why"] for f in lines} == {"forced"}


def test_an_inverse_that_does_not_fit_beside_the_matrix():
    _, lines = above_memory("random_lapack", ["-m", 60, "-n", 64, "-c", 2 * MORE, "-r", "d@(getri)", "-k", LARGE], 45)
    assert [f for f in lines if f["sym"] == "dgetri_" and f["ran"] == "gpu0"
            and float(f["up_mb"]) * 1e6 > 1.5 * 8 * number(f, "n") ** 2]


def test_delays():
    """Copies and kernels in random order between the streams."""
    routines = "d@(potrf|getrf|gesv|getri|potri|lauum)"
    assert above_memory("random_lapack", ["-m", 95, "-n", 110, "-c", 1, "-r", routines, "-k", LARGE], 60,
                        {"TESTGPU_DELAY_US": "100"})[0]


def test_8_threads_share_the_memory():
    _, _, lines = run("random_lapack", ["-m", 60, "-n", 80, "-c", 1, "-r", "[dz]@(potrf|gesv)", "-k", LARGE, 8],
                      {**TEST_GPU, **LOG, "ACCEL_MEMORY": "80K"})
    assert [f for f in lines if f["ran"] == "gpu0"]
    assert {f["why"] for f in lines if f.get("nrhs") != "0"} <= {"forced", "no_memory"}


@pytest.mark.parametrize("devices, attributes, types", [pytest.param(2, "16=1,13=1", "z", id="two devices"),
                                                        pytest.param(3, "16=1,13=3/2/4", "d",
                                                                     id="three unequal devices")])
def test_several_devices_share_a_factorisation_and_what_begins_with_one(devices, attributes, types):
    lines = []
    for dtype in SIZES if LONG else types:
        memory = 72 * SIZES[dtype] // 4
        for arguments in (["-m", 150, "-n", 200, "-c", MORE if LONG or devices == 3 else 3, "-k", LARGE],
                          ["-n", 200, "-s", 100, "-c", 2 * MORE]):
            lines += above_memory("random_lapack", ["-r", dtype + "@(potrf|posv|getrf|gesv)", *arguments], memory,
                                  {**several(devices), "TESTGPU_ATTRIBUTES": attributes, "ACCEL_MEMORY": f"{memory}K"},
                                  ("gpu0+gpu1", "gpu0+gpu1+gpu2", "gpu0+gpu2", "gpu1+gpu2"))[0]
    assert {kind(f) for f in lines} == {"potrf", "posv", "getrf", "gesv"}
    assert devices == 3 and not LONG or {"U", "L"} < {f.get("args", "") for f in lines}  # both triangles
    assert devices == 2 or [f for f in lines if f["ran"] == "gpu0+gpu1+gpu2"]


def test_what_needs_the_whole_matrix():
    """A range of eigenvalues, singular values and symmetric pivoting cannot be had in panels."""
    lines_there, lines = above_memory("random_lapack", ["-n", 60, "-c", 2, "-r", "d@(syevr|gesdd|sytrf)", "-k", "well"],
                                      8)
    assert {f["sym"] for f in lines if f["why"] == "no_memory"} == {"dsyevr_", "dgesdd_", "dsytrf_"}
    assert not lines_there


def write_back(**env):
    done = start("write_back", "dpotrf", env={**TEST_GPU, **LOG, **QUICK, **env})
    assert done.returncode == 0, done.stderr[-300:]
    (line,) = lines_for(done, sym="dpotrf_", ran="gpu0")
    return line, number(line, "n") ** 2 * 8


def test_a_matrix_of_16_mb_in_10_mb(tmp_path):
    """The log has the bytes that the device has seen."""
    line, size = write_back(ACCEL_MEMORY="10M", TESTGPU_REPORT=str(tmp_path / "report"))
    assert size > 16e6
    report = (tmp_path / "report").read_text()
    copied = dict(re.findall(r"(h2d|d2h)_bytes=(\d+)", report))
    assert abs(float(line["up_mb"]) * 1e6 / int(copied["h2d"]) - 1) < 1e-3
    assert abs(float(line["down_mb"]) * 1e6 / int(copied["d2h"]) - 1) < 1e-3
    # Of a triangle's panels, what is above the diagonal does not come down.
    assert float(line["down_mb"]) * 1e6 < 0.65 * size
    assert "\ntestgpu fault " not in "\n" + report


@pytest.mark.parametrize("memory, most", [("400M", 0.7), ("24M", 0.52)])
def test_with_memory_for_all_of_it(memory, most):
    """Little more than the triangle goes up, in panels, and comes down; with memory for little else, too, as one
    piece."""
    line, size = write_back(ACCEL_MEMORY=memory)
    assert 0.999 * 0.5 < float(line["up_mb"]) * 1e6 / size < 1.001 * most
    assert 0.999 * 0.5 < float(line["down_mb"]) * 1e6 / size < 1.001 * 0.52
