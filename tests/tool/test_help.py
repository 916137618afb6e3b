#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""--help and --version of accel and of its commands: on stdout, with 0; and with one line and 2 where stdout cannot be
written. Values of options, in both forms."""

import re

import pytest

from lib.programs import BUILD, start
from tool.commands import COMMANDS

TOOL = str(BUILD / "accel")
ASKED = ["--help", "--usage", "--version", "help", *(f"help {command}" for command in COMMANDS), *(f"{command} {option}" for command in COMMANDS
                                             for option in ("--help", "--usage"))]


def test_help_names_the_commands():
    listed = start(TOOL, "--help").stdout.partition("Commands:\n")[2]
    assert re.findall(r"^  (\w+)  ", listed, re.M) == COMMANDS


@pytest.mark.parametrize("words", ASKED)
def test_on_stdout(words):
    done = start(TOOL, *words.split())
    assert done.returncode == 0
    assert "accel" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("words", ["", *COMMANDS])
def test_help_as_a_word(words):
    asked, said = start(TOOL, "help", *words.split()), start(TOOL, *words.split(), "--help")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, said.stdout, "")
    assert start(TOOL, "help", "help").stdout == start(TOOL, "--help").stdout


def test_no_word():
    """The same on stderr: nothing has been done."""
    done = start(TOOL)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", start(TOOL, "--help").stdout)


@pytest.mark.parametrize("words, line", [
    ("help nothing", "accel: nothing: no such command; allowed: " + " ".join(COMMANDS)),
    ("nothing", "accel: nothing: no such command; allowed: " + " ".join(COMMANDS)),
    ("help run diff", "accel help: diff: allowed: one command")])
def test_help_of_nothing(words, line):
    done = start(TOOL, *words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line + "\n")


def values():
    """Of each option with a value: command, option, and values, one of which it may have."""
    for command in COMMANDS:
        for option in re.findall(r"(?m)^  (?:-\S, |    )--([a-z-]+)=", start(TOOL, command, "--help").stdout):
            for value in ("2", "64M", "gpu", "text", "bad value"):
                yield command, option, value


@pytest.mark.parametrize("command, option, value", values())
def test_a_value_as_the_next_word_and_behind_an_equals_sign(command, option, value):
    done = [start(TOOL, command, *words, "--usage") for words in ([f"--{option}", value], [f"--{option}={value}"])]
    assert len({(one.returncode, one.stdout, one.stderr) for one in done}) == 1
    assert done[0].returncode == (2 if done[0].stderr else 0)


@pytest.mark.parametrize("words", ASKED)
def test_a_full_disk(words):
    with open("/dev/full", "w") as full:
        done = start(TOOL, *words.split(), stdout=full)
    assert done.returncode == 2
    assert done.stderr == "accel: stdout cannot be written: No space left on device\n"


def test_a_closed_stdout():
    done = start("/bin/sh", "-c", f"{TOOL} --version >&-")
    assert done.returncode == 2
    assert done.stderr == "accel: stdout cannot be written: Bad file descriptor\n"
