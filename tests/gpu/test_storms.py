#!/usr/bin/python3 -B
"""Storms of writers: whole matrices that are known by digests, or watched."""

from lib.programs import LONG
from lib.storms import rage
from lib.tap import Tap

tap = Tap()
rage(tap, lambda by_digests, watched, brought: (("digests", by_digests, 2000 if LONG else 40, ()), ("watched", watched, 2000 if LONG else 24, ("fresh",))))
tap.done()
