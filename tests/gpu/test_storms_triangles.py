#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Storms of writers: matrices of which calls read a triangle."""

import pytest

from lib.programs import LONG
from lib.storms import Kind, cases, environments, storm

ROUNDS = 300 if LONG else 20


@pytest.mark.parametrize("kind, way", cases(
    Kind("triangles", "digests", ROUNDS, ("triangle",)), Kind("triangles, watched", "watched", ROUNDS,
                                                              ("fresh", "triangle")),
    Kind("triangles, vectors", "watched", ROUNDS, ("fresh", "triangle", "vector"))))
def test_no_call_gets_the_old_contents(kind, way, environments):
    storm(kind, way, environments)
