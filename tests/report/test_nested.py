#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Calls inside calls: their depth in the log, wherever they come from and however the outer call is left; what each
level of the log has of them; and calls that are too short for it."""

from collections import namedtuple

import pytest

from lib.log import parse_log
from lib.programs import NO_GPU, REFERENCE, TEST_GPU, start

# The reference LAPACK, which calls BLAS through the linker.
ON_CPU = {**NO_GPU, **REFERENCE}
ON_GPU = {**TEST_GPU, **REFERENCE, "ACCEL_CPU": "dgetrf"}
OWN_CALLS = ["dgetrf_", "dgemm_", "dgemm_"]
# What happens in between -> the depths of products there.
IN_BETWEEN = {"nothing": [], "deeper": [], "thread": ["0"], "fork": ["1"], "handler": ["1"], "alternate": ["1"],
              "below": ["1"],
              "leave": [], "leave-alternate": [], "exit": []}
SESSION = "set.seed(1); a <- matrix(rnorm(300 * 300), 300); s <- svd(a); e <- eigen(crossprod(a)); " \
          "stopifnot(s$d[1] > 0, e$values[1] > 0)"

Nested = namedtuple("Nested", "what done lines")


def nested(what, level="2", base=ON_CPU, **env):
    done = start("nested", what, env={**base, "ACCEL_LOG": level, **env})
    return Nested(what, done, parse_log(done.stderr))


@pytest.fixture(scope="module", params=IN_BETWEEN)
def run(request):
    return nested(request.param)


def factorisations(lines, order):
    return [line.get("depth") for line in lines if line["sym"] == "dgetrf_" and line["m"] == str(order)]


def products(lines, order):
    """The depths of the products of this order, in the order of the log."""
    return [line.get("depth", "0") for line in lines if line["sym"] == "dgemm_" and line["m"] == str(order)]


def inside(lines):
    return [line.get("depth") for line in lines if line["sym"] in ("dtrsm_", "dlaswp_")]


def test_the_depth_of_a_product_in_between(run):
    assert run.done.returncode == 0
    assert products(run.lines, 9) == IN_BETWEEN[run.what]


def test_products_after_it_are_the_program_s_own(run):
    assert products(run.lines, 7) == ["0", "0"]


def test_the_call_itself_is_the_program_s_if_it_has_ended(run):
    assert factorisations(run.lines, 200) == ([] if run.what.startswith("leave") else [None])


@pytest.mark.parametrize("what", [what for what in IN_BETWEEN if not what.startswith("leave")])
def test_those_of_lapack_are_inside(what):
    assert set(inside(nested(what).lines)) == ({"1", "2"} if what == "deeper" else {"1"})


def test_those_of_the_second_one_are_in_that():
    lines = nested("deeper").lines
    assert factorisations(lines, 100) == ["1"]
    assert inside(lines) == sorted(inside(lines), reverse=True)


def test_calls_that_are_deeper_than_eight_others_count_as_inside_eight():
    run = nested("deepest")
    assert run.done.returncode == 0
    assert factorisations(run.lines, 100) == ["8", "8", "8", "7", "6", "5", "4", "3", "2", "1"]
    assert factorisations(run.lines, 200) == [None], "and the others are the program's own"
    assert products(run.lines, 7) == ["0", "0"]


# ---- What a log has of them ----


def test_the_first_level_has_the_program_s_own_calls_alone():
    assert [line["sym"] for line in nested("nothing", "1").lines] == OWN_CALLS


def test_those_inside_one_that_the_gpu_got_are_a_number_of_its_line():
    inner = [line for line in nested("deeper", base=ON_GPU).lines if "depth" in line and line.get("ran") == "gpu0"]
    assert {"dgemm_", "dtrsm_"} <= {line["sym"] for line in inner}
    lines = nested("deeper", "1", base=ON_GPU).lines
    assert [line["sym"] for line in lines] == OWN_CALLS
    assert [line.get("inner_gpu") for line in lines] == [str(len(inner)), None, None]


# ---- A session of R with one svd and one eigen is told in a few lines ----


@pytest.mark.parametrize("env", [
    pytest.param(NO_GPU, id="no GPU"), pytest.param(TEST_GPU, id="test GPU"),
    pytest.param({**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait"}, id="test GPU, by its cost"),
    pytest.param({**TEST_GPU, "ACCEL_CPU": "dgesdd,dsyevr"}, id="test GPU, calls inside others on it"),
    pytest.param({**TEST_GPU, "ACCEL_POLICY": "cpu"}, id="test GPU, ACCEL_POLICY=cpu")])
def test_r_at_most_20_lines(env):
    done = start("/usr/bin/Rscript", "-e", SESSION, env={**env, "ACCEL_LOG": "1", "TESTGPU_DELAY_US": "0"})
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) <= 20
    assert {"dgesdd_", "dsyevr_"} <= {line["sym"] for line in parse_log(done.stderr)}


def test_r_the_second_level_has_what_was_called_inside():
    done = start("/usr/bin/Rscript", "-e", SESSION, env={**NO_GPU, "ACCEL_LOG": "2"})
    assert len(parse_log(done.stderr)) > 1000


# ---- Short calls ----


def test_the_least_time_leaves_out_calls_that_took_less():
    assert not nested("nothing", "1", ACCEL_LOG_MIN_MS="60000").lines


def test_but_not_of_the_summary():
    run = nested("nothing", "1", ACCEL_LOG_MIN_MS="60000", ACCEL_SUMMARY="1")
    assert "dgemm " in run.done.stderr
    assert not run.lines


def test_it_has_those_that_took_longer():
    assert len(nested("nothing", ACCEL_LOG_MIN_MS="0.000001").lines) > 3


def test_calls_that_were_not_timed_may_have_been_long():
    done = start("bad_arguments", env={**ON_CPU, "ACCEL_LOG": "1", "ACCEL_LOG_MIN_MS": "60000"})
    lines = parse_log(done.stderr)
    assert lines
    assert not [line for line in lines if "ms" in line]
