#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The reference BLAS and CBLAS test programs of Levels 2 and 3, unchanged, under libaccel: on the test GPU, without a
GPU and with ACCEL=0, with OpenBLAS, BLIS and reference BLAS as the original. Among their tests are the error exits: bad
arguments must reach the program's own handler. With TEST_LONG=1 all programs with each library; else each program's
kind (interface, level) once with OpenBLAS, each type twice, and one with the others; Level 3 on several devices by one
program."""

import functools
import itertools
import re
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import parse_log
from lib.programs import BUILD, LONG, NO_GPU, SHIM, TEST_GPU, TESTS, clean_env, leave_out, placed
from lib.split import several
from lib.table import routine_table

LIBRARIES = {"OpenBLAS": "openblas-pthread", "BLIS": "blis-pthread", "reference": "blas"}
MODES = {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}}
LAPACK = BUILD / "lapack"
ROWS = set(routine_table("ROUTINE"))
# Complex Level 3 is what takes longest.
SHORT = [("OpenBLAS", "Fortran", 2, "d"), ("OpenBLAS", "Fortran", 2, "z"), ("OpenBLAS", "Fortran", 3, "d"),
         ("OpenBLAS", "Fortran", 3, "c"),
         ("OpenBLAS", "CBLAS", 2, "c"), ("OpenBLAS", "CBLAS", 2, "s"), ("OpenBLAS", "CBLAS", 3, "s"),
         ("BLIS", "CBLAS", 3, "d"),
         ("reference", "Fortran", 3, "s")]
PROGRAMS = list(itertools.product(LIBRARIES, ("Fortran", "CBLAS"), (2, 3), "sdcz")) if LONG else SHORT
# Level 3 on test GPUs that share what can be divided: three, three of unequal speed, and two.
# Results are those of the same bounds.
UNEQUAL = {"TESTGPU_ATTRIBUTES": "16=1,13=3/1/2"}
SHARED = [(devices, how, interface, letter) for (devices, how), interface, letter in
          itertools.product(((3, {}), (3, UNEQUAL), (2, {})), ("Fortran", "CBLAS"),
                            "sdcz")] if LONG else [(3, UNEQUAL, "CBLAS", "s")]


# LAPACK 3.12 and later ones test gemmtr, too. Libraries that have not all of it, or report wrong
# arguments by another name, fail by themselves: what is not tested then, and how the input says so.
NOT_TESTED = {"gemmtr": (r"(?i)(gemmtr) T", r"\1 F"), "error exits": (r"(?m)^T(.*ERROR EXITS)", r"F\1")}
CHOICES = [(), ("gemmtr",), ("error exits",), ("gemmtr", "error exits")]


def input_of(interface, level, letter):
    name = f"BLAS/TESTING/{letter}blat{level}.in" if interface == "Fortran" else f"CBLAS/testing/{letter}in{level}"
    return (LAPACK / name).read_text()


def run(interface, level, letter, env, left=()):
    """Output of a test program: what it prints and the summary file it writes."""
    program = f"{'' if interface == 'Fortran' else 'cblas_'}x{letter}blat{level}"
    text = input_of(interface, level, letter)
    for what in left:
        text = re.sub(*NOT_TESTED[what], text)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(TESTS / "reference" / program)], input=text, stdout=subprocess.PIPE, timeout=600,
                              stderr=subprocess.STDOUT, cwd=folder, env=placed({**clean_env(folder), **env}), text=True)
        files = {p.name: p.read_text() for p in sorted(Path(folder).iterdir())}
    log = files.pop("log", "")
    return done.returncode, done.stdout + "".join(files.values()), log


def verdicts(output):
    return output.count("PASSED THE TESTS OF"), output.count("PASSED THE COMPUTATIONAL TESTS"), \
        len(re.findall(r"FAIL|NOT DETECTED|SUSPECT|\*{4,}", output))


def routines_in(output):
    """The routines that a program says it has tested, without CBLAS's prefix. Fortran's print six letters of gemmtr."""
    names = (name.lower().removeprefix("cblas_") for name in re.findall(r"(\w+)\s+PASSED THE", output))
    return {re.sub("gemmt$", "gemmtr", name) for name in names}


def faults(output):
    return [line for line in output.splitlines() if re.search("FAIL|NOT DET|SUSP|accel", line)]


def path_of(library):
    # BLIS's threads spin while they wait for each other: slow beside other work.
    return {"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/{LIBRARIES[library]}", "BLIS_NUM_THREADS": "1"}


def in_words(program):
    return "{}, {}, level {}, {}".format(*program)


# left: what is not tested.
Native = namedtuple("Native", "left output")


@functools.cache
def native(*program):
    """Without libaccel: all that the library passes."""
    library, *what = program
    found = []
    for left in CHOICES if "gemmtr" in input_of(*what).lower() else [()]:
        code, output, _ = run(*what, path_of(library), left)
        found.append(Native(left, output))
        if code == 0 and not verdicts(output)[2]:
            break
    else:
        return found[0]
    if left:
        leave_out(f"{in_words(program)}: {' and '.join(left)}: the library fails these tests by itself")
    return found[-1]


each_program = pytest.mark.parametrize("program", PROGRAMS, ids=in_words)


@each_program
def test_it_passes_without_libaccel(program):
    passed = verdicts(native(*program).output)
    assert passed[0] + passed[1] >= 6, native(*program).output[-600:]
    assert not passed[2]


@pytest.mark.parametrize("mode", MODES)
@each_program
def test_the_same_output(program, mode):
    library, *what = program
    left, expected = native(*program)
    code, output, _ = run(*what, {**MODES[mode], **path_of(library), "ACCEL_LOG_FILE": "log", "ACCEL_LOG": "0"}, left)
    assert code == 0
    assert verdicts(output) == verdicts(expected), faults(output)[:5]
    assert output == expected


# lines: decisions.
OnGpu = namedtuple("OnGpu", "program code output lines")


@pytest.fixture(scope="module", params=PROGRAMS, ids=in_words)
def on_gpu(request):
    library, *what = request.param
    env = {**TEST_GPU, "TESTGPU_DELAY_US": "0", **path_of(library), "ACCEL_LOG_FILE": "log", "ACCEL_LOG": "1"}
    code, output, log = run(*what, env, native(*request.param).left)
    return OnGpu(request.param, code, output, parse_log(log))


def test_every_test_passes_on_the_test_gpu(on_gpu):
    assert on_gpu.code == 0
    assert verdicts(on_gpu.output) == verdicts(native(*on_gpu.program).output), faults(on_gpu.output)[:5]


def test_every_routine_ran_on_the_gpu(on_gpu):
    prefix, suffix = ("", "_") if on_gpu.program[1] == "Fortran" else ("cblas_", "")
    ran = {fields["sym"].removeprefix(prefix).removesuffix(suffix) for fields in on_gpu.lines
           if fields["ran"] == "gpu0"}
    wanted = routines_in(native(*on_gpu.program).output) & ROWS
    assert wanted
    assert wanted <= ran


def test_what_did_not_is_empty_or_wrong(on_gpu):
    assert {fields["why"] for fields in on_gpu.lines if fields["ran"] != "gpu0"} <= {"empty", "bad_argument"}


@pytest.mark.skipif(not LONG, reason="the long form has all programs")
def test_every_routine_of_the_reference_blas_in_the_table_was_tested():
    """Of the table but the extensions of single libraries."""
    wanted = {routine for routine in ROWS if not re.search(r"gemm(t|tr|3m|_batch.*)$|^sbgemm$", routine)}
    assert not wanted - set().union(*(routines_in(native(*program).output) for program in PROGRAMS))


@pytest.mark.parametrize("devices, how, interface, letter", SHARED, ids=lambda value: "equal" if value == {}
                         else "unequal" if value == UNEQUAL else None)
def test_level_3_on_several_devices(devices, how, interface, letter):
    env = {**several(devices), **how, "LD_LIBRARY_PATH": path_of("OpenBLAS")["LD_LIBRARY_PATH"],
           "ACCEL_LOG_FILE": "log"}
    left, expected = native("OpenBLAS", interface, 3, letter)
    code, output, log = run(interface, 3, letter, env, left)
    assert code == 0
    assert verdicts(output) == verdicts(expected), faults(output)[:5]
    ran = [line["ran"] for line in parse_log(log)]
    assert sum("+" in where for where in ran) > 100
    assert not [where for where in ran if "cpu+" in where or "+cpu" in where]
