#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel calibrate -- PROGRAM: measures the libraries that the program calls, with its numbers of threads, so that the
program finds each in the calibration; a line and the exit status say what goes wrong. With TEST_LONG=1 one more
program."""

import os
import re
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lib.calibrated import AUTO, put
from lib.log import said
from lib.programs import BUILD, LOG, LONG, TESTS, clean_env, start

ACCEL = str(BUILD / "accel")
DEBIAN, VENV = "/usr/bin/python3", str(BUILD / "venv/bin/python")
REFERENCE = Path("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3").resolve()
# What the GPU computes is not looked at.
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0",
       "TESTGPU_DATA": "0"}
PRODUCT = "import numpy as np; a = np.ones((400, 400)); a @ a\n"
SOLVE = PRODUCT + "np.linalg.solve(a + np.eye(400), a)\n"
SCIPY = PRODUCT + "import scipy.linalg.blas as b; b.dgemm(1.0, a, a)\n"
FEWER = PRODUCT + "import ctypes; ctypes.CDLL('libopenblas.so.0').openblas_set_num_threads(1); a @ a\n"
CHILD = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)\n"
# A library that is gone when the program has ended.
GONE = PRODUCT + """
import ctypes, os, shutil, sys
shutil.copy(sys.argv[1], sys.argv[2])
blas, one, n = ctypes.CDLL(sys.argv[2]), ctypes.c_double(1), ctypes.c_int(2)
x = (ctypes.c_double * 4)()
blas.dgemm_(b"N", b"N", *map(ctypes.byref, (n, n, n, one, x, n, x, n, one, x, n)))
os.unlink(sys.argv[2])
"""
# Of each, its command and the libraries that it calls, with their threads.
PROGRAMS = {
    "Debian's NumPy": ([DEBIAN, "-c", SOLVE], {(r"libblas\.so", 2), (r"liblapack\.so", 2)}),
    **({"NumPy's wheel": ([VENV, "-c", SOLVE], {("libscipy_openblas64_-", 2)})} if LONG else {}),
    "the wheels of NumPy and SciPy": ([VENV, "-c", SCIPY], {("libscipy_openblas64_-", 2), ("libscipy_openblas-", 2)}),
    "a C program": ([str(TESTS / "steps"), "dgemm:400:1", "solve:400:1"], {(r"libblas\.so", 2), (r"liblapack\.so", 2)}),
    "one thread": (["/usr/bin/env", "OPENBLAS_NUM_THREADS=1", DEBIAN, "-c", PRODUCT], {(r"libblas\.so", 1)}),
    "a child": ([DEBIAN, "-c", CHILD, PRODUCT], {(r"libblas\.so", 2)})}


def run(temporary, model, *arguments, **env):
    done = start(ACCEL, "calibrate", "--seconds=1", f"--output={model}", *arguments,
                 env={"TMPDIR": str(temporary), **env})
    done.stderr = re.sub(r"(?m)^accel: the machine is busy: .*\n", "",
                         done.stderr)  # other tests may run beside this one
    return done


@pytest.fixture
def calibrate(tmp_path):
    """What calibrates to a file, with a TMPDIR in which nothing is left."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    yield lambda model, *arguments, **env: run(temporary, model, *arguments, **env)
    assert os.listdir(temporary) == []


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model"


def read(path):
    """The sections of a file: header -> text."""
    parts = re.split(r"(?m)^(\[.*\])\n", path.read_text().rsplit("checksum=", 1)[0])
    return dict(zip(parts[1::2], parts[2::2]))


def missed(command, model):
    """The keys of sections that the program looks for and does not find."""
    done = start(*command, env={**AUTO, **LOG, "ACCEL_START": "wait", "ACCEL_MODEL": str(model)})
    return [re.sub(r".* has nothing for (.*): built-in.*", r"\1", line) for line in said(done)
            if " has nothing for " in line]


# ---- Each program finds all its sections ----

Calibrated = namedtuple("Calibrated", "command libraries model done sections cpu")


@pytest.fixture(scope="module", params=PROGRAMS)
def calibrated(request, tmp_path_factory):
    """A program, its calibration, and the keys of its libraries."""
    command, libraries = PROGRAMS[request.param]
    model, temporary = (tmp_path_factory.mktemp("program") / name for name in ("model", "tmp"))
    temporary.mkdir()
    done = run(temporary, model, "--", *command, **GPU)
    assert os.listdir(temporary) == []
    sections = read(model)
    return Calibrated(command, libraries, model, done, sections, [key for key in sections if key.startswith("[cpu ")])


def test_a_section_for_each_library_that_it_calls_and_the_gpu_s(calibrated):
    assert calibrated.done.returncode == 0
    assert len(calibrated.cpu) == len(calibrated.libraries)
    assert len(calibrated.sections) == len(calibrated.cpu) + 1
    for library, threads in calibrated.libraries:
        assert [key for key in calibrated.cpu if re.search(rf'threads={threads} library="{library}', key)]


def test_with_routines(calibrated):
    assert not [key for key in calibrated.cpu if not re.search(r"(?m)^[sd]ge(mm|sv) ", calibrated.sections[key])]


def test_it_is_said(calibrated):
    told = calibrated.done.stderr
    measured = re.findall(r"(?m)^accel: (\S+) is measured: called as \w+, integers of (32|64) bits, (\d) threads?$",
                          told)
    assert len(measured) == len(calibrated.cpu)
    assert "is run, to see which libraries it calls" in told
    assert len(said(calibrated.done)) == 1 + len(calibrated.cpu)
    assert [bits for _, bits, _ in measured] == ["64" if "64_" in path else "32" for path, _, _ in measured]


def test_it_finds_all_that_it_looks_for(calibrated):
    assert missed(calibrated.command, calibrated.model) == []


def test_without_a_section_it_misses_exactly_that_one(calibrated, tmp_path):
    for key in calibrated.cpu:
        nothing = re.sub(r"threads=\d+ library=.*", 'threads=1 library="none"]', key)
        put(tmp_path / "less", {**{k: text for k, text in calibrated.sections.items() if k != key}, nothing: ""})
        assert missed(calibrated.command, tmp_path / "less") == [key]


def test_two_numbers_of_threads_have_two_sections(calibrate, model):
    done = calibrate(model, "--", DEBIAN, "-c", FEWER)
    assert done.returncode == 0
    assert sorted(re.findall(r'threads=(\d) library="(\w+)', "\n".join(read(model)))) == [("1", "libblas"),
                                                                                          ("2", "libblas")]


def test_stdout_has_the_report_alone_and_the_program_gets_its_arguments(calibrate, model):
    done = calibrate(model, "--", DEBIAN, "-c", PRODUCT + "import sys; print('words', sys.argv[1:])", "a b",
                     "--seconds", "-x")
    assert done.returncode == 0
    assert "words ['a b', '--seconds', '-x']" in done.stderr
    assert "words" not in done.stdout
    assert done.stdout.startswith(f"{model}\n[cpu ")


# ---- What goes wrong ----


@pytest.mark.parametrize("end, words", [("raise SystemExit(3)", "ended with status 3"),
                                        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9")],
                         ids=["status 3", "a signal"])
def test_of_a_program_that_fails_what_it_has_called_until_then(calibrate, model, end, words):
    done = calibrate(model, "--", DEBIAN, "-c", PRODUCT + end)
    assert done.returncode == 1
    assert f"accel: {DEBIAN} {words}" in done.stderr
    assert "until then are measured" in done.stderr
    assert [key for key in read(model) if "libblas" in key]


def test_a_library_that_is_gone(calibrate, model):
    """The others are measured."""
    copy = str(model.parent / "libgone.so")
    done = calibrate(model, "--", DEBIAN, "-c", GONE, REFERENCE, copy)
    assert done.returncode == 1
    assert len(re.findall(f"(?m)^accel: .*cannot be opened again: {copy}: ", done.stderr)) == 1
    assert len(read(model)) == 1


@pytest.mark.parametrize("command, words", [
    (["/no/such/program"], "cannot be started: No such file"), (["/dev/null"], "cannot be started: Permission denied"),
    (["true"], "calls no BLAS or LAPACK that libaccel sees"), (["sh", "-c", "exit 127"], "ended with status 127"),
    # whoever starts the test may have SIGINT ignored
    (["/usr/bin/env", "--default-signal=INT", "sh", "-c", "kill -INT $$"], "was interrupted")],
                         ids=lambda value: str(value)[:40])
def test_nothing_to_measure_is_worth_a_line_besides_is_run_and_no_file(calibrate, model, command, words):
    done = calibrate(model, "--", *command)
    assert done.returncode == 1
    assert f"accel: {command[0]} {words}" in done.stderr
    assert done.stderr.count("\n") == 2
    assert not done.stdout
    assert not model.exists()


def test_sigterm_ends_the_tool_with_the_program(model):
    ready, temporary = model.parent / "ready", model.parent / "tmp"
    temporary.mkdir()
    tool = subprocess.Popen([ACCEL, "calibrate", "--output", model, "--", "sh", "-c", f"touch {ready}; exec sleep 60"],
                            env={**clean_env(str(temporary)), "TMPDIR": str(temporary)}, stderr=subprocess.PIPE,
                            text=True)
    while not ready.exists() and tool.poll() is None:
        time.sleep(0.01)
    tool.terminate()
    told = tool.communicate()[1]
    assert tool.returncode == 1
    assert "sh was interrupted: nothing is measured" in told
    assert not model.exists()
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("arguments, words", [("--", "no program is given"),
                                              ("--library=libblas.so.3 -- true", "without a program"),
                                              ("true", "a program after --")])
def test_refused(calibrate, model, arguments, words):
    done = calibrate(model, *arguments.split())
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not model.exists()


def test_no_folder_for_the_file(model):
    done = run("/no/such/folder", model, "--", "true")
    assert done.returncode == 1
    assert "can be made in TMPDIR, or /tmp: No such file or directory; nothing is measured" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_says_it():
    done = start(ACCEL, "calibrate", "--help")
    assert "[-- PROGRAM" in done.stdout
    assert "goes to stderr" in done.stdout
