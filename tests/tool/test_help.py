#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""--help and --version of accel and of its commands: on stdout, with 0; and with one line and 2 where stdout cannot be
written."""

import re

import pytest

from lib.programs import BUILD, start
from tool.commands import COMMANDS

TOOL = str(BUILD / "accel")
ASKED = ["--help", "--usage", "--version", *(f"{command} {option}" for command in COMMANDS
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
