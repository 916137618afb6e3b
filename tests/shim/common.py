"""What the tests of the shim share: the programs beside this file, run with and without libaccel."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))
from harness import BUILD, LONG, NO_GPU, ROOT, RUNTIME, SHIM, TEST_GPU, UNDER_TSAN, Tap, clean_env, parse_log  # noqa: E402,F401

TESTS = BUILD / "tests"
PLAIN = {}
LOG = {"ACCEL_LOG": "1"}


def start(name, *arguments, env=PLAIN, timeout=300, **options):
    """Runs a test program; returns the finished process, its output as text."""
    full = clean_env(tempfile.gettempdir())
    full.update(env)
    path = name if "/" in name else str(TESTS / name)
    return subprocess.run(
        [path, *map(str, arguments)], env=full, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=timeout,
        stdout=options.pop("stdout", subprocess.PIPE), stderr=options.pop("stderr", subprocess.PIPE),
        text=True, errors="replace", **options,
    )


def lines_for(done, **fields):
    """The decision lines of a run that have these fields."""
    return [f for f in parse_log(done.stderr) if fields.items() <= f.items()]


def said(done):
    """What libaccel said on stderr without being asked: all but the log."""
    return [line for line in done.stderr.splitlines() if line.startswith("accel: ")]
