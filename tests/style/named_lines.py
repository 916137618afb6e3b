#!/usr/bin/python3 -B
"""[FOLDER]   Prints the lines of sources that tests/mutants/kept and tests/coverage/untaken name and that are no more: a
mutant that is never drawn again, a reason that nobody asks for.

FOLDER: the tree to read, instead of this one."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else TESTS.parent
sys.path[:0] = [str(TESTS / "mutants"), str(TESTS / "coverage")]

import mutants
import untaken

for mutant, _, by in mutants.rows_of(ROOT / "tests/mutants/kept"):
    if not mutants.is_there(ROOT, mutant):
        print(f"tests/mutants/kept: {mutant.file} has no line (no. {mutant.nth}) of {mutant.before.strip()}")
    if not (ROOT / by).exists():
        print(f"tests/mutants/kept: {by} is not there")
for name, nth, text in untaken.read(ROOT / "tests/coverage/untaken")[0]:
    path = ROOT / name
    if not path.exists() or [line.strip() for line in path.read_text().splitlines()].count(text) < nth:
        print(f"tests/coverage/untaken: {name} has no line (no. {nth}) of {text}")
