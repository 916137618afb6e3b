#!/usr/bin/python3 -B
"""Storms of writers: whole matrices that are known by digests, or watched."""

from lib.storms import rage
from lib.tap import Tap

tap = Tap()
rage(tap, lambda by_digests, watched, brought: (("digests", by_digests, 40, 2000, ()), ("watched", watched, 24, 2000, ("fresh",))))
tap.done()
