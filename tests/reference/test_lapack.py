#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The reference LAPACK test programs, unchanged, under libaccel: on the test GPU, without a GPU and with ACCEL=0, with
OpenBLAS's LAPACK in double precision, symmetric and Hermitian linear equations also in complex numbers, and with
TEST_LONG=1 in all types and with the reference one, too, as the original. Sizes and paths are fewer than in the stock
inputs; with LAPACK_STOCK=1, every stock input is run as it is (an hour). -k chooses: -k "OpenBLAS and svd"."""

import os
import re
import subprocess
import tempfile
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.log import summaries
from lib.programs import BUILD, LONG, NO_GPU, SHIM, TEST_GPU, clean_env, placed
from lib.table import routine_table
from reference.inputs import INPUTS, OTHERS, PROGRAMS, data
from reference.outputs import complete, reports, value_less, verdicts

STOCK = os.environ.get("LAPACK_STOCK") == "1"
WHOLE = LONG or STOCK
LIBRARIES = {"OpenBLAS": ("openblas-pthread",), **({"reference": ("lapack", "blas")} if WHOLE else {})}
# Millions of calls: a table at the end in place of their lines.
MODES = {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"},
         "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0", "ACCEL_SUMMARY": "json", "ACCEL_LOG_FILE": "log"}}
TESTING = BUILD / "lapack/TESTING"
JOBS = [(library, letter, name) for library in LIBRARIES for letter in "sdcz" for name in INPUTS + OTHERS * STOCK
        if WHOLE or letter == "d" or (letter, name) == ("c", "?test")]
FINE = ("empty", "bad_argument", "workspace_query", "unsupported")

# cuSOLVER has no QR factorisation with column pivoting.
CPU_ONLY = r"gelsy$"
# No test program calls these with bad arguments.
NEVER_WRONG = r"(lauum|laswp|lacpy|(sy|he)g(v[dx]?|st))$"


def run(library, letter, name, env):
    """Exit status and output of a test program, and libaccel's table of what ran where."""
    program = TESTING / PROGRAMS.get(name, "EIG/xeigtst")
    path = ":".join(f"/usr/lib/x86_64-linux-gnu/{folder}" for folder in LIBRARIES[library])
    with tempfile.TemporaryDirectory() as folder:
        full = {**clean_env(folder), **env, "LD_LIBRARY_PATH": path, "OPENBLAS_NUM_THREADS": "1"}
        full = placed(full)
        done = subprocess.run([f"{program}{letter}"], input=data(TESTING, name, letter, STOCK, not WHOLE),
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=folder, env=full, text=True, errors="replace", timeout=3600)
        log = Path(folder, "log")
        table = log.read_text() if log.exists() else ""
    return done.returncode, re.sub(r"(?m)^.*Total time used.*\n", "", done.stdout), table


def unequal(output):
    """Of the tests of ?geev, those that want the same bits with and without vectors: with left ones it is the CPU's."""
    part = output.partition("EV -- ")[2].partition("EV: ")[0]
    return [value_less(line) for line in part.splitlines() if re.search(r"test\( [567]\)=", line)]


def uncounted(output):
    """Of the tests of balancing, which count nothing: all but the example with the largest error."""
    return [line for line in output.splitlines() if "largest" not in line]


def worst(output):
    """The largest error, in units of the precision."""
    found = re.search(r"largest test error += +(\S+)", output)
    return float(found[1].replace("D", "E")) if found else float("inf")


def parse(table):
    """(routine, ran, why) of the table at the end of a run."""
    return {(row["routine"], row["ran"], row["why"]) for s in summaries(table) for row in s["rows"]}


# native, kernels: what the program and OpenBLAS, with which the test GPU computes, do without
# libaccel; what fails natively with that one may fail there. modes: with it.
Job = namedtuple("Job", "letter name native kernels modes")


def run_all(library, letter, name):
    native = run(library, letter, name, {})
    kernels = native if library == "OpenBLAS" else run("OpenBLAS", letter, name, {})
    return Job(letter, name, native, kernels, {mode: run(library, letter, name, env) for mode, env in MODES.items()})


@pytest.fixture(scope="module")
def runs(request):
    """The jobs of the tests that are chosen, two at a time: job -> what will have run."""
    chosen = [item.callspec.params.get("job") for item in request.session.items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(2) as pool:
        yield {job: pool.submit(run_all, *job) for job in dict.fromkeys(chosen) if job}


@pytest.fixture(scope="module", params=JOBS, ids=lambda job: f"{job[0]}, {job[1]}, {job[2].replace('?', job[1])}")
def job(request, runs):
    return runs[request.param].result()


def test_it_runs_without_libaccel(job):
    code, output, _ = job.native
    assert code == 0
    assert complete(output), output[-600:]


@pytest.mark.parametrize("mode", ["no GPU", "ACCEL=0"])
def test_the_same_output(job, mode):
    assert job.modes[mode][:2] == job.native[:2]


def test_it_runs_on_the_test_gpu(job):
    code, output, _ = job.modes["test GPU"]
    assert code == 0
    assert complete(output), output[-600:]


def test_no_further_failure_on_the_test_gpu(job):
    native, kernels, output = (text for _, text, _ in (job.native, job.kernels, job.modes["test GPU"]))
    passed, known, got = (verdicts(text) for text in (native, kernels, output))
    new = reports(output) - (reports(native) | reports(kernels))
    if job.name == "?ed":
        new -= Counter(unequal(output))
        for counts, text in ((passed, native), (known, kernels), (got, output)):
            counts.subtract({(f"{job.letter.upper()}EV", word): len(unequal(text)) for word in ("failed", "run")})
    assert not new
    assert not [f"{' '.join(key)}: {got[key]}, not {passed[key]}" for key in passed | got
                if got[key] > max(passed[key], known[key]) or key[1] == "run" and got[key] != passed[key]]
    if not passed:
        assert uncounted(output) == uncounted(native)
        assert worst(output) <= max(1, 2 * worst(native))


def test_nothing_failed_on_the_gpu(job):
    assert not [decision for decision in parse(job.modes["test GPU"][2]) if decision[1:] != ("gpu0", "forced")
                and decision[2] not in FINE]


@pytest.mark.parametrize("why, exceptions", [("forced", CPU_ONLY), ("bad_argument", NEVER_WRONG)],
                         ids=["forced", "bad_argument"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_routine_is_in_the_log(runs, library, why, exceptions):
    of_library = [job for job in JOBS if job[0] == library]
    if not runs.keys() >= set(of_library):
        pytest.skip("not all programs are chosen")
    decisions = set().union(*(parse(runs[job].result().modes["test GPU"][2]) for job in of_library))
    seen = {routine for routine, _, reason in decisions if reason == why}
    assert not {routine for routine in routine_table("LAPACK") if (WHOLE or routine[0] == "d")
                and not re.search(exceptions, routine)} - seen
