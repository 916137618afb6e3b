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
    section = section.split("[timed one by one]")[0]
    kept, shown = rows((ROOT / "docs" / run).read_text()), rows(section)
    tap.ok(len(shown) > 5 and len(kept) > 5, f"docs/performance.md has a table of {run}", len(shown), len(kept))
    for row, cells in shown.items():
        tap.ok(row in kept and all(kept[row][name] == value for name, value in cells.items()), f"docs/performance.md: {' '.join(row)} of {run}", cells, kept.get(row))

# Single calls: a table of text, with a column for each commit.
link = re.search(r"\[timed one by one\]\((.*?)\)", page)
commits, single = [], {}
for line in (ROOT / "docs" / link[1]).read_text().splitlines():
    words = line.split()
    if words[:2] == ["call", "n"]:
        commits = words[2:]
    elif commits and len(words) == len(commits) + 2 and words[1].isdigit():
        single[f"`{words[0]}`", words[1]] = words[2:]
    elif single and not words:
        break
shown = rows(page[link.end():])
tap.ok(len(shown) > 10 and len(single) >= len(shown), "docs/performance.md has a table of single calls", len(shown), len(single))
for row, cells in shown.items():
    times = single.get(row, ["-"])
    now = [time for time in times if time != "-"][-1:]
    middle = sum(map(float, now[0].split("-"))) / len(now[0].split("-")) if now else 0
    ratios = [abs(middle / float(cells[of]) - float(cells[ratio])) <= 0.006 for of, ratio in (("floor ms", "now / floor"), ("resident ms", "now / resident")) if cells[of] != "-"]
    tap.ok(cells["before ms"] == times[0] and [cells["now ms"]] == now and ratios == [True], f"docs/performance.md: {' '.join(row)}, a single call", cells, times)

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
