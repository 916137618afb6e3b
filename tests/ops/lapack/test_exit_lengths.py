#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""WORK(1) after a call on the GPU is what the program's own LAPACK answers to a workspace query. That is asked after
the call, and nobody sees it: no decision of it or of what the library calls meanwhile, no flag of the program's; and
where the library has no answer, the program's own length stands. test_random_lapack.py compares all routines. See
exit_lengths.c."""

import re

import pytest

from lib.log import lines_for, said
from lib.programs import NO_GPU, SHIM, TEST_GPU, TESTS, start

LIBRARY = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS / 'liblengths.so'}"}
GPU = {**TEST_GPU, **LIBRARY, "ACCEL_LOG": "2", "TESTGPU_DELAY_US": "0"}


def inversions(done):
    """lwork, INFO, WORK(1), flags and the number of questions, of each call."""
    return [tuple(map(int, numbers))
            for numbers in re.findall(r"lwork=(\d+) info=(-?\d+) work=(-?\d+) flags=(\d+) asked=(\d+)", done.stdout)]


@pytest.mark.parametrize("how, left", [("blocks", (4800, 4800)), ("unknown", (300, 5103)), ("nonsense", (300, 5103))],
                         ids=str)
def test_lengths(how, left):
    done = start("exit_lengths", env={**GPU, "AT_LENGTHS": how})
    assert inversions(done) == [(300, 0, left[0], 0, 1), (5103, 0, left[1], 0, 1)]
    assert len(lines_for(done, sym="dgetri_", ran="gpu0")) == 2
    assert not said(done)
    # No decision of the question, nor of its own calls.
    assert not {f["sym"] for f in lines_for(done)} - {"dgetrf_", "dgetri_"}
    assert not lines_for(done, why="workspace_query")


@pytest.mark.parametrize("env", [pytest.param({**NO_GPU, **LIBRARY}, id="no GPU"),
                                 pytest.param({**GPU, "ACCEL": "0"}, id="ACCEL=0")])
def test_the_library_is_asked_nothing(env):
    assert [asked for *_, asked in inversions(start("exit_lengths", env={**env, "AT_LENGTHS": "blocks"}))] == [0, 0]
