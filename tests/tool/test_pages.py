#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The completion of bash, zsh and fish, and the manual pages: each command, each option and each setting that the tool
has, and what a person sees."""

import re
import shutil
import subprocess

import pytest

from lib.programs import BUILD, ROOT, clean_env, start
from tool.commands import COMMANDS

TOOL = str(BUILD / "accel")
SHARE = BUILD / "share"
BASH = SHARE / "bash-completion/completions/accel"
ZSH = SHARE / "zsh/site-functions/_accel"
FISH = SHARE / "fish/vendor_completions.d/accel.fish"
PAGES = ("man1/accel.1", "man5/accel.conf.5", "man7/libaccel.7")

each_command = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def run(tmp_path):
    """What runs a command, with a home of its own."""
    def run(*command, env={}):
        return subprocess.run([str(word) for word in command], env={**clean_env(str(tmp_path)), **env}, cwd=ROOT,
                              stdin=subprocess.DEVNULL, text=True, timeout=120, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    return run


def options_of(command):
    """The long options of --help, and whether each must have a value."""
    found = re.findall(r"(?m)^  (?:-\S, |    )--([a-z-]+)(=|\[=)?", start(TOOL, command, "--help").stdout)
    assert found
    return {name: value == "=" for name, value in found}


def test_the_options_of_help():
    options = options_of("run")
    assert options["policy"] is True
    assert options["summary"] is False
    assert options_of("report")["html"] is False


# ---- bash ----


@pytest.fixture
def bash(run):
    """What tells what the last word may become."""
    def bash(*words):
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _accel; printf "%s\\n" ' \
                 '"${COMPREPLY[@]}"'
        done = run("bash", "-c", script, "bash", BASH, "accel", *words)
        assert not done.stderr
        return done.stdout.split()

    return bash


def test_bash_the_commands(bash):
    assert set(COMMANDS) <= set(bash(""))
    assert bash("do") == ["doctor"]


@each_command
def test_bash_the_options(bash, command):
    assert set(bash(command, "--")) == {f"--{name}{'=' if value else ''}" for name,
                                        value in options_of(command).items()}


def test_bash_an_option_s_values(bash):
    assert bash("run", "--po") == ["--policy="]
    assert bash("run", "--policy", "g") == ["gpu"]
    assert bash("run", "--policy", "=", "c") == ["cpu"]
    assert set(bash("run", "--policy", "=")) == {"auto", "gpu", "cpu"}


def test_bash_files(bash):
    found = bash("run", "--shim", "READ")
    assert "READ" not in found
    assert "README.md" in found


def test_bash_a_program_whose_words_are_its_own(bash):
    assert "python3" in bash("run", "--", "pytho")
    assert bash("run", "--", "python3", "--po") == []
    assert "python3" in bash("doctor", "pytho")


# ---- zsh: its own functions for completion print what they get ----


@pytest.fixture
def zsh(run):
    """What tells the lines that they get."""
    if not shutil.which("zsh"):
        pytest.skip("it is not installed")
    stubs = '_describe() { print -l describe $accel_commands; }; _arguments() { print -l arguments "$@"; }; ' \
            'file=$1; shift; words=("$@"); CURRENT=$#; source $file'

    def zsh(*words):
        done = run("zsh", "-f", "-c", stubs, "zsh", ZSH, "accel", *words)
        assert not done.stderr
        return done.stdout.splitlines()

    return zsh


def test_zsh_the_commands(zsh):
    first, *lines = zsh("")
    assert first == "describe"
    assert [line.split(":")[0] for line in lines] == COMMANDS


@each_command
def test_zsh_the_options(zsh, command):
    found = zsh(command, "")
    assert found[0] == "arguments"
    assert set(re.findall(r"--([a-z-]+)(?:=-?)?(?=\[)", "\n".join(found))) == set(options_of(command))


def test_zsh_values_programs_short_options(zsh):
    lines = zsh("run", "")
    assert [line for line in lines if line.startswith("--policy=[") and line.endswith(":value:(auto gpu cpu)")]
    assert "*::program:_normal" in lines
    assert [line for line in lines if line.startswith("(-v --verbose)-v[")]


# ---- fish: as on its command line ----


@pytest.fixture
def fish(run):
    """What tells what a line's last word may become: word -> word and what is said of it."""
    if not shutil.which("fish"):
        pytest.skip("it is not installed")

    def fish(line):
        done = run("fish", "--no-config", "-c", f"source {FISH}; complete -C {line!r}")
        return {word.split("\t")[0]: word for word in done.stdout.splitlines()}

    return fish


def test_fish_the_commands(fish):
    assert set(fish("accel ")) == set(COMMANDS)
    assert "config\tprint the settings in force" in fish("accel co")["config"]


@each_command
def test_fish_the_options(fish, command):
    assert {word.rstrip("=") for word in fish(f"accel {command} --")} == {f"--{name}" for name in options_of(command)}


def test_fish_values_and_files(fish):
    assert set(fish("accel run --policy ")) == {"auto", "gpu", "cpu"}
    assert "README.md" in fish("accel run --shim READ")


def test_fish_a_program(fish):
    assert "bash" in fish("accel run -- bas")


# ---- The manual ----


@pytest.fixture
def manual(run):
    """What shows a page without a warning: its words."""
    if not shutil.which("man"):
        pytest.skip("there is no man")

    def manual(name):
        done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", SHARE / "man" / name,
                   env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": "", "PAGER": "cat"})
        assert done.returncode == 0
        assert not done.stderr
        text = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout).replace("‐\n", "").replace("−", "-").replace("‐", "-")
        return re.sub(r"\s+", " ", text)

    return manual


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_a_warning(manual, name):
    text = manual(name)
    assert "@" not in text
    assert f"libaccel {(ROOT / 'VERSION').read_text().strip()}" in text
    assert "SEE ALSO" in text


@each_command
def test_accel_1_the_options(manual, command):
    page = manual("man1/accel.1")
    part = page.partition(f"accel {command} [option...]")[2] or page.partition(f" accel {command} ")[2]
    assert part
    assert not [name for name in options_of(command) if name not in ("help", "usage", "version")
                and f"--{name}" not in part]


def test_accel_1_the_exit_statuses(manual):
    done = start(TOOL, "run", "--no-such-option")
    # Of words that are hyphenated, too.
    ends = manual("man1/accel.1").partition("EXIT STATUS")[2].partition("FILES")[0].replace(" ", "")
    assert done.returncode == 2
    assert "accelestimateha" in ends
    assert "accelreplayha" in ends
    assert "Wrongoptionsare2" in ends
    assert ("oneline" in ends) == (done.stderr.count("\n") == 1)


def test_accel_conf_5_each_setting_with_its_values_and_its_meaning(manual):
    page = manual("man5/accel.conf.5")
    settings = re.findall(r"(?m)^(ACCEL\w*) ", start(TOOL, "config").stdout)
    assert len(settings) > 15
    assert not [name for name in settings if f" {name}" not in page]
    assert "(auto, gpu, cpu) gpu: every call that the GPU supports goes there" in page
    assert not re.search(r"\]\(|`", page), "no Markdown"


@pytest.mark.parametrize("command", ["estimate", "explain", "replay", "report"])
def test_help_the_exit_statuses(command):
    text = " ".join(start(TOOL, command, "--help").stdout.split())
    assert "xit status is" in text
    assert "2 for wrong options" in text


# ---- A table of settings that has drifted is refused ----


@pytest.mark.parametrize("pattern, other", [pytest.param(r"(?m)^\| `ACCEL_MODEL`.*\n", "", id="lacks a setting"),
                                            pytest.param(r"`ACCEL_LEARN` \|", "`ACCEL_LERN` |", id="has another")])
def test_the_build_fails_where_the_table_of_the_documents(run, tmp_path, pattern, other):
    wrong = tmp_path / "settings.md"
    wrong.write_text(re.sub(pattern, other, (ROOT / "docs/settings.md").read_text()))
    done = run(BUILD / "pages", "man", ROOT / "tool/pages/accel.conf.5", wrong)
    assert done.returncode == 1
    assert "its table is not that of" in done.stderr
