#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel config: each setting with the value that counts and its origin, the config files, and what is wrong with them;
as a program under libaccel has it."""

import re
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, NO_GPU, ROOT, start

TOOL = str(BUILD / "accel")
SYSTEMS = "/etc/accel.conf"
Files = namedtuple("Files", "home user named")


@pytest.fixture
def files(tmp_path):
    """The home, and the paths of two config files: the user's, and one that ACCEL_CONFIG names."""
    user = tmp_path / ".config/accel/accel.conf"
    user.parent.mkdir(parents=True)
    return Files(str(tmp_path), user, tmp_path / "n.conf")


def config(home, **settings):
    """The process, its table as name -> (value, origin), and the files with what it says of each."""
    done = start(TOOL, "config", env={"HOME": home, **settings})
    table, _, files = done.stdout.partition("\n\n")
    rows = {name: (value, origin) for name, value, origin in re.findall(r"(?m)^(\w+) +(.*?) {2,}(\S.*)$", table)}
    return done, rows, dict(line.split(": ", 1) for line in files.splitlines())


def library_says(home, **settings):
    return start("random_calls", "-c", 1, "-n", 30, "-r", "dgemm", env={**NO_GPU, "HOME": home, **settings}).stderr


# ---- The defaults, which are those of docs/settings.md ----


def documented():
    found = {}
    for line in (ROOT / "docs/settings.md").read_text().splitlines():
        cells = line.split(" | ")
        for name in re.findall(r"`(ACCEL\w*)`", cells[0]) if line.startswith("| `") else []:
            found[name] = cells[1].split(",")[0].split(" or ")[-1].strip(" `…")
    return found


def test_nothing_is_set(files):
    done, rows, found = config(files.home)
    assert done.returncode == 0
    assert not done.stderr
    assert {origin for _, origin in rows.values()} == {"default"}
    assert list(found) == [str(files.user), SYSTEMS], "the files that are looked for"
    assert found[str(files.user)] == "not there"


def test_each_setting_of_the_documents_with_its_default(files):
    rows = config(files.home)[1]
    model = str(Path(files.home, ".cache/accel/model"))
    shown = {name: value.replace(model, "$XDG_CACHE_HOME/accel/model") or "empty" for name, (value, _) in rows.items()}
    assert len(rows) > 15
    assert shown == documented()


# ---- Origins ----


def test_environment_file_and_line_default(files):
    files.user.write_text("# mine\nACCEL_LOG = 2\nACCEL_SUMMARY=1\nACCEL_POLICY=gpu\nACCEL_GPU=\n")
    files.named.write_text('ACCEL_SUMMARY=yes\n\nACCEL_CPU = "dgemm, zgemm"\n')
    done, rows, found = config(files.home, ACCEL_CONFIG=str(files.named), ACCEL_LOG="json", ACCEL_DEVICES="",
                               ACCEL_LOG_FILE="\x1b[2J")
    assert done.returncode == 0
    assert not done.stderr
    wanted = {"ACCEL_LOG": ("json", "environment"), "ACCEL_SUMMARY": ("yes", f"{files.named}:1"),
              "ACCEL_CPU": ("dgemm, zgemm", f"{files.named}:3"), "ACCEL_POLICY": ("gpu", f"{files.user}:4"),
              "ACCEL_GPU": ("", f"default: empty in {files.user}:5"),
              "ACCEL_DEVICES": ("auto", "default: empty in environment"),
              "ACCEL_LOG_FILE": ("?[2J", "environment"), "ACCEL_LEARN": ("0", "default")}
    assert {name: rows[name] for name in wanted} == wanted
    assert list(found)[:2] == [str(files.named), str(files.user)], "the files that are read"
    assert found[str(files.named)] == found[str(files.user)] == "read"


def test_ranks_of_mpi_have_another_default_of_start(files):
    _, rows, _ = config(files.home, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="1")
    assert rows["ACCEL_START"] == ("wait", "default")


def test_accel_0(files):
    _, rows, _ = config(files.home, ACCEL="0", ACCEL_LOG="1")
    assert rows["ACCEL"] == ("0", "environment")
    assert rows["ACCEL_LOG"] == ("1", "environment")


# ---- What is wrong: the program's own lines, and status 1 ----


def test_values_that_are_not_understood_are_said_as_the_library_says_them(files):
    files.user.write_text("ACCEL_LOG=loud\nACCEL_FAST=1\n")
    wrong = {"ACCEL_POLICY": "fast", "ACCEL_VERIFY": "some"}
    done, rows, _ = config(files.home, **wrong)
    assert done.returncode == 1
    assert rows["ACCEL_POLICY"] == ("auto", "default: not understood in environment")
    assert rows["ACCEL_LOG"] == ("0", f"default: not understood in {files.user}:1")
    assert done.stderr.count("\n") == 4
    assert done.stderr in library_says(files.home, **wrong)


def test_a_file_that_is_refused(files):
    files.user.touch()
    files.user.chmod(0o666)
    done, _, found = config(files.home)
    assert done.returncode == 1
    assert found[str(files.user)] == "may be written by all"
    assert f"{files.user} may be written by all; it is ignored" in done.stderr


def test_a_file_that_is_named_and_is_not_there(files):
    done, _, found = config(files.home, ACCEL_CONFIG=str(files.named))
    assert done.returncode == 1
    assert found[str(files.named)] == "not there"
    assert "ACCEL_CONFIG" in done.stderr


@pytest.mark.parametrize("settings, status, line", [
    pytest.param({"ACCEL_CUDA_DIR": "/none"}, 1,
                 "accel: ACCEL_CUDA_DIR=/none cannot be opened (No such file or directory); it is ignored\n",
                 id="CUDA's folder"),
    pytest.param({"ACCEL_MODEL": "HOME/none"}, 1, "accel: no calibration at HOME/none (ACCEL_MODEL); "
                 "built-in figures are used (run `accel calibrate`)\n", id="a calibration"),
    pytest.param({"ACCEL_MODEL": "HOME/none", "ACCEL_LEARN": "1"}, 0, "", id="a calibration that is learned"),
    pytest.param({"ACCEL_MODEL": "HOME/n.conf"}, 0, "", id="a file that is no calibration")])
def test_what_is_not_there_as_the_library_says_it(files, settings, status, line):
    files.named.write_text('ACCEL_SUMMARY=yes\n\nACCEL_CPU = "dgemm, zgemm"\n')
    settings = {name: value.replace("HOME", files.home) for name, value in settings.items()}
    done, _, _ = config(files.home, **settings)
    assert done.returncode == status
    assert done.stderr == line.replace("HOME", files.home)
    assert done.stderr in library_says(files.home, **settings)


def test_a_full_disk():
    with open("/dev/full", "w") as full:
        done = start(TOOL, "config", env={"HOME": "/"}, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "accel config: the list cannot be written: No space left on device\n"
