#!/usr/bin/python3 -B
"""Prints what is wrong with the pages of the product's folders: each folder in tests/style/order has a README.md, or one of those
that it lies in has; it has at most 100 lines; and the files that it names are there, in its folder, below it or by their whole path."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`([\w/.-]+\.(?:h|c|def|S|inc|py|ld|md|cu|cuh))(?::[\w()]+)?`")

order = [line for line in (ROOT / "tests/style/order").read_text().splitlines() if line and not line.startswith("#")]
pages = set()
for folder in order:
    found = next((path for path in [ROOT / folder, *(ROOT / folder).parents] if path == ROOT or (path / "README.md").exists()), ROOT)
    if found == ROOT:
        print(f"{folder}: no README.md")
    else:
        pages.add(found)
for folder in sorted(pages):
    text = (folder / "README.md").read_text()
    page = f"{folder.relative_to(ROOT)}/README.md"
    if len(text.splitlines()) > 100:
        print(f"{page}: more than 100 lines")
    for name in NAMED.findall(text):
        if not (ROOT / name).exists() and not any(folder.rglob(name)):
            print(f"{page}: {name} is not there")
