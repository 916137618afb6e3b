#!/usr/bin/python3 -B
"""libaccel for AArch64 exports the names that it exports on x86-64."""

from lib.programs import BUILD, exported
from lib.tap import Tap

tap = Tap()
here, there = exported(BUILD / "libaccel.so"), exported(BUILD / "arm64/libaccel.so")
tap.ok(len(here) > 1000 and here == there, f"{len(here)} names", *sorted(here ^ there))
tap.done()
