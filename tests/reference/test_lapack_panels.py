#!/usr/bin/python3 -B
"""The reference LAPACK test programs of linear equations and least squares, unchanged, on the test GPU, with OpenBLAS's LAPACK as the original:
with so little memory that their largest matrices, of order 132, go through it in panels; and with all of them on the device, while their panels
come up through a slow link. In double precision and with fewer sizes; with TEST_LONG=1, in all four types, with more of them, and the panels on several devices, too, which share them.
(With least squares, cuSOLVER's workspaces would not leave room for panels of so small a matrix in less memory than its own.)"""

import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from inputs import panels_data
from lib.calibrated import calibrate_in_core
from lib.log import parse_log
from lib.programs import BUILD, LONG, TEST_GPU, clean_env
from lib.split import several
from lib.tap import Tap
from outputs import complete, reports, verdicts

TESTING = BUILD / "lapack/TESTING"
SIZES = {"s": 4, "d": 8, "c": 8, "z": 16}
# BLAS, whose calls by the programs are most, is other tests' matter.
GPU = {**TEST_GPU, "TESTGPU_DELAY_US": "0", "ACCEL_LOG_FILE": "log", "ACCEL_CPU": "blas2:*,blas3:*"}
folder = tempfile.TemporaryDirectory()
model = f"{folder.name}/model"
calibrate_in_core(model, folder.name, {"OPENBLAS_NUM_THREADS": "1"})
tap = Tap()


def run(letter, paths, env):
    with tempfile.TemporaryDirectory() as own:
        full = {**clean_env(own), **env, "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-pthread", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([TESTING / f"LIN/xlintst{letter}"], input=panels_data(TESTING, letter, paths, LONG), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=own, env=full, text=True, errors="replace", timeout=1800)
        log = Path(own, "log")
        return done, log.read_text() if log.exists() else ""


def beyond(fields, bytes):
    """Whether the matrix alone is larger."""
    rows = int(fields.get("m", fields.get("n", 0)))
    return rows * int(fields.get("n", 0)) * SIZES[fields["sym"][0]] > bytes


def panels_of(log, memory):
    """Routine -> calls on the GPU whose matrix was in panels; and the reasons of those whose matrix could not be."""
    found, refused, since = Counter(), Counter(), 0
    for line in log.splitlines():
        since += " event=h2d operand=a " in line
        for f in parse_log(line) if " ran=" in line else ():
            many = beyond(f, memory) if memory else since > 1
            routine = f["sym"].rstrip("_")[1:]
            if f["ran"].startswith("gpu") and many:
                found[routine] += 1
                found[routine, "shared"] += "+" in f["ran"]
            if f["why"] == "error" or f["why"] == "no_memory" and routine in FACTORED.split():
                refused[routine, f["why"]] += 1
            since = 0
    return found, refused


def check(job):
    letter, paths, env = job
    return job, run(letter, paths, {}), run(letter, paths, {**GPU, **env})


SOLVING, FACTORED = "GE PO TR".split(), "getrf gesv getrs getri potrf posv potrs potri trtrs trtri"
jobs = []
SHARED = "getrf gesv"  # the triangles of so small matrices are often not worth it
for letter in "sdcz" if LONG else "d":
    little = {"ACCEL_MEMORY": f"{116 * SIZES[letter] // 8}K", "ACCEL_LOG": "1"}
    # In single precision, so little memory leaves too little beside cuSOLVER's workspaces and what
    # each block takes.
    for devices, speeds in ((2, "1"), (3, "3/1/2")) if LONG and letter != "s" else ():
        jobs.append((letter, SOLVING, {**several(devices), "TESTGPU_ATTRIBUTES": f"16=1,13={speeds}", **little}))
    jobs += [(letter, SOLVING, little),
             (letter, [*SOLVING, "QR", "LS"] if LONG else ["GE", "PO", "QR", "LS"], {"ACCEL_MODEL": model, "ACCEL_LOG": "2"})]
with ThreadPoolExecutor(2) as pool:
    for (letter, paths, env), (native, _), (done, log) in pool.map(check, jobs):
        memory = int(env.get("ACCEL_MEMORY", "0K")[:-1]) * 1024
        devices = env.get("TESTGPU_DEVICES", "")
        label = f"{letter}, {'a matrix above the memory' if memory else 'while it comes up'}{devices and f' of {devices} devices'}"
        tap.ok(native.returncode == done.returncode == 0 and complete(native.stdout) and complete(done.stdout), f"{label}: runs", done.stdout[-600:])
        passed, got = verdicts(native.stdout), verdicts(done.stdout)
        worse = [f"{' '.join(key)}: {got[key]}, not {passed[key]}" for key in passed | got
                 if got[key] > passed[key] or key[1] == "run" and got[key] != passed[key]]
        new = reports(done.stdout) - reports(native.stdout)
        tap.ok(passed and not worse and not new, f"{label}: no further failure", *worse, *new)
        found, refused = panels_of(log, memory)
        wanted = FACTORED if memory else "getrf gesv potrf posv geqrf gels"
        missing = [routine for routine in wanted.split() if not found[routine]]
        tap.ok(not missing, f"{label}: each routine ran in panels", *missing, found)
        if devices:
            alone = [routine for routine in SHARED.split() if not found[routine, "shared"]]
            tap.ok(not alone, f"{label}: the devices shared each that can be", *alone, found)
        tap.ok(not refused, f"{label}: nothing is refused", *refused.items())
tap.done()
