"""tests/ci/parts: the parts of the tests that one run of CI cannot all have, and the sources that concern each."""

from collections import namedtuple
from fnmatch import fnmatchcase
from pathlib import Path

PARTS = Path(__file__).resolve().parents[1] / "ci/parts"

Part = namedtuple("Part", "minutes in_test command sources")


def read(path=PARTS):
    """The parts of a table, in its order."""
    parts = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            minutes, in_test, command, sources = (field.strip() for field in line.split("|"))
            parts.append(Part(float(minutes), in_test, command, tuple(sources.split())))
    return parts


def concerns(part, name):
    return any(name == s or name.startswith(s.rstrip("/") + "/") or fnmatchcase(name, s) for s in part.sources)
