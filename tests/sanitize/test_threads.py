#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs with threads of their own, for ThreadSanitizer, which does not follow forks: tests/sanitize/run."""

import re
from collections import Counter

import pytest

from lib.log import summaries
from lib.programs import LOG, NO_GPU, TEST_GPU, TESTS, start

REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64"}
ONE = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
AUTO = {**TEST_GPU, **ONE, "ACCEL_POLICY": "auto"}
CALLS = 4 * 30 + 4 * 100


def reasons(stderr):
    """How many calls the log has for each place and reason."""
    return Counter(re.findall(r"ran=\S+ why=\S+", stderr))


# Some of the calls may come while the GPU starts.
FEW = 8


def all_on_the_cpu(stderr):
    return reasons(stderr) == {"ran=cpu why=no_gpu": CALLS}


def started_meanwhile(stderr):
    found = reasons(stderr)
    return sum(found.values()) == CALLS and 0 < found["ran=cpu why=warming"] < CALLS


def all_on_the_gpu(stderr):
    on_gpu = [
        row["calls"] for s in summaries(stderr) for row in s["rows"]
        if (row["routine"], row["ran"], row["why"]) == ("dgemm", "gpu0", "forced")
    ]
    return CALLS - FEW <= sum(on_gpu) <= CALLS


def left_alone(stderr):
    return stderr.count("dgemm is left to the CPU from here on") == 1


ON_GPU = {**TEST_GPU, **ONE}
# Settings, and what says on stderr where the calls ran.
CASES = {
    "no GPU": ({**NO_GPU, **ONE, **LOG}, all_on_the_cpu),
    "a GPU that starts meanwhile": ({**AUTO, **LOG, "TESTGPU_START_MS": "100"}, started_meanwhile),
    "a GPU that starts meanwhile, without a log": ({**AUTO, "TESTGPU_START_MS": "100"}, lambda stderr: not stderr),
    "all on the GPU": ({**ON_GPU, **LOG, "ACCEL_SUMMARY": "json"}, all_on_the_gpu),
    "all on the GPU, and checked": ({**ON_GPU, "ACCEL_VERIFY": "all", "ACCEL_SUMMARY": "json"}, all_on_the_gpu),
    "a GPU that fails": ({**ON_GPU, "TESTGPU_FAIL": "cublasDgemm:20+"}, left_alone),
}


def threads(folder, env):
    """What is on stderr of a run that is right."""
    done = start("steps", "threads:4:200:30", "threads:4:64:100", env={**env, "XDG_CACHE_HOME": str(folder)})
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-500:]
    assert len(lines) == 8
    assert all(" 0 wrong" in line for line in lines)
    return done.stderr


@pytest.mark.parametrize("env, shown", CASES.values(), ids=CASES)
def test_where_calls_run(env, shown, tmp_path):
    stderr = threads(tmp_path, env)
    assert shown(stderr), reasons(stderr)


def test_what_was_measured_is_learned(tmp_path):
    threads(tmp_path, {**AUTO, "ACCEL_LEARN": "1", "ACCEL_MODEL": str(tmp_path / "model")})
    assert (tmp_path / "model").exists()


@pytest.mark.parametrize("env", (NO_GPU, TEST_GPU), ids=("no GPU", "test GPU"))
def test_calls_while_libraries_come_and_go(env):
    done = start("turmoil", 800, TESTS, env={**env, **ONE, **REFERENCE}, timeout=600)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]


def test_predictions_by_two_models_whose_support_vectors_stay_on_the_gpu():
    done = start("predict_calls", "threads", env={**ON_GPU, **LOG})
    assert done.returncode == 0, done.stderr[-500:]
    assert reasons(done.stderr) == {"ran=gpu0 why=forced": 320}
