#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""ACCEL_VERIFY: right results pass, whatever the routine; a planted wrong element is found every time, and answered as
ACCEL_VERIFY_ACTION says. Every result is judged apart from libaccel by random_calls and random_lapack."""

import re
import signal
from collections import Counter

import pytest

from lib.log import lines_for, parse_log, said
from lib.programs import LONG, TEST_GPU, TESTS, start
from lib.table import routine_table

GPU = {**TEST_GPU, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
ALL = {**GPU, "ACCEL_VERIFY": "all", "ACCEL_LOG": "1"}
LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]  # what OpenBLAS 0.3.21 itself gets wrong: calls.c
BLAS = [*LACKING, "-n", 90]
LAPACK = ["-f", "tyesmv", "-n", 40]

# What no test of this cost can judge.
MAY_BE_UNKNOWN = "laswp|gecon|pocon"
# OpenBLAS's chetf2 calls it, to which random_lapack leaves the matrices of extreme norms alone.
LEFT_TO_OTHERS = {f"{name}_" for name, op in routine_table("ROUTINE").items() if op == "her"}


def verified(done):
    return [f for f in parse_log(done.stderr) if "verify" in f]


def judgements(done):
    """The results that are judged, of a run that ends well and says nothing of a wrong one."""
    assert done.returncode == 0, done.stdout[-300:]
    assert not said(done)
    judged = [f for f in verified(done) if f["verify"] != "unknown"]
    assert not [f for f in judged if float(f["verify"]) > 1]
    return judged


# ---- Right results ----


@pytest.mark.parametrize("program, arguments, count, extra", [
    pytest.param("random_calls", BLAS, 12 if LONG else 6, {}, id="BLAS"),
    pytest.param("random_calls", [*BLAS, 8], 3 if LONG else 1, {}, id="BLAS, 8 threads"),
    pytest.param("random_calls", BLAS, 4, {"ACCEL_MEMORY": "100K"}, id="BLAS in tiles"),
    pytest.param("cuda_program", [*LACKING, "-n", 40], 2 if LONG else 1, {}, id="device memory"),
    pytest.param("random_lapack", LAPACK, 12 if LONG else 6, {}, id="LAPACK"),
    pytest.param("random_lapack", [*LAPACK, 8], 3 if LONG else 1, {}, id="LAPACK, 8 threads")])
def test_none_is_called_wrong(program, arguments, count, extra):
    """All that ran on the GPU is verified, and of every routine some are judged."""
    done = start(program, "-c", count, *arguments, env={**ALL, **extra})
    judged = judgements(done)
    assert len(judged) > 100
    print(f"the worst is {max(float(f['verify']) for f in judged):.2g} of the bound")
    assert not [f for f in parse_log(done.stderr) if f["ran"].startswith("gpu") and "verify" not in f]
    known = {f["sym"] for f in judged}
    unknown = Counter(f["sym"] for f in verified(done) if f["verify"] == "unknown")
    left = LEFT_TO_OTHERS if program == "random_lapack" else set()
    assert not [sym for sym, count in unknown.items() if count > 8 and sym not in known | left
                and not re.search(MAY_BE_UNKNOWN, sym)]


# ---- Factors that grow ----


def test_wilkinsons_matrices_whose_solutions_are_as_inexact_on_the_cpu():
    done = start("growth", 5, 20, 33, 50, 100, env=ALL)
    assert len(judgements(done)) >= 18
    assert len(verified(done)) == 20


@pytest.mark.parametrize("nth", range(1, 9))
def test_but_those_with_a_wrong_element_are_called_wrong(nth):
    done = start("growth", 8, env={**ALL, "TESTGPU_WRONG": str(nth)})
    assert [f for f in verified(done) if f["verify"] != "unknown" and float(f["verify"]) > 1]


def test_eigenvectors_of_graded_matrices_which_balancing_moves():
    done = start("graded", 200, env=ALL)
    assert len(judgements(done)) > 300
    assert len(verified(done)) == 400


# ---- A planted element ----


def wrong_routines(done):
    """Routines whose results the program has found to be wrong."""
    return set(re.findall(r"(?m)^wrong: (?:\S+ )?([sdcz]\w+)[ :]", done.stderr))


def not_judged(done):
    """Routines of which a result was not judged, and those of whose results not everything is (docs/verify.md)."""
    unknown = {re.sub(r"^cblas_|_\w*$", "", f["sym"]) for f in verified(done) if f["verify"] == "unknown"}
    return unknown | {r for r in wrong_routines(done) if re.search(f"gels|{MAY_BE_UNKNOWN}", r)}


def wrong_results(done):
    found = re.search(r"(\d+)(?: calls)? wrong", done.stdout)
    return int(found[1]) if found else -1


@pytest.mark.parametrize("program, arguments, kernels", [
    pytest.param("random_calls", BLAS, range(1, 80, 2 if LONG else 5), id="BLAS"),
    pytest.param("random_lapack", LAPACK, range(1, 1600, 31 if LONG else 53), id="LAPACK")])
def test_planted_elements_are_all_found_and_computed_anew(program, arguments, kernels):
    bad, caught, unknown = [], 0, 0
    for nth in kernels:
        plain = start(program, *arguments, "-c", 1, env={**GPU, "TESTGPU_WRONG": str(nth)})
        if wrong_results(plain) == 0:
            continue  # where the routine does not look, or within what is allowed
        done = start(program, *arguments, "-c", 1, env={**ALL, "ACCEL_VERIFY_ACTION": "cpu", "TESTGPU_WRONG": str(nth)})
        if wrong_routines(done) and wrong_routines(done) <= not_judged(done):
            unknown += 1
            continue
        caught += 1
        failed = lines_for(done, why="verify_failed") and "verification: the GPU's result is wrong" in done.stderr
        if wrong_results(done) != 0 or not failed:
            bad.append(f"{nth}: {plain.stdout[-80:]} {plain.stderr[-300:]} "
                       f"then {done.stdout[-80:]} {done.stderr[-200:]}")
    assert not bad
    assert caught > (8 if LONG else 3)
    assert caught > 3 * unknown


# ---- The actions ----

PRODUCTS = ["random_calls", "-c", 4, "-n", 60, "-r", "dgemm"]


@pytest.mark.parametrize("action, code", [("warn", 1), ("cpu", 0), ("abort", -signal.SIGABRT)])
def test_actions(action, code):
    done = start(*PRODUCTS, env={**ALL, "TESTGPU_WRONG": "2", "ACCEL_VERIFY_ACTION": action})
    assert done.returncode == code
    (line,) = said(done)
    assert re.search(r"dgemm\S*: verification: the GPU's result is wrong, [\d.]+ times what rounding may do", line)
    behind = lines_for(done, why="verify_failed")
    if action == "cpu":  # that call and all further ones are the CPU's
        assert behind
        assert all(f["ran"] == "cpu" for f in behind)
        assert parse_log(done.stderr)[-1]["why"] == "verify_failed"
    else:
        assert not behind


def test_with_require_the_program_is_ended():
    done = start(*PRODUCTS, env={**ALL, "TESTGPU_WRONG": "2", "ACCEL_VERIFY_ACTION": "cpu", "ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 1
    assert "why=verify_failed" in done.stderr


def test_a_sample_of_5():
    done = start("random_calls", "-c", 30, "-n", 60, "-r", "dgemm", env={**ALL, "ACCEL_VERIFY": "sample:5"})
    assert len(verified(done)) == len(lines_for(done, ran="gpu0")) // 5 > 1


@pytest.mark.parametrize("value", ["off", ""])
def test_nothing_is_verified_where_that_is_off(value):
    done = start(*PRODUCTS, env={**ALL, "ACCEL_VERIFY": value})
    assert not verified(done)
    assert lines_for(done, ran="gpu0")
