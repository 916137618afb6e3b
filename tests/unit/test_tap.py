#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""tests/tap.py: what prove reads of a file of pytest's."""

import subprocess

import pytest

from lib.programs import ROOT

FILE = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no such device")

@pytest.fixture
def leaves():
    yield
    raise OSError("still open")

@pytest.mark.parametrize("n", [1, 2])
def test_small(n):
    print("this is no TAP: ok 7")
    assert n < 2

def test_broken(broken):
    pass

def test_leaves(leaves):
    pass

def test_skipped():
    pytest.skip("no browser")
"""


def tap(path, *options):
    done = subprocess.run(["tests/tap.py", str(path), *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("#")], done.stdout


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "test_file.py"
    path.write_text(FILE)
    return path


def test_each_test_has_a_line(file):
    code, lines, _ = tap(file)
    assert code == 1
    assert lines == ["ok 1 - test_small[1]", "not ok 2 - test_small[2]", "not ok 3 - test_broken: setup", "ok 4 - test_leaves",
                     "not ok 5 - test_leaves: teardown", "ok 6 - test_skipped # SKIP no browser", "1..6"]


def test_a_failure_says_what_was_compared(file):
    assert "#   E   assert 2 < 2" in tap(file)[2].splitlines()


def test_options_are_those_of_pytest(file):
    assert tap(file, "-k", "1")[:2] == (0, ["ok 1 - test_small[1]", "1..1"])


def test_a_file_that_cannot_be_imported_fails(file):
    file.write_text("import nothing_of_this_name")
    code, lines, _ = tap(file)
    assert code != 0
    assert [line[:10] for line in lines] == ["not ok 1 -", "1..1"]


def test_a_file_without_tests_fails(file):
    file.write_text("")
    code, lines, _ = tap(file)
    assert (code != 0, lines) == (True, ["1..0"])
