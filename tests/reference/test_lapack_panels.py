#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The reference LAPACK test programs of linear equations and least squares, unchanged, on the test GPU, with OpenBLAS's
LAPACK as the original: with so little memory that their largest matrices, of order 132, go through it in panels; and
with all of them on the device, while their panels come up through a slow link. In double precision and with fewer
sizes; with TEST_LONG=1, in all four types, with more of them, and the panels on several devices, too, which share them.
(With least squares, cuSOLVER's workspaces would not leave room for panels of so small a matrix in less memory than its
own.)"""

import os
import subprocess
import tempfile
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.calibrated import calibrate_in_core
from lib.log import parse_log
from lib.programs import BUILD, LONG, TEST_GPU, clean_env
from lib.split import several
from reference.inputs import panels_data
from reference.outputs import complete, reports, verdicts

TESTING = BUILD / "lapack/TESTING"
SIZES = {"s": 4, "d": 8, "c": 8, "z": 16}
# BLAS, whose calls by the programs are most, is other tests' matter.
GPU = {**TEST_GPU, "TESTGPU_DELAY_US": "0", "ACCEL_LOG_FILE": "log", "ACCEL_CPU": "blas2:*,blas3:*"}
SOLVING, FACTORED = ["GE", "PO", "TR"], "getrf gesv getrs getri potrf posv potrs potri trtrs trtri"
SHARED = ("getrf", "gesv")  # the triangles of so small matrices are often not worth it
# memory: its bytes, 0 for all; devices: how many share, and their speeds.
Job = namedtuple("Job", "letter paths memory devices", defaults=[0, None])


def jobs():
    for letter in "sdcz" if LONG else "d":
        memory = 116 * SIZES[letter] // 8 * 1024
        # In single precision, so little memory leaves too little beside cuSOLVER's workspaces and
        # what each block takes.
        for devices in ((2, "1"), (3, "3/1/2")) if LONG and letter != "s" else ():
            yield Job(letter, SOLVING, memory, devices)
        yield Job(letter, SOLVING, memory)
        yield Job(letter, [*SOLVING, "QR", "LS"] if LONG else ["GE", "PO", "QR", "LS"])


def share():
    """All jobs, or of these each n-th one from the k-th on with PANELS_SHARE=k/n."""
    first, step = map(int, os.environ.get("PANELS_SHARE", "1/1").split("/"))
    return list(jobs())[first - 1::step]


def in_words(job):
    how = "a matrix above the memory" if job.memory else "while it comes up"
    return f"{job.letter}, {how}{f' of {job.devices[0]} devices' if job.devices else ''}"


def settings(job, model):
    if not job.memory:
        return {**GPU, "ACCEL_MODEL": model, "ACCEL_LOG": "2"}
    little = {**GPU, "ACCEL_MEMORY": f"{job.memory // 1024}K", "ACCEL_LOG": "1"}
    if not job.devices:
        return little
    devices, speeds = job.devices
    return {**GPU, **several(devices), "TESTGPU_ATTRIBUTES": f"16=1,13={speeds}", **little}


def run(job, env):
    with tempfile.TemporaryDirectory() as own:
        full = {**clean_env(own), **env, "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-pthread",
                "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([TESTING / f"LIN/xlintst{job.letter}"],
                              input=panels_data(TESTING, job.letter, job.paths, LONG), stdout=subprocess.PIPE,
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


# native, done: without libaccel, and with it. found, refused: see panels_of().
Ran = namedtuple("Ran", "job native done found refused")


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The jobs of the tests that are chosen, two at a time: in words -> what will have run."""
    folder = str(tmp_path_factory.mktemp("model"))
    calibrate_in_core(f"{folder}/model", folder, {"OPENBLAS_NUM_THREADS": "1"})

    def both(job):
        native, _ = run(job, {})
        done, log = run(job, settings(job, f"{folder}/model"))
        return Ran(job, native, done, *panels_of(log, job.memory))

    chosen = {item.callspec.params["ran"] for item in request.session.items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(2) as pool:
        yield {in_words(job): pool.submit(both, job) for job in share() if in_words(job) in chosen}


@pytest.fixture(scope="module", params=[in_words(job) for job in share()])
def ran(request, runs):
    return runs[request.param].result()


def test_it_runs(ran):
    assert ran.native.returncode == 0
    assert complete(ran.native.stdout)
    assert ran.done.returncode == 0
    assert complete(ran.done.stdout), ran.done.stdout[-600:]


def test_no_further_failure(ran):
    passed, got = verdicts(ran.native.stdout), verdicts(ran.done.stdout)
    assert passed
    assert not [f"{' '.join(key)}: {got[key]}, not {passed[key]}" for key in passed | got
                if got[key] > passed[key] or key[1] == "run" and got[key] != passed[key]]
    assert not reports(ran.done.stdout) - reports(ran.native.stdout)


def test_each_routine_ran_in_panels(ran):
    wanted = FACTORED if ran.job.memory else "getrf gesv potrf posv geqrf gels"
    assert not [routine for routine in wanted.split() if not ran.found[routine]]


def test_the_devices_shared_each_that_can_be(ran):
    if ran.job.devices:
        assert not [routine for routine in SHARED if not ran.found[routine, "shared"]]


def test_nothing_is_refused(ran):
    assert not ran.refused
