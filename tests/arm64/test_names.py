#!/usr/bin/python3 -B
"""libaccel for AArch64 exports the names that it exports on x86-64."""

import subprocess

from lib.programs import BUILD
from lib.tap import Tap

tap = Tap()


def names(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listing.splitlines()}


here, there = names(BUILD / "libaccel.so"), names(BUILD / "arm64/libaccel.so")
tap.ok(len(here) > 1000 and here == there, f"{len(here)} names", *sorted(here ^ there))
tap.done()
