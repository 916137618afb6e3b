#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""PyTorch's operations on the CPU, of the Python that TORCH_PYTHON names, which has PyPI's torch: its wheel and those
of CUDA are too large to be fetched for a test. Without libaccel, with it and no GPU, and with the test GPU."""

import os
import subprocess
from collections import namedtuple

import pytest

from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, ROOT, TEST_GPU, VENV_PYTHON, start
from lib.regress import Row

PYTHON = os.environ.get("TORCH_PYTHON", VENV_PYTHON)
PROGRAM = ROOT / "tests/regress/torch_operations.py"
STAND_INS = str(BUILD / "testgpu")
ROUTINES = "gemm_ syevd_ heevd_ gesdd_ getrf_ getrs_ potrf_ potrs_ geqrf_ orgqr_ ungqr_ gels_ gelsd_ geev_".split()
# ?gelsy is the CPU's; a question for workspace is the original's.
CPU = {"workspace_query"}


def read(done):
    """{what: its residual}"""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()}


def too_large(values):
    return {name: value for name, value in values.items() if not value <= (0 if name.endswith("wrong") else 30)}


def worst(values):
    return max(value for name, value in values.items() if not name.endswith("wrong"))


Plain = namedtuple("Plain", "row stdout values")
Run = namedtuple("Run", "row done lines")


@pytest.fixture(scope="module")
def plain(request):
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import torch"],
                                                    capture_output=True).returncode != 0:
        pytest.skip("TORCH_PYTHON names no Python that has it (pip install torch: several GB)")
    row = Row(request)
    done = start(PYTHON, PROGRAM, timeout=600)
    values = read(done)
    assert done.returncode == 0, done.stderr[-500:]
    assert len(values) > 50
    assert too_large(values) == {}
    return Plain(row, done.stdout, values)


@pytest.fixture(scope="module")
def without(plain):
    """The run without a GPU."""
    done = start(PYTHON, PROGRAM, env={**NO_GPU, **LOG}, timeout=600)
    return Run(plain.row, done, lines_for(done))


def test_without_a_gpu_every_byte_is_alike(plain, without):
    assert without.done.stdout == plain.stdout, without.done.stderr[-500:]


def test_without_a_gpu_each_call_is_known(without):
    assert without.lines
    assert not [f for f in without.lines if f["why"] == "unsupported"]


def test_row_of_no_gpu(plain, without):
    without.row.write("PyTorch", "no GPU", without.lines, len(plain.values), 0.0, None, 0.0)


@pytest.fixture(scope="module")
def on_gpu(plain, request):
    row = Row(request)
    done = start(PYTHON, PROGRAM, STAND_INS, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}, timeout=600)
    return Run(row, done, lines_for(done))


def test_results_are_within_the_bounds(plain, on_gpu):
    values = read(on_gpu.done)
    assert on_gpu.done.returncode == 0, on_gpu.done.stderr[-500:]
    assert values.keys() == plain.values.keys()
    assert too_large(values) == {}


def test_each_call_runs_on_the_gpu(on_gpu):
    assert on_gpu.lines
    assert not [f for f in on_gpu.lines if f["ran"] != "gpu0" and f["why"] not in CPU]


def test_routines_are_in_the_log_with_their_sizes(on_gpu):
    called = {f["sym"] for f in on_gpu.lines if f["ran"] == "gpu0"}
    assert set(ROUTINES) <= {sym[1:] for sym in called}
    assert {f"cblas_{t}gemm_batch" for t in "sdcz"} <= called
    assert all("n" in f or "m" in f for f in on_gpu.lines)


def test_row_of_the_gpu(plain, on_gpu):
    values = read(on_gpu.done)
    on_gpu.row.write("PyTorch", "test GPU", on_gpu.lines, len(values), worst(values), worst(plain.values), 30.0)
