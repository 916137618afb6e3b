#!/usr/bin/python3 -B
"""accel calibrate -- PROGRAM: measures the libraries that the program calls, with its numbers of threads, so that the program
finds each in the calibration; a line and the exit status say what goes wrong. With TEST_LONG=1 one more program."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from lib.calibrated import AUTO, put
from lib.log import said
from lib.programs import BUILD, LOG, LONG, TESTS, clean_env, start
from lib.tap import Tap

ACCEL = str(BUILD / "accel")
DEBIAN, VENV = "/usr/bin/python3", str(BUILD / "venv/bin/python")
REFERENCE = Path("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3").resolve()
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}
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

tap = Tap()


def calibrate(folder, model, *arguments, env={}):
    done = start(ACCEL, "calibrate", "--seconds=1", f"--output={model}", *arguments, env={"TMPDIR": folder, **env})
    done.stderr = re.sub(r"(?m)^accel: the machine is busy: .*\n", "", done.stderr)  # other tests may run beside this one
    return done


def read(path):
    """The sections of a file: header -> text."""
    parts = re.split(r"(?m)^(\[.*\])\n", Path(path).read_text().rsplit("checksum=", 1)[0]) if Path(path).exists() else [""]
    return dict(zip(parts[1::2], parts[2::2]))


def missed(command, model):
    """The keys of sections that the program looks for and does not find."""
    done = start(*command, env={**AUTO, **LOG, "ACCEL_START": "wait", "ACCEL_MODEL": str(model)})
    return [re.sub(r".* has nothing for (.*): built-in.*", r"\1", line) for line in said(done) if " has nothing for " in line]


with tempfile.TemporaryDirectory() as folder:
    temporary = Path(folder, "tmp")
    temporary.mkdir()

    # Each program finds all its sections; if one is removed, it misses exactly that one.
    for name, command, libraries in (
            ("Debian's NumPy", [DEBIAN, "-c", SOLVE], {(r"libblas\.so", 2), (r"liblapack\.so", 2)}),
            *([("NumPy's wheel", [VENV, "-c", SOLVE], {("libscipy_openblas64_-", 2)})] if LONG else []),
            ("the wheels of NumPy and SciPy", [VENV, "-c", SCIPY], {("libscipy_openblas64_-", 2), ("libscipy_openblas-", 2)}),
            ("a C program", [str(TESTS / "steps"), "dgemm:400:1", "solve:400:1"], {(r"libblas\.so", 2), (r"liblapack\.so", 2)}),
            ("one thread", ["/usr/bin/env", "OPENBLAS_NUM_THREADS=1", DEBIAN, "-c", PRODUCT], {(r"libblas\.so", 1)}),
            ("a child", [DEBIAN, "-c", CHILD, PRODUCT], {(r"libblas\.so", 2)})):
        model = Path(folder, name.replace(" ", "_"))
        done = calibrate(temporary, model, "--", *command, env=GPU)
        sections = read(model)
        cpu = [key for key in sections if key.startswith("[cpu ")]
        tap.ok(done.returncode == 0 and len(cpu) == len(libraries) and len(sections) == len(cpu) + 1 and
               all(any(re.search(rf'threads={n} library="{library}', key) for key in cpu) for library, n in libraries),
               f"{name}: a section for each library that it calls, and the GPU's", done.returncode, done.stderr, *sections)
        tap.ok(all(re.search(r"(?m)^[sd]ge(mm|sv) ", sections[key]) for key in cpu), f"{name}: with routines", *sections.values())
        measured = re.findall(r"(?m)^accel: (\S+) is measured: called as \w+, integers of (32|64) bits, (\d) threads?$", done.stderr)
        tap.ok(len(measured) == len(cpu) and "is run, to see which libraries it calls" in done.stderr and
               len(said(done)) == 1 + len(cpu) and all(bits == ("64" if "64_" in path else "32") for path, bits, _ in measured), f"{name}: it is said", done.stderr)
        lacking = missed(command, model)
        tap.ok(lacking == [], f"{name}: it finds all that it looks for", *lacking)
        for key in cpu:
            less = f"{folder}/less"
            nothing = re.sub(r"threads=\d+ library=.*", 'threads=1 library="none"]', key)
            put(less, {**{k: sections[k] for k in sections if k != key}, nothing: ""})
            lacking = missed(command, less)
            tap.ok(lacking == [key], f"{name}: without a section it misses that one", key, *lacking)

    # A program that changes its number of threads.
    model = Path(folder, "fewer")
    done = calibrate(temporary, model, "--", DEBIAN, "-c", FEWER)
    found = sorted(re.findall(r'threads=(\d) library="(\w+)', "\n".join(read(model))))
    tap.ok(done.returncode == 0 and found == [("1", "libblas"), ("2", "libblas")], "two numbers of threads: two sections", done.stderr, *found)

    # stdout has the report alone; the program gets its arguments, and its stdout is stderr.
    model = Path(folder, "said")
    done = calibrate(temporary, model, "--", DEBIAN, "-c", PRODUCT + "import sys; print('words', sys.argv[1:])", "a b", "--seconds", "-x")
    tap.ok(done.returncode == 0 and "words ['a b', '--seconds', '-x']" in done.stderr and "words" not in done.stdout and
           done.stdout.startswith(f"{model}\n[cpu "), "the program's stdout goes to stderr", done.stdout, done.stderr)

    # A program that fails: the libraries that it has called are measured, and the status is 1.
    for name, end, words in (("status 3", "raise SystemExit(3)", "ended with status 3"),
                             ("a signal", "import os; os.kill(os.getpid(), 9)", "was ended by signal 9")):
        model = Path(folder, name)
        done = calibrate(temporary, model, "--", DEBIAN, "-c", PRODUCT + end)
        tap.ok(done.returncode == 1 and f"accel: {DEBIAN} {words}" in done.stderr and "until then are measured" in done.stderr and
               any("libblas" in key for key in read(model)), f"{name}: what it has called until then", done.returncode, done.stderr)

    # A library that is gone: the others are measured.
    model, copy = Path(folder, "gone"), f"{folder}/libgone.so"
    done = calibrate(temporary, model, "--", DEBIAN, "-c", GONE, REFERENCE, copy)
    tap.ok(done.returncode == 1 and len(re.findall(f"(?m)^accel: .*cannot be opened again: {copy}: ", done.stderr)) == 1 and len(read(model)) == 1,
           "a library that is gone", done.returncode, done.stderr, *read(model))

    # Nothing to measure: a line besides "is run", and no file.
    model = Path(folder, "none")
    for command, words in ((["/no/such/program"], "cannot be started: No such file"), (["/dev/null"], "cannot be started: Permission denied"),
                           (["true"], "calls no BLAS or LAPACK that libaccel sees"), (["sh", "-c", "exit 127"], "ended with status 127"),
                           # whoever starts the test may have SIGINT ignored
                           (["/usr/bin/env", "--default-signal=INT", "sh", "-c", "kill -INT $$"], "was interrupted")):
        done = calibrate(temporary, model, "--", *command)
        tap.ok(done.returncode == 1 and f"accel: {command[0]} {words}" in done.stderr and done.stderr.count("\n") == 2 and not done.stdout and
               not model.exists(), f"{' '.join(command)}: {words}", done.returncode, done.stderr)
    # A signal to the tool ends it with the program.
    ready = Path(folder, "ready")
    tool = subprocess.Popen([ACCEL, "calibrate", "--output", model, "--", "sh", "-c", f"touch {ready}; exec sleep 60"], env=clean_env(temporary),
                            stderr=subprocess.PIPE, text=True)
    while not ready.exists() and tool.poll() is None:
        time.sleep(0.01)
    tool.terminate()
    said = tool.communicate()[1]
    tap.ok(tool.returncode == 1 and "sh was interrupted: nothing is measured" in said and not model.exists(), "SIGTERM to the tool", tool.returncode, said)
    for arguments, words in ((("--",), "no program is given"), (("--library=libblas.so.3", "--", "true"), "without a program"),
                             (("true",), "a program after --")):
        done = calibrate(temporary, model, *arguments)
        tap.ok(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not model.exists(),
               f"refused: {' '.join(arguments)}", done.returncode, done.stderr)
    done = calibrate("/no/such/folder", model, "--", "true")
    tap.ok(done.returncode == 1 and "can be made in TMPDIR, or /tmp: No such file or directory; nothing is measured" in done.stderr and done.stderr.count("\n") == 1, "no folder for the file", done.stderr)

    done = start(ACCEL, "calibrate", "--help")
    tap.ok("[-- PROGRAM" in done.stdout and "goes to stderr" in done.stdout, "--help says it", done.stdout)
    left = os.listdir(temporary)
    tap.ok(not left, "nothing is left in TMPDIR", *left)

tap.done()
