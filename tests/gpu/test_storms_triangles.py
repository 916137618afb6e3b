#!/usr/bin/python3 -B
"""Storms of writers: matrices of which calls read a triangle."""

from lib.programs import LONG
from lib.storms import rage
from lib.tap import Tap

tap = Tap()
ROUNDS = 300 if LONG else 20
rage(tap, lambda by_digests, watched, brought: (
    ("triangles", by_digests, ROUNDS, ("triangle",)), ("triangles, watched", watched, ROUNDS, ("fresh", "triangle")),
    ("triangles, vectors", watched, ROUNDS, ("fresh", "triangle", "vector"))))
tap.done()
