#!/usr/bin/python3 -B
"""Storms of writers: matrices of products with vectors, those that calls bring, results, and triangles."""

from lib.programs import LONG
from lib.storms import rage
from lib.tap import Tap

tap = Tap()
VECTORS, OTHERS = (500, 300) if LONG else (24, 20)
rage(tap, lambda by_digests, watched, brought: (
    ("vectors", watched, VECTORS, ("fresh", "vector")), ("brought", brought, VECTORS, ("fresh", "vector")),
    ("results", by_digests, OTHERS, ("result",)), ("results, watched", watched, OTHERS, ("fresh", "result")),
    ("triangles", by_digests, OTHERS, ("triangle",)), ("triangles, watched", watched, OTHERS, ("fresh", "triangle")),
    ("triangles, vectors", watched, OTHERS, ("fresh", "triangle", "vector"))))
tap.done()
