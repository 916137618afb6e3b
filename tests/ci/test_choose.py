#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What a run of CI takes of the long parts (tests/ci/choose): every part in its turn, whatever else changes; those that
a change calls for; never more than fits into the time. In a full history, in a shallow one, without git. And the table
names what there is."""

import datetime
import importlib.machinery
import importlib.util
import os
import re
import shlex
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from lib.parts import read
from lib.programs import ROOT

CHOOSE = ROOT / "tests/ci/choose"
MINUTES = 21
PARTS = read()
# Of the parts that are a test of their own: which form make check has.
FORMS = {part.command: part.in_test for part in PARTS if part.command.startswith("tests/")}


def run(argv, folder, env={}):
    full = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "CI_"))}
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what,
                value in (("NAME", "A"), ("EMAIL", "a@b.c"))}
    return subprocess.run(argv, cwd=folder, env={**full, **identity, "HOME": str(folder), **env}, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def choose(folder, **env):
    """command -> why, of what fits into the time."""
    done = run([CHOOSE], folder, env)
    assert done.returncode == 0, done.stdout
    lines = [line.split("|", 2) for line in done.stdout.splitlines()]
    assert lines
    assert sum(float(minutes) for minutes, _, _ in lines) <= MINUTES
    return {command: why for _, why, command in lines}


@pytest.fixture(scope="module")
def chooser():
    """What choose() below says, without a process of its own: for histories of many commits."""
    loader = importlib.machinery.SourceFileLoader("chooser", str(CHOOSE))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("chooser", loader))
    loader.exec_module(module)

    def chosen(folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for name in [*filter(lambda name: name.startswith(("GIT_", "CI_")), os.environ)]:
                patch.delenv(name)
            parts = module.choose(PARTS, *module.turn_and_changes(None), MINUTES)
        assert sum(part.minutes for part, _ in parts) <= MINUTES
        return {f"make check TEST_LONG=1 CHECK={part.command}" if part.command.startswith("tests/")
                else f"make {part.command}": why for part, why in parts}

    return chosen


def commit(folder, day, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.read_text() + "x" if path.exists() else "x")
    date = f"{datetime.date(2024, 3, 1) + datetime.timedelta(day - 1)} 12:00:00 +0000"
    run(["git", "add", "-A"], folder)
    done = run(["git", "commit", "-qm", "x", "--allow-empty"], folder,
               {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date})
    assert done.returncode == 0, done.stdout


# ---- The table ----


def test_each_part_has_sources():
    assert PARTS
    assert not [part for part in PARTS if not part.sources]


def test_none_takes_more_than_a_third_of_the_minutes_so_that_each_has_its_turn():
    assert not [part for part in PARTS if part.minutes > MINUTES / 3]


def test_the_tests_that_it_names_are_there():
    named = [word for part in PARTS for word in re.findall(r"tests/\S+(?:\.py|/run)\b", part.command)]
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_and_so_are_the_sources():
    assert not [source for part in PARTS for source in part.sources if not list(ROOT.glob(source))]


def test_targets_are_make_s():
    makefiles = "".join(path.read_text() for path in [ROOT / "Makefile", ROOT / "packaging/packaging.mk",
                                                      ROOT / "tests/tests.mk", *ROOT.glob("tests/*/*.mk")])
    targets = {shlex.split(part.command)[0] for part in PARTS if not part.command.startswith("tests/")}
    assert not {target for target in targets if not re.search(rf"(?m)^{target}:", makefiles)}


def test_a_test_with_a_short_form_asks_for_the_long_one_and_no_other():
    assert set(FORMS.values()) <= {"all", "short", "none"}
    assert not [f"{name}: {form}" for name, form in FORMS.items()
                if (form == "short") != bool(re.search(r"\bLONG\b|TEST_LONG\"", (ROOT / name).read_text()))]


@pytest.fixture(scope="module")
def checked():
    """The tests of make check."""
    return run(["make", "-n", "-s", "-o", "all", "check"], ROOT).stdout.split()


def test_make_check_leaves_out_the_parts_that_are_marked_so(checked):
    assert not [name for name, form in FORMS.items() if (form == "none") == (name in checked)]


def test_the_long_form_has_them_all():
    longer = run(["make", "-n", "-s", "-o", "all", "check", "TEST_LONG=1"], ROOT).stdout.split()
    assert not [name for name in FORMS if name not in longer]


def test_each_folder_has_something_in_make_check(checked):
    there = {Path(name).parent for name in checked if name.startswith("tests/")}
    assert not {Path(name).parent for name, form in FORMS.items() if form == "none"} - there


# ---- The choice ----


def test_without_git_the_first_ones(tmp_path):
    assert set(choose(tmp_path).values()) == {"in turn"}


def new_history(folder):
    run(["git", "init", "-q"], folder)
    run(["git", "config", "maintenance.auto", "false"], folder)  # each commit would start two programs for that
    commit(folder, 1, "a", "ops/lapack/eigen.c", "tests/suites/x")


# chosen: for each commit.
History = namedtuple("History", "folder chosen")


@pytest.fixture(scope="module")
def history(tmp_path_factory, chooser):
    """As many commits as there are parts, which change the README alone."""
    folder = tmp_path_factory.mktemp("history")
    new_history(folder)
    chosen = []
    for day in range(3, 3 + len(PARTS)):
        commit(folder, day, "README.md")
        chosen.append(chooser(folder))
    return History(folder, chosen)


def test_each_part_has_its_turn_in_as_many_commits(history):
    assert len(set().union(*history.chosen)) == len(PARTS)


def test_a_change_of_the_readme_calls_for_none_and_what_is_older_than_a_day_is_not_looked_at(history):
    assert {why for chosen in history.chosen for why in chosen.values()} == {"in turn"}


def test_the_same_commit_gives_the_same_parts_the_next_one_others(history):
    assert choose(history.folder) == history.chosen[-1]
    assert history.chosen[-1] != history.chosen[-2]


def test_each_part_has_its_turn_where_all_of_them_are_called_for_too(tmp_path, chooser):
    new_history(tmp_path)
    everything = [source.replace("*", "x") for part in PARTS for source in part.sources]
    names = [source if Path(source).suffix else source + "/x" for source in everything if not source.endswith("x")]
    seen = set()
    for day in range(2, 2 + len(PARTS)):
        commit(tmp_path, 28, *names, f"n{day}")
        seen |= chooser(tmp_path).keys()
    assert len(seen) == len(PARTS)


def why_of_suites(chosen):
    return next((why for command, why in chosen.items() if "tests/suites/test_suites.py" in command), None)


def test_what_has_changed_calls_for_its_part(tmp_path):
    new_history(tmp_path)
    commit(tmp_path, 30, "tests/suites/x")
    assert why_of_suites(choose(tmp_path)) in ("tests/suites/x has changed", "in turn")
    commit(tmp_path, 30, "README.md")
    assert why_of_suites(choose(tmp_path)) in ("tests/suites/x has changed",
                                               "in turn"), "also by a commit before the last one of that day"
    assert set(choose(tmp_path,
                      CI_BASE="HEAD~1").values()) == {"in turn"}, "CI_BASE names the commit since which changes count"


def test_ci_base_must_be_a_commit(history):
    done = run([CHOOSE], history.folder, {"CI_BASE": "nowhere"})
    assert done.returncode != 0
    assert "CI_BASE=nowhere" in done.stdout


def test_a_shallow_history_some_in_turn_the_same_each_time(history, tmp_path):
    run(["git", "clone", "-q", "--depth=1", f"file://{history.folder}", "shallow"], tmp_path)
    chosen = choose(tmp_path / "shallow")
    assert set(chosen.values()) == {"in turn"}
    assert choose(tmp_path / "shallow") == chosen
