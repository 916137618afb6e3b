#!/usr/bin/python3 -B
"""The reference BLAS and CBLAS test programs of Levels 2 and 3, unchanged, under libaccel: on the test GPU, without a GPU
and with ACCEL=0, with OpenBLAS, BLIS and reference BLAS as the original. Among their tests are the error exits: bad
arguments must reach the program's own handler. With TEST_LONG=1 all programs with each library; else each program's kind (interface, level) once
with OpenBLAS, each type twice, and one with the others; Level 3 on several devices by one program."""

import itertools
import re
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, LONG, NO_GPU, SHIM, TEST_GPU, TESTS, clean_env
from lib.split import several
from lib.table import routine_table
from lib.tap import Tap

LIBRARIES = {"OpenBLAS": "openblas-pthread", "BLIS": "blis-pthread", "reference": "blas"}
MODES = {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0"}}
LAPACK = BUILD / "lapack"

tap = Tap()
rows = list(routine_table("ROUTINE"))


def run(interface, level, letter, env):
    """Output of a test program: what it prints and the summary file it writes."""
    if interface == "Fortran":
        program, data = f"x{letter}blat{level}", LAPACK / f"BLAS/TESTING/{letter}blat{level}.in"
    else:
        program, data = f"cblas_x{letter}blat{level}", LAPACK / f"CBLAS/testing/{letter}in{level}"
    with tempfile.TemporaryDirectory() as folder, open(data) as stdin:
        done = subprocess.run([str(TESTS / "reference" / program)], stdin=stdin, stdout=subprocess.PIPE, timeout=600,
                              stderr=subprocess.STDOUT, cwd=folder, env={**clean_env(folder), **env}, text=True)
        files = {p.name: p.read_text() for p in sorted(Path(folder).iterdir())}
    log = files.pop("log", "")
    return done.returncode, done.stdout + "".join(files.values()), log


def verdicts(output):
    return output.count("PASSED THE TESTS OF"), output.count("PASSED THE COMPUTATIONAL TESTS"), \
        len(re.findall(r"FAIL|NOT DETECTED|SUSPECT|\*{4,}", output))


def tested(output):
    """The routines that a program says it has tested, without CBLAS's prefix."""
    return {name.lower().removeprefix("cblas_") for name in re.findall(r"(\w+)\s+PASSED THE", output)}


# Level 3 on test GPUs that share what can be divided: three, three of unequal speed, and two.
# Results are those of the same bounds.
UNEQUAL = {"TESTGPU_ATTRIBUTES": "16=1,13=3/1/2"}
for (devices, how), interface, letter in itertools.product(((3, {}), (3, UNEQUAL), (2, {})), ("Fortran", "CBLAS"), "sdcz") if LONG else (((3, UNEQUAL), "CBLAS", "s"),):
    path = {"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/{LIBRARIES['OpenBLAS']}"}
    name = f"{devices} {'unequal ' if how else ''}devices, {interface}, level 3, {letter}"
    _, native, _ = run(interface, 3, letter, path)
    code, output, log = run(interface, 3, letter, {**several(devices), **how, **path, "ACCEL_LOG_FILE": "log"})
    lines = parse_log(log)
    shared = sum("+" in line["ran"] for line in lines)
    tap.ok(code == 0 and verdicts(output) == verdicts(native), f"{name}: every test passes",
           *[line for line in output.splitlines() if re.search("FAIL|NOT DET|SUSP|accel", line)][:5])
    tap.ok(shared > 100 and not any("cpu+" in line["ran"] or "+cpu" in line["ran"] for line in lines), f"{name}: {shared} of {len(lines)} calls are shared")

# Complex Level 3 is what takes longest.
SHORT = {"OpenBLAS": [("Fortran", 2, "d"), ("Fortran", 2, "z"), ("Fortran", 3, "d"), ("Fortran", 3, "c"), ("CBLAS", 2, "c"), ("CBLAS", 2, "s"), ("CBLAS", 3, "s")],
         "BLIS": [("CBLAS", 3, "d")], "reference": [("Fortran", 3, "s")]}
# Every routine of the table but the extensions of single libraries.
left = {r for r in rows if not re.search(r"gemm(t|tr|3m|_batch.*)$|^sbgemm$", r)}

for library, folder in LIBRARIES.items():
    # BLIS's threads spin while they wait for each other: slow beside other work.
    path = {"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/{folder}", "BLIS_NUM_THREADS": "1"}
    for interface, level, letter in itertools.product(("Fortran", "CBLAS"), (2, 3), "sdcz") if LONG else SHORT[library]:
        name = f"{library}, {interface}, level {level}, {letter}"
        _, native, _ = run(interface, level, letter, path)
        passed = verdicts(native)
        tap.ok(passed[0] + passed[1] >= 6 and not passed[2], f"{name}: passes without libaccel", native[-600:])
        for mode, env in MODES.items():
            code, output, log = run(interface, level, letter, {**env, **path, "ACCEL_LOG_FILE": "log",
                                                               "ACCEL_LOG": "1" if mode == "test GPU" else "0"})
            tap.ok(code == 0 and verdicts(output) == passed, f"{name}, {mode}: every test passes",
                   *[line for line in output.splitlines() if re.search("FAIL|NOT DET|SUSP|accel", line)][:5])
            if mode != "test GPU":
                tap.ok(output == native, f"{name}, {mode}: the same output")
                continue
            lines = parse_log(log)
            prefix, suffix = ("", "_") if interface == "Fortran" else ("cblas_", "")
            ran = {f["sym"] for f in lines if f["ran"] == "gpu0"}
            wanted = tested(native) & set(rows)
            missing = wanted - {s.removeprefix(prefix).removesuffix(suffix) for s in ran}
            tap.ok(wanted and not missing, f"{name}: every routine ran on the GPU", "missing:", *sorted(missing))
            other = {f["why"] for f in lines if f["ran"] != "gpu0"}
            tap.ok(other <= {"empty", "bad_argument"}, f"{name}: what did not is empty or wrong", *other)
            left -= wanted
if LONG:
    tap.ok(not left, "every routine of the reference BLAS in the table was tested", *sorted(left))
tap.done()
