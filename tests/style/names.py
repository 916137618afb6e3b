#!/usr/bin/python3 -B
"""[FOLDER]   Prints each name that static functions of the product have in more than MOST files, with the files.

FOLDER: the tree to read, instead of this one."""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
MOST = 3
# Comments, strings and what stands before a name with parentheses of its own.
SKIPPED = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|"""
    r"""__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)[ ]*|\b(?:_Atomic|_Alignas|ElfW)\s*\([^()]*\)""",
    re.DOTALL,
)
FUNCTION = re.compile(r"^static\b[^;={()]*?\b(\w+)\s*\((?!\s*\*)", re.MULTILINE)

order = [line for line in (ROOT / "tests/style/order").read_text().split("\n") if line and not line.startswith("#")]
files = defaultdict(set)
for top in {folder.split("/")[0] for folder in order}:
    for path in (path for path in (ROOT / top).rglob("*") if path.suffix in {".c", ".h", ".cu", ".cuh"}):
        for name in FUNCTION.findall(SKIPPED.sub("", path.read_text())):
            files[name].add(str(path.relative_to(ROOT)))
for name, those in sorted(files.items()):
    if len(those) > MOST:
        print(f"{name}: a static function in {len(those)} files: {' '.join(sorted(those))}")
