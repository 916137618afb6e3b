#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The comparison of suites itself: a small suite of whose tests some differ under libaccel."""

import subprocess

import pytest

from lib.programs import ROOT
from suites.check import compare

SUITE = """
import os, signal, time
from pathlib import Path
import numpy
import pytest

HERE = Path(__file__).parent
under = "LD_PRELOAD" in os.environ

def test_fails(): assert not under
def test_excepted(): assert not under
def test_skips():
    if under: pytest.skip()
def test_segfaults():
    if under: os.kill(os.getpid(), signal.SIGSEGV)
def test_hangs():
    if under: time.sleep(100)
def test_forks():
    if not os.fork(): raise KeyboardInterrupt  # the child is in pytest, too
    os.wait()
def test_once():
    if under and not (HERE / "once").exists():
        (HERE / "once").touch()
        assert False
def test_unstable():
    if not under and not (HERE / "unstable").exists():
        (HERE / "unstable").touch()
        assert False
@pytest.mark.parametrize("object", [object()])
def test_address(object): pass
def test_product(): assert (numpy.ones((3, 3)) @ numpy.ones((3, 3)) == 3).all()
def test_last(): assert under
"""
EXCEPTIONS = """# as in the file beside this one
test_it.py::test_excepted  # it does
test_it.py::test_product  # it does not
test_it.py::test_gone  # not there
test_other.py::test_gone  # not in this run
"""


def compared(folder, suite, exceptions="", paths=["test_it.py"], **options):
    (folder / "test_it.py").write_text(suite)
    (folder / "exceptions").write_text(exceptions)
    return compare(paths, folder / "out", root=folder, exceptions=folder / "exceptions", hypothesis=False, **options)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("suite"), SUITE, EXCEPTIONS, limit=10)


def test_differences_are_found(found):
    assert len(found.new) == 5


@pytest.mark.parametrize("name, shown", [
    ("fails", "passed without, failed with libaccel"), ("skips", "passed without, skipped with libaccel"),
    ("segfaults", "passed without, SIGSEGV with libaccel"), ("hangs", "passed without, hung with libaccel"),
    ("last", "failed without, passed with libaccel")])
def test_a_difference(found, name, shown):
    assert [line for line in found.new if line.startswith(f"test_it.py::test_{name}: {shown}")]


@pytest.mark.parametrize("name, shown", [("once", "differed once, not again"),
                                         ("unstable", "not stable without libaccel"),
                                         ("excepted", "exception")])
def test_what_is_none(found, name, shown):
    assert [line for line in found.notes if shown in line and f"::test_{name}:" in line]


@pytest.mark.parametrize("name", ["forks", "address"])
def test_no_difference(found, name):
    assert not [line for line in found.new + found.notes + found.stale if f"test_{name}" in line]


def test_entries_that_are_not_needed_are_found(found):
    """One that does not differ, one that is not there; not one that is not in this run."""
    assert sorted(found.stale) == ["test_it.py::test_gone: there is no such test",
                                   "test_it.py::test_product: passed with and without libaccel"]


def test_a_suite_without_a_call(tmp_path):
    """Without a product nothing proves that the GPU was used."""
    found = compared(tmp_path, "def test_nothing(): pass\n")
    assert found.whole
    assert not found.gpu
    assert not found.new
    assert not found.stale
    assert not found.bad


def test_a_suite_that_is_not_there(tmp_path):
    assert not compared(tmp_path, "def test_nothing(): pass\n", paths=["test_missing.py"]).whole


def test_a_suite_that_nobody_knows():
    done = subprocess.run([ROOT / "tests/suites/run", "such"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert done.returncode == 2
    assert "no such suite: such\n" in done.stdout
