#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Storms of writers: matrices of products with vectors, those that calls bring, and results."""

import pytest

from lib.programs import LONG
from lib.storms import Kind, cases, environments, storm

VECTORS, RESULTS = (500, 300) if LONG else (24, 20)


@pytest.mark.parametrize("kind, way", cases(
    Kind("vectors", "watched", VECTORS, ("fresh", "vector")), Kind("brought", "brought", VECTORS, ("fresh", "vector")),
    Kind("results", "digests", RESULTS, ("result",)), Kind("results, watched", "watched", RESULTS,
                                                           ("fresh", "result"))))
def test_no_call_gets_the_old_contents(kind, way, environments):
    storm(kind, way, environments)
