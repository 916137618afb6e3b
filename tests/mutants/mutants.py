"""Mutants of the product's sources: how they are drawn and applied, and which tests may kill one.

A mutant is one changed line. It is known by its file, the line as it was, which of several such lines in that file it is, and the
line as it is now: so it is found again after other lines of its file have moved."""

import contextlib
import hashlib
import io
import json
import random
import sys
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import parts

HERE = Path(__file__).resolve().parent
RULES = HERE / "mutants.rules"
# Mutants that a test has killed: rows of what tests/mutants/run prints.
KEPT = HERE / "kept"
# call/, shim/, dispatch/, the parts of gpu/ without CUDA, and the operations.
SOURCES = ("call/*.c", "shim/*.c", "shim/elf/*.c", "shim/arch/x86_64/*.c", "dispatch/*.c", "dispatch/*/*.c", *(f"gpu/{room}/*.c" for room in ("pack", "plan", "device", "cache", "exec/*")),
           "ops/*.c", "ops/*/*.c")

Mutant = namedtuple("Mutant", "file nth before after")


def sources(root):
    return sorted(str(path.relative_to(root)) for pattern in SOURCES for path in root.glob(pattern))


def of_file(root, name):
    """All mutants of a source, in the order of its lines."""
    from universalmutator import mutator

    lines = (root / name).read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        found = mutator.mutants_regexp(lines, ruleFiles=[str(RULES)], ignorePatterns=[])
    if "WARNING" in said.getvalue() or "COULD NOT" in said.getvalue():
        sys.exit(f"mutants: {RULES}: {said.getvalue()}")
    for number, after, *_ in found:
        before = lines[number - 1].rstrip("\n")
        yield Mutant(name, lines[:number].count(lines[number - 1]), before, after.rstrip("\n"))


def draw(root, seed, count, names=None):
    """The mutants that a seed stands for, of all sources or of those named."""
    every = [mutant for name in names or sources(root) for mutant in of_file(root, name)]
    return random.Random(seed).sample(every, min(count, len(every)))


def kept():
    """[(mutant, the test that killed it)]"""
    for mutant, _, by in rows_of(KEPT):
        yield mutant, by


def rows_of(path):
    """[(mutant, verdict, the test that killed it)] of what tests/mutants/run has printed."""
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, nth, before, after, verdict, by = line.split("\t")
            yield Mutant(name, int(nth), before, after), verdict, by


def is_there(root, mutant):
    path = root / mutant.file
    return path.exists() and path.read_text().splitlines().count(mutant.before) >= mutant.nth


def line_of(root, mutant):
    """The index of its line in the file."""
    lines = (root / mutant.file).read_text().splitlines()
    return [i for i, line in enumerate(lines) if line == mutant.before][mutant.nth - 1]


def apply(root, mutant):
    """Changes the line. Returns the file's text as it was."""
    path = root / mutant.file
    text = path.read_text()
    lines = text.splitlines()
    lines[line_of(root, mutant)] = mutant.after
    path.write_text("\n".join(lines) + "\n")
    return text


def every_unit_test(root):
    found = sorted(root.glob("tests/*/test_*.c")) + sorted(root.glob("tests/*/*/test_*.c"))
    return [str(path.relative_to(root)) for path in found if "tests/testgpu/" not in str(path)]


def unit_tests(root, name):
    """The cmocka sources that include the file's header, or are named after it."""
    header = f'"{name[:-2]}.h"'
    own = f"/test_{Path(name).stem}.c"
    found = [test for test in every_unit_test(root) if test.endswith(own) or header in (root / test).read_text()]
    return sorted(found, key=lambda test: not test.endswith(own))


def folder_of_tests(root, name):
    """The folder of a source's tests: of shim/elf/, tests/shim."""
    folder = Path("tests") / Path(name).parent
    while not (root / folder).is_dir():
        folder = folder.parent
    return folder


def of_folder(root, name, pattern):
    """The tests in that folder."""
    return sorted(str(path.relative_to(root)) for path in (root / folder_of_tests(root, name)).glob(pattern))


def programs(root, name):
    """The tests that tests/ci/parts names for the file, then those in its folder of tests."""
    rows = sorted((part for part in parts.read() if parts.concerns(part, name)), key=lambda part: part.minutes)
    named = [part.command for part in rows if part.command.startswith("tests/") and part.command != "tests/unit/run"]
    return list(dict.fromkeys(named + of_folder(root, name, "test_*.py")))


class Covered:
    """Which tests run a line, and how long they take, by `make coverage`. Nothing is known of a file that has changed since."""

    def __init__(self, path, root):
        self.root = root
        self.found = json.loads(path.read_text()) if path.exists() else {"tests": [], "seconds": [], "lines": {}, "digests": {}}
        numbers = {number for lines in self.found["lines"].values() for of_line in lines.values() for number in of_line}
        known = {test for number, test in enumerate(self.found["tests"]) if number in numbers}
        self.blind = [test for test in every_unit_test(root) if test not in known]

    def by(self, mutant):
        """[(seconds, test)], the shortest first; None if nothing is known. A line without code is one of the statement above it."""
        if self.found["digests"].get(mutant.file) != digest(self.root / mutant.file):
            return None
        number = line_of(self.root, mutant) + 1
        of_file = self.found["lines"][mutant.file]
        for line in range(number, number - 6, -1):
            if str(line) in of_file:
                return sorted((self.found["seconds"][i], self.found["tests"][i]) for i in of_file[str(line)])
        return None


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Seconds that a unit test takes to be linked.
LINK = 1


def tests_for(root, mutant, covered, seconds):
    """The tests that may kill it, unit tests first, then those of its folder, the shortest first. seconds: of those that run its line, how long
    together."""
    known, own, folder = covered.by(mutant), unit_tests(root, mutant.file), f"{folder_of_tests(root, mutant.file)}/"
    if known is None:
        return list(dict.fromkeys(own + of_folder(root, mutant.file, "test_*.c") + programs(root, mutant.file)))
    # Those of which coverage knows no line, as they are newer, and the one that is named after the
    # file: it may have changed since.
    beside, asked = f"tests/{Path(mutant.file).parts[0]}/", {test for _, test in known}
    newer = [test for test in covered.blind if test in own or test.startswith(beside)]
    named = [test for test in own if Path(test).name == f"test_{Path(mutant.file).stem}.c"]
    known += [(0, test) for test in dict.fromkeys(named + newer) if test not in asked]
    known.sort(key=lambda row: (row[1] not in own, not row[1].startswith(folder), row[0]))
    tests, left = [], seconds
    for takes, test in known:
        left -= takes + (LINK if test.endswith(".c") else 0)
        if left > 0 or not tests:
            tests.append(test)
    return sorted(tests, key=lambda test: not test.endswith(".c"))


def row(mutant, verdict, by):
    """What is printed of it. by: the test that kills it."""
    return "\t".join((mutant.file, str(mutant.nth), mutant.before, mutant.after, verdict, by))
