#!/usr/bin/python3 -B
"""What a run of CI takes of the long parts (tests/ci/choose): every part in its turn, whatever else changes; those that a change calls
for; never more than fits into the time. In a full history, in a shallow one, without git. And the table names what there is."""

import datetime
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from lib.programs import ROOT
from lib.tap import Tap

CHOOSE = ROOT / "tests/ci/choose"
MINUTES = 21
tap = Tap()


def run(argv, folder, env={}):
    full = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "CI_"))}
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "A"), ("EMAIL", "a@b.c"))}
    return subprocess.run(argv, cwd=folder, env={**full, **identity, "HOME": str(folder), **env}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def choose(folder, *arguments, env={}):
    """command -> why; None where it fails."""
    done = run([CHOOSE, *arguments], folder, env)
    lines = [line.split("|", 2) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    minutes = sum(float(line[0]) for line in lines)
    return ({command: why for _, why, command in lines} if lines and minutes <= MINUTES else None), done.stdout


def commit(folder, day, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.read_text() + "x" if path.exists() else "x")
    date = f"{datetime.date(2024, 3, 1) + datetime.timedelta(day - 1)} 12:00:00 +0000"
    run(["git", "add", "-A"], folder)
    done = run(["git", "commit", "-qm", "x", "--allow-empty"], folder, {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date})
    assert done.returncode == 0, done.stdout


# ---- The table ----

rows = [[field.strip() for field in line.split("|")] for line in (ROOT / "tests/ci/parts").read_text().splitlines()
        if line and not line.startswith("#")]
tap.ok(rows and all(len(row) == 4 and row[3] for row in rows), "each part has four fields", *rows)
tap.ok(all(float(row[0]) <= MINUTES / 3 for row in rows), "none takes more than a third of the minutes, so that each has its turn",
       *(row for row in rows if float(row[0]) > MINUTES / 3))
named = [word for row in rows for word in re.findall(r"tests/\S+(?:\.py|/run)\b", row[2])]
lost = [name for name in named if not (ROOT / name).exists()]
tap.ok(named and not lost, "the tests that it names are there", *lost)
lost = [source for row in rows for source in row[3].split() if not list(ROOT.glob(source))]
tap.ok(not lost, "and so are the sources", *lost)
makefiles = "".join(path.read_text() for path in [ROOT / "Makefile", ROOT / "packaging/packaging.mk", *ROOT.glob("tests/*/*.mk")])
targets = {shlex.split(row[2])[0] for row in rows if not row[2].startswith("tests/")}
tap.ok(not {t for t in targets if not re.search(rf"(?m)^{t}:", makefiles)}, "targets are make's", *targets)
forms = {row[2]: row[1] for row in rows if row[2].startswith("tests/")}
odd = [f"{name}: {form}" for name, form in forms.items() if form not in ("all", "short", "none")
       or (form == "short") != bool(re.search(r"\bLONG\b|TEST_LONG\"", (ROOT / name).read_text()))]
tap.ok(not odd, "a test with a short form asks for TEST_LONG, and no other", *odd)
listed = run(["make", "-n", "-s", "-o", "all", "check"], ROOT).stdout.split()
longer = run(["make", "-n", "-s", "-o", "all", "check", "TEST_LONG=1"], ROOT).stdout.split()
absent = [name for name, form in forms.items() if (form == "none") == (name in listed) or name not in longer]
tap.ok(not absent, 'make check leaves out the parts marked "none"; TEST_LONG=1 has them all', *absent)
lonely = {Path(name).parent for name, form in forms.items() if form == "none"} - {Path(name).parent for name in listed if name.startswith("tests/")}
tap.ok(not lonely, "each folder has something in make check", *lonely)

# ---- The choice ----

with tempfile.TemporaryDirectory() as name:
    home = Path(name)
    whole = home / "whole"
    whole.mkdir()
    chosen, said = choose(whole)
    tap.ok(chosen and set(chosen.values()) == {"in turn"}, "without git: the first ones", said)

    run(["git", "init", "-q"], whole)
    commit(whole, 1, "a", "ops/lapack/eigen.c", "tests/suites/x")
    first = []
    in_turn, touched = set(), True
    for day in range(3, 3 + len(rows)):
        commit(whole, day, "README.md")
        chosen, said = choose(whole)
        first.append(chosen)
        in_turn |= set(chosen or ())
        touched = touched and chosen and set(chosen.values()) == {"in turn"}
    tap.ok(len(in_turn) == len(rows), f"each part has its turn in {len(rows)} commits", len(in_turn))
    tap.ok(touched, "a change of the README calls for none; what is older than a day is not looked at", said)
    tap.ok(choose(whole)[0] == first[-1] and first[-1] != first[-2], "the same commit gives the same parts, the next one others", said)

    everything = [source.replace("*", "x") for row in rows for source in row[3].split()]
    seen = set()
    for day in range(2, 2 + len(rows)):
        commit(whole, 28, *(source if Path(source).suffix else source + "/x" for source in everything if not source.endswith("x")), f"n{day}")
        seen |= set(choose(whole)[0] or ())
    tap.ok(len(seen) == len(rows), f"each part has its turn where all of them are called for, too", len(seen))

    commit(whole, 30, "tests/suites/x")
    chosen, said = choose(whole)
    suites = next((why for command, why in (chosen or {}).items() if "tests/suites/test_suites.py" in command), None)
    tap.ok(suites in ("tests/suites/x has changed", "in turn"), "what has changed calls for its part", said)
    commit(whole, 30, "README.md")
    chosen, said = choose(whole)
    suites = next((why for command, why in (chosen or {}).items() if "tests/suites/test_suites.py" in command), None)
    tap.ok(suites in ("tests/suites/x has changed", "in turn"), "also by a commit before the last one of that day", said)
    chosen, said = choose(whole, env={"CI_BASE": "HEAD~1"})
    tap.ok(chosen and set(chosen.values()) == {"in turn"}, "CI_BASE names the commit since which changes count", said)
    chosen, said = choose(whole, env={"CI_BASE": "nowhere"})
    tap.ok(chosen is None and "CI_BASE=nowhere" in said, "and must be one", said)

    run(["git", "clone", "-q", "--depth=1", f"file://{whole}", "shallow"], home)
    chosen, said = choose(home / "shallow")
    tap.ok(chosen and set(chosen.values()) == {"in turn"} and choose(home / "shallow")[0] == chosen, "a shallow history: some in turn, the same each time", said)
tap.done()
