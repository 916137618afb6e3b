#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The figures of docs/performance.md and of README's table are those of the kept run that they name."""

import re

import pytest

from lib.programs import ROOT

PAGE = (ROOT / "docs/performance.md").read_text()
README = (ROOT / "README.md").read_text()


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


# ---- Tables of whole runs ----

# Each run that docs/performance.md names, and the text below it.
_, *SECTIONS = re.split(r"\[this run\]\((.*?)\)", PAGE)
RUNS = {run: rows(section.split("[timed one by one]")[0]) for run, section in zip(SECTIONS[::2], SECTIONS[1::2])}


@pytest.mark.parametrize("run", RUNS)
def test_the_page_has_a_table_of_the_run(run):
    assert len(RUNS[run]) > 5
    assert len(rows((ROOT / "docs" / run).read_text())) > 5


@pytest.mark.parametrize("run, row", [(run, row) for run in RUNS for row in RUNS[run]],
                         ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_its_figures(run, row):
    kept = rows((ROOT / "docs" / run).read_text())[row]
    assert {name: kept.get(name) for name in RUNS[run][row]} == RUNS[run][row]


# ---- Single calls: a table of text, with a column for each commit ----

LINK = re.search(r"\[timed one by one\]\((.*?)\)", PAGE)
SHOWN = rows(PAGE[LINK.end():])


@pytest.fixture(scope="module")
def single():
    """(call, n) -> its times."""
    commits, found = [], {}
    for line in (ROOT / "docs" / LINK[1]).read_text().splitlines():
        words = line.split()
        if words[:2] == ["call", "n"]:
            commits = words[2:]
        elif commits and len(words) == len(commits) + 2 and words[1].isdigit():
            found[f"`{words[0]}`", words[1]] = words[2:]
        elif found and not words:
            break
    return found


def test_the_page_has_a_table_of_single_calls(single):
    assert len(SHOWN) > 10
    assert len(single) >= len(SHOWN)


@pytest.mark.parametrize("row", SHOWN, ids=" ".join)
def test_a_single_call(single, row):
    cells, times = SHOWN[row], single[row]
    now = [time for time in times if time != "-"][-1]
    assert cells["before ms"] == times[0]
    assert cells["now ms"] == now
    middle = sum(map(float, now.split("-"))) / len(now.split("-"))
    ((of, ratio),) = [pair for pair in (("floor ms", "now / floor"), ("resident ms", "now / resident"))
                      if cells[pair[0]] != "-"]
    assert abs(middle / float(cells[of]) - float(cells[ratio])) <= 0.006


# ---- README ----

TABLE = re.findall(r"^\| `(\w+)`, n = (\d+) \| (\d+) ms \| (?:(\d+) ms)? ?\| (\d+) ms \|$", README, re.M)


def test_readme_has_a_table():
    assert len(TABLE) >= 3


@pytest.mark.parametrize("call, n, times", [(call, n, times) for call, n, *times in TABLE])
def test_readme(call, n, times):
    kept = rows((ROOT / re.search(r"\((docs/measurements/.*?\.md)\)", README)[1]).read_text())[f"`{call}`", n]
    for time, name in zip(times, ("CPU ms", "NVBLAS ms", "libaccel ms")):
        assert time == ("" if kept[name] == "-" else str(round(float(kept[name]))))
