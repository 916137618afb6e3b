#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Storms of writers: whole matrices that are known by digests, or watched."""

import pytest

from lib.programs import LONG
from lib.storms import Kind, cases, environments, storm


@pytest.mark.parametrize("kind, way", cases(Kind("digests", "digests", 2000 if LONG else 40, ()),
                                            Kind("watched", "watched", 2000 if LONG else 24, ("fresh",))))
def test_no_call_gets_the_old_contents(kind, way, environments):
    storm(kind, way, environments)
