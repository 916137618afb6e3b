"""A pytest plugin: a line of JSON for each event, written at once, so that what a crash interrupts is known.

    ["listed", id]            collected, selected or not
    ["started", id]
    ["ended", id, outcome]    passed, failed, skipped, xfailed, xpassed or error (outside the test itself)

ACCEL_SUITES_RECORD is the file; what it has already is not run again. ACCEL_SUITES_ONLY names a file with the ids
to run, one a line: a command line has not room for thousands.
"""

import json
import os
import random
import re
import zlib
from pathlib import Path

import numpy
import pytest

ME = os.getpid()
RECORD = Path(os.environ.pop("ACCEL_SUITES_RECORD"))
ONLY = os.environ.pop("ACCEL_SUITES_ONLY", None)
DONE = {event[1] for event in map(json.loads, RECORD.read_text().splitlines()) if event[0] == "started"}
SELECTED = set(Path(ONLY).read_text().splitlines()) if ONLY else None
output = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
outcomes = {}


def same_id(nodeid):
    """Ids with the repr() of an object have its address."""
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x", nodeid)


def write(*event):
    if os.getpid() == ME:  # a child of a test's fork() must not write
        os.write(output, (json.dumps(event) + "\n").encode())


def seed(text):
    """Many tests draw from the global generators without a seed of their own."""
    number = zlib.crc32(text.encode())
    random.seed(number)
    numpy.random.seed(number)


def pytest_configure():
    seed("")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    listed = [(item, same_id(item.nodeid)) for item in items]
    os.write(output, "".join(json.dumps(["listed", name]) + "\n" for _, name in listed).encode())
    wanted = [(item, name) for item, name in listed if (SELECTED is None or name in SELECTED) and name not in DONE]
    kept = {id(item) for item, _ in wanted}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item, _ in wanted]


def pytest_collectreport(report):
    """A file that cannot be imported, or that skips itself as a whole."""
    if not report.passed:
        write("ended", same_id(report.nodeid), "error" if report.failed else "skipped")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    seed(same_id(item.nodeid))


def pytest_runtest_logstart(nodeid):
    write("started", same_id(nodeid))


def pytest_runtest_logreport(report):
    expected = hasattr(report, "wasxfail")
    if report.failed:
        outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
    elif report.skipped:
        outcomes.setdefault(report.nodeid, "xfailed" if expected else "skipped")
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, "xpassed" if expected else "passed")


def pytest_runtest_logfinish(nodeid):
    write("ended", same_id(nodeid), outcomes.pop(nodeid, "passed"))
