#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The figures of docs/performance.md and of README's tables are those of the kept run that they name."""

import json
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


# ---- Whole programs, estimated ----

ESTIMATED = re.search(r"\[estimates\]\((.*?)\)", PAGE)
PROGRAM = re.compile(r"^\| `(\w+)`: .* \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.M)
SAID = re.compile(r"^== (\w+)\n(?:(?!==).*\n)*?1 process, ([\d.]+) s in all; ([\d.]+) s would be saved, ([\d.]+) s if CUDA were up", re.M)


def test_the_estimates_of_programs():
    said = {name: (float(alone), float(alone) - float(starts), float(alone) - float(up))
            for name, alone, starts, up in SAID.findall((ROOT / "docs" / ESTIMATED[1]).read_text())}
    shown = {name: tuple(map(float, times)) for name, *times in PROGRAM.findall(PAGE)}
    assert len(shown) >= 14
    assert shown == {name: pytest.approx(times, abs=0.00501) for name, times in said.items()}
    gains = [name for name in said if said[name][0] - said[name][2] > 0.01]
    (sums,) = re.findall(r"\| sum of the (\d+) that could gain \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", PAGE)
    assert [float(cell) for cell in sums] == pytest.approx([len(gains)] + [sum(said[name][i] for name in gains) for i in range(3)], abs=0.00501)


# ---- README ----

TABLE = re.findall(r"^\| `(\w+)`, n = (\d+) \| (\d+) ms \| (?:(\d+) ms)? ?\| (\d+) ms \|$", README, re.M)


def test_readme_has_a_table():
    assert len(TABLE) >= 3


@pytest.mark.parametrize("call, n, times", [(call, n, times) for call, n, *times in TABLE])
def test_readme(call, n, times):
    kept = rows((ROOT / re.search(r"\((docs/measurements/.*?\.md)\)", README)[1]).read_text())[f"`{call}`", n]
    for time, name in zip(times, ("CPU ms", "NVBLAS ms", "libaccel ms")):
        assert time == ("" if kept[name] == "-" else str(round(float(kept[name]))))


# ---- README's table of programs ----

NONE_YET = "No run of whole programs on a GPU is kept yet"
KEPT = {path.stem: [p for p in json.loads(path.read_text()).get("programs", ()) if p["alone"] and p["libaccel"]]
        for path in (ROOT / "docs/measurements").glob("*.json")}


def wrong_programs(text, kept):
    """What is wrong with the first table of a README, of which kept runs have programs: empty, if nothing is."""
    kept = {name: programs for name, programs in kept.items() if programs}
    if not kept:
        return [] if NONE_YET in text else [f'the README does not say "{NONE_YET}"']
    before, _, table = text.partition("\n|")
    named = [name for name in kept if f"docs/measurements/{name}.md)" in before]
    table = ("|" + table).split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    if NONE_YET in text or cells[0][:3] != ["program", "before", "after"] or not named:
        return [f"the first table is not of programs, before and after, from {' or '.join(kept)}"]
    expected = [[f"`{p['program']}`", f"{p['alone']['s']:.2f} s", f"{p['libaccel']['s']:.2f} s"]
                for p in kept[named[-1]]]
    return [row for row in expected if row not in [shown[:3] for shown in cells[2:]]] + [
        row for row in cells[2:] if row[:3] not in expected]


def test_the_readme_s_first_table_is_of_the_programs_of_a_kept_run_or_says_that_there_is_none():
    assert wrong_programs(README, KEPT) == []


RUN = {"H200": [{"program": "solve", "alone": {"s": 8.125}, "libaccel": {"s": 2}},
                {"program": "image", "alone": {"s": 2}, "libaccel": {"s": 2.004}}], "older": []}
PROGRAMS = """# libaccel

On [an H200](docs/measurements/H200.md):

| program | before | after | what you did |
|---|---|---|---|
| `solve` | 8.12 s | 2.00 s | nothing |
| `image` | 2.00 s | 2.00 s | nothing |

| call | n |
|---|---|
"""


@pytest.mark.parametrize("text, kept, right", [
    pytest.param(PROGRAMS, RUN, True, id="right"),
    pytest.param(PROGRAMS.replace("8.12", "9.12"), RUN, False, id="another figure"),
    pytest.param(PROGRAMS.replace("| `image` | 2.00 s | 2.00 s | nothing |\n", ""), RUN, False,
                 id="without one that gains nothing"),
    pytest.param(PROGRAMS.replace("`image`", "`kmeans`"), RUN, False, id="a program that was not timed"),
    pytest.param(PROGRAMS.replace("H200.md", "H100.md"), RUN, False, id="of no kept run"),
    pytest.param(NONE_YET, RUN, False, id="no table, but a run"),
    pytest.param(PROGRAMS, {"older": []}, False, id="a table, but no run"),
    pytest.param(NONE_YET + ".", {"older": []}, True, id="neither")])
def test_what_is_wrong_with_a_table_of_programs(text, kept, right):
    assert (wrong_programs(text, kept) == []) == right
