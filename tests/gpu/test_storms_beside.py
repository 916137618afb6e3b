#!/usr/bin/python3 -B
"""Storms of writers: matrices of products with vectors, those that calls bring, results, and triangles."""

from lib.storms import rage
from lib.tap import Tap

tap = Tap()
rage(tap, lambda by_digests, watched, brought: (
    ("vectors", watched, 24, 500, ("fresh", "vector")), ("brought", brought, 24, 500, ("fresh", "vector")),
    ("results", by_digests, 20, 300, ("result",)), ("results, watched", watched, 20, 300, ("fresh", "result")),
    ("triangles", by_digests, 20, 300, ("triangle",)), ("triangles, watched", watched, 20, 300, ("fresh", "triangle")),
    ("triangles, vectors", watched, 20, 300, ("fresh", "triangle", "vector"))))
tap.done()
