#!/usr/bin/python3 -B
"""The comparison of suites itself: a small suite of whose tests some differ under libaccel."""

import contextlib
import io
import tempfile
from pathlib import Path

from check import check_suite
from lib.tap import Tap

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


def check(folder, **options):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        check_suite(Tap(), "it", folder=folder / "out", root=folder, exceptions=folder / "exceptions", hypothesis=False, **options)
    return text.getvalue()


tap = Tap()
with tempfile.TemporaryDirectory(prefix="accel-suite-") as temporary:
    folder = Path(temporary)
    (folder / "test_it.py").write_text(SUITE)
    (folder / "exceptions").write_text(EXCEPTIONS)
    text = check(folder, paths=["test_it.py"], limit=10)
    tap.ok("\nnot ok 2 - it: every test has" in text and "#   5 differ" in text, "differences are found", text)
    for name, shown in {
        "fails": "passed without, failed with libaccel",
        "skips": "passed without, skipped with libaccel",
        "segfaults": "passed without, SIGSEGV with libaccel",
        "hangs": "passed without, hung with libaccel",
        "last": "failed without, passed with libaccel",
    }.items():
        tap.ok(f"#   test_it.py::test_{name}: {shown}" in text, f"{name}: {shown}", text)
    for name, shown in {"once": "differed once, not again", "unstable": "not stable without libaccel",
                        "excepted": "exception"}.items():
        tap.ok(any(shown in line and f"::test_{name}:" in line for line in text.splitlines()), f"{name}: {shown}", text)
    for name in "forks", "address":
        tap.ok(f"test_{name}" not in text, f"{name}: no difference", text)
    tap.ok("not ok 3 - it: every exception is needed" in text, "entries that are not needed are found", text)
    tap.ok("test_it.py::test_product: passed with and without libaccel" in text, "one that does not differ", text)
    tap.ok("test_it.py::test_gone: there is no such test" in text, "one that is not there", text)
    tap.ok("test_other.py" not in text, "not one that is not in this run", text)

    # Without a product nothing proves that the GPU was used.
    (folder / "test_it.py").write_text("def test_nothing(): pass\n")
    (folder / "exceptions").write_text("")
    text = check(folder, paths=["test_it.py"])
    tap.ok("not ok 4 - it: calls ran on the GPU" in text and text.count("not ok") == 1, "a suite without a call", text)
    text = check(folder, paths=["test_missing.py"])
    tap.ok("not ok 1 - it: runs without libaccel" in text, "a suite that is not there", text)
tap.done()
