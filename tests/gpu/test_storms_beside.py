#!/usr/bin/python3 -B
"""Storms of writers: matrices of products with vectors, those that calls bring, and results."""

from lib.programs import LONG
from lib.storms import rage
from lib.tap import Tap

tap = Tap()
VECTORS, RESULTS = (500, 300) if LONG else (24, 20)
rage(tap, lambda by_digests, watched, brought: (
    ("vectors", watched, VECTORS, ("fresh", "vector")), ("brought", brought, VECTORS, ("fresh", "vector")),
    ("results", by_digests, RESULTS, ("result",)), ("results, watched", watched, RESULTS, ("fresh", "result"))))
tap.done()
