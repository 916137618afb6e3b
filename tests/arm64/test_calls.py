#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A short form of tests/ops/test_calls.py, for machines on which its libraries from PyPI are not to be had: random
calls of every routine in every interface and integer width, with Debian's OpenBLAS. Right, each decided once, all on
the test GPU where there is one. And the floating-point state of a thread stays its own."""

import re

import pytest

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, TEST_GPU, start
from lib.table import routine_table

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
PROGRAMS = {"LP64": ("random_calls", "liblacking.so"), "ILP64": ("random_calls64", "liblacking64.so")}
MODES = {"no GPU": (NO_GPU, "cpu"), "test GPU": (TEST_GPU, "gpu0")}
SEEDS = {
    form: 1000 * (i + 1) for i, form in enumerate((width, interface) for width in PROGRAMS for interface in INTERFACES)
}
COUNT = 1
# OpenBLAS makes these for x86-64 alone.
LACKED = {"cgemm3m", "zgemm3m"}


@pytest.fixture(scope="module")
def runs():
    """The finished run of each width, interface and mode."""
    found = {}
    for (width, interface), seed in SEEDS.items():
        program, library = PROGRAMS[width]
        for mode, (env, _) in MODES.items():
            found[width, interface,
                  mode] = start(program, "-l", BUILD / "tests" / library, "-f", "y", "-i", interface, "-s", seed, "-c",
                                COUNT, 1, env={**env, **LOG, "TESTGPU_DELAY_US": "0"}, timeout=600)
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width, interface", SEEDS)
def test_random_calls(runs, width, interface, mode):
    done, place = runs[width, interface, mode], MODES[mode][1]
    lines = lines_for(done)
    assert done.returncode == 0, done.stdout + done.stderr[-800:]
    assert re.search(r"^\d+ calls, 0 wrong$", done.stdout, re.M)
    assert lines
    assert not [line for line in lines if line["ran"] != place and (line["ran"], line["why"]) != ("cpu", "empty")]
    assert not said(done)


def test_every_routine_that_openblas_has_runs_on_the_test_gpu(runs):
    symbols = {line["sym"] for done in runs.values() for line in lines_for(done) if line["ran"] == "gpu0"}
    ran = {re.fullmatch(r"(?:cblas_)?(\w+?)_?(?:64_)?", symbol)[1] for symbol in symbols}
    assert set(routine_table("ROUTINE")) - LACKED <= ran


@pytest.mark.parametrize("place, mode", (("gpu", "test GPU"), ("cpu", "no GPU")))
def test_floating_point_state_is_the_programs_own(place, mode):
    env, ran = MODES[mode]
    done = start("fp_state", place, env={**env, **LOG})
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line["ran"] for line in lines_for(done)} == {ran}


def test_under_directed_rounding_calls_are_the_cpus():
    one = {"OPENBLAS_NUM_THREADS": "1"}
    plain, done = start("fp_modes", env=one), start("fp_modes", env={**TEST_GPU, **LOG, **one})
    assert plain.returncode == 0
    assert done.stdout == plain.stdout, done.stderr[:800]
    assert {(line["ran"], line["why"]) for line in lines_for(done) if "arithmetic" in line} == {("cpu", "unsupported")}


def test_one_wrong_element_is_noticed():
    """The check itself is checked."""
    done = start("random_calls", "-c", 2, env={**TEST_GPU, "TESTGPU_WRONG": "3"}, timeout=600)
    assert done.returncode == 1, done.stderr
    assert ", 1 wrong" in done.stdout
