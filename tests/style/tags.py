#!/usr/bin/python3 -B
"""[FOLDER]   Prints each tag of a struct, union or enum that more than one file of the product defines.

FOLDER: the tree to read, instead of this one."""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINITION = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
# A file for each architecture, of which a build has one.
ALTERNATIVES = re.compile(r"_(x86_64|aarch64)(?=\.h$)")

order = (ROOT / "tests/style/order").read_text().split("\n")
files = defaultdict(list)
for top in sorted({line.split("/")[0] for line in order if line and not line.startswith("#")}):
    for path in sorted(path for path in (ROOT / top).rglob("*") if path.suffix in SUFFIXES):
        for tag in sorted(set(DEFINITION.findall(NO_CODE.sub(" ", path.read_text())))):
            files[tag].append(str(path.relative_to(ROOT)))
for tag, names in sorted(files.items()):
    if len({ALTERNATIVES.sub("", name) for name in names}) > 1:
        print(f"{tag}: defined in {', '.join(names)}")
