#!/usr/bin/python3 -B
"""[FOLDER]   Prints each #include of the product that leads upwards in tests/style/order, and each folder that is not in it.

FOLDER: the tree to read, instead of this one."""

import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
# Tables (.def) are put together upwards: ops/routines.def has those of all libraries.
SUFFIXES = {".c", ".h", ".S", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Given by the build (-I build), or by the test GPU, whose compiler reads kernels as host code.
NOT_THERE = {"functions.def", "other_ops.def", "names_places.inc", "cuda_functions.def"}

order = [line for line in (ROOT / "tests/style/order").read_text().split("\n") if line and not line.startswith("#")]
place = {folder: i for i, folder in enumerate(order)}
tops = sorted({folder.split("/")[0] for folder in order})
for path in sorted(path for top in tops for path in (ROOT / top).rglob("*") if path.suffix in SUFFIXES):
    folder = str(path.parent.relative_to(ROOT))
    if folder not in place:
        print(f"{folder}: not in tests/style/order")
        continue
    for name in INCLUDE.findall(path.read_text()):
        beside, below = path.parent / name, ROOT / name
        found = beside if beside.exists() else below
        if not found.exists():
            if name not in NOT_THERE:
                print(f"{path.relative_to(ROOT)}: {name} is not there")
            continue
        target = str(found.resolve().parent.relative_to(ROOT.resolve()))
        if target == "tests/testgpu" and folder == "gpu/own":
            continue
        if place.get(target, len(order)) > place[folder]:
            print(f"{path.relative_to(ROOT)} includes {name}: {target} stands behind {folder} in tests/style/order")
