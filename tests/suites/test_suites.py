#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Those of NumPy's own tests that are about products and linear algebra; with TEST_LONG=1 all of NumPy's, SciPy's and
scikit-learn's that call BLAS and take no longer than some minutes."""

import pytest

from lib.programs import BUILD, LONG
from suites.check import compare
from suites.paths import ALL, MORE, SHORT, SMALL
from suites.verdict import END, EXCEPTIONS, covers, read_exceptions

PARTS = SMALL if LONG else SHORT


@pytest.fixture(scope="module", params=PARTS)
def suite(request):
    """Both runs of a suite. The longest tests take minutes where the machine does other work."""
    return compare(PARTS[request.param], BUILD / "suites" / request.param, limit=600)


def test_it_runs_without_libaccel(suite):
    assert suite.whole, (suite.native.outcomes[END], suite.native.output)


def test_every_test_has_the_same_outcome_under_libaccel(suite):
    assert not suite.new, suite.notes


def test_every_exception_is_needed(suite):
    assert not suite.stale


def test_calls_ran_on_the_gpu(suite):
    assert suite.gpu


def test_the_gpu_never_failed_and_was_never_misused(suite):
    assert not suite.bad


def test_every_exception_is_of_a_test_that_some_suite_has():
    paths = sum([*ALL.values(), *MORE.values()], [])
    assert not [name for name in read_exceptions(EXCEPTIONS) if not covers(paths, name)]
