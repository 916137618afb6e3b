#!/usr/bin/python3 -B
"""The figures of docs/performance.md and of README's table are those of the kept run that they name."""

import re
from pathlib import Path

from lib.programs import ROOT
from lib.tap import Tap

tap = Tap()


def rows(text):
    """(call, n) -> the cells of its row, of tables whose first cells are these; a column's name -> its place."""
    found, columns = {}, {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["call", "n"]:
            columns = {name: place for place, name in enumerate(cells)}
        elif columns and re.fullmatch(r"`\w+`", cells[0]) and cells[1].isdigit():
            found[cells[0], cells[1]] = {name: cells[place] for name, place in columns.items()}
    return found


page = (ROOT / "docs/performance.md").read_text()
_, *sections = re.split(r"\[this run\]\((.*?)\)", page)
for run, section in zip(sections[::2], sections[1::2]):
    kept, shown = rows((ROOT / "docs" / run).read_text()), rows(section)
    tap.ok(len(shown) > 5 and len(kept) > 5, f"docs/performance.md has a table of {run}", len(shown), len(kept))
    for row, cells in shown.items():
        tap.ok(row in kept and all(kept[row][name] == value for name, value in cells.items()), f"docs/performance.md: {' '.join(row)} of {run}", cells, kept.get(row))

readme = (ROOT / "README.md").read_text()
named = Path(re.search(r"\((docs/measurements/.*?\.md)\)", readme)[1])
kept = rows((ROOT / named).read_text())
table = re.findall(r"^\| `(\w+)`, n = (\d+) \| (\d+) ms \| (?:(\d+) ms)? ?\| (\d+) ms \|$", readme, re.M)
tap.ok(len(table) >= 3, "README has a table", table)
for call, n, *times in table:
    want = [kept[f"`{call}`", n][name] for name in ("CPU ms", "NVBLAS ms", "libaccel ms")]
    good = all(not time if value == "-" else time and round(float(value)) == int(time) for time, value in zip(times, want))
    tap.ok(good, f"README: {call}, n = {n}", times, want)
tap.done()
