#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What the fuzzers start from, and what they have found: every file goes through its target, without a fuzzer."""

from pathlib import Path

import pytest

from lib.programs import start

HERE = Path(__file__).resolve().parent
TARGETS = sorted(path.stem for path in HERE.glob("*.c"))


def test_each_target_has_a_corpus():
    corpora = [path.name for path in (HERE / "corpus").iterdir()]
    assert corpora
    assert not set(corpora) - set(TARGETS)


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "corpus").iterdir()))
def test_every_input_goes_through(name):
    files = sorted(str(path) for kind in ("corpus", "findings") for path in (HERE / kind / name).glob("*"))
    assert len(files) > 3
    done = start(f"replay_{name}", *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == files
