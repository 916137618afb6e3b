#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""libaccel for AArch64 exports the names that it exports on x86-64."""

from lib.programs import BUILD, exported


def test_names():
    here, there = exported(BUILD / "libaccel.so"), exported(BUILD / "arm64/libaccel.so")
    assert len(here) > 1000
    assert here == there
