#!/usr/bin/python3 -B
"""Programs with threads of their own, for ThreadSanitizer, which does not follow forks: tests/sanitize/run."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import summaries
from lib.programs import LOG, NO_GPU, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
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
    on_gpu = [row["calls"] for s in summaries(stderr) for row in s["rows"] if (row["routine"], row["ran"], row["why"]) == ("dgemm", "gpu0", "forced")]
    return CALLS - FEW <= sum(on_gpu) <= CALLS


def left_alone(stderr):
    return stderr.count("dgemm is left to the CPU from here on") == 1


with tempfile.TemporaryDirectory() as folder:
    model = Path(folder, "model")
    for name, env, shown in (
        ("no GPU", {**NO_GPU, **ONE, **LOG}, all_on_the_cpu),
        ("a GPU that starts meanwhile", {**AUTO, **LOG, "TESTGPU_START_MS": "100"}, started_meanwhile),
        ("a GPU that starts meanwhile, without a log", {**AUTO, "TESTGPU_START_MS": "100"}, lambda stderr: not stderr),
        ("what was measured is learned", {**AUTO, "ACCEL_LEARN": "1", "ACCEL_MODEL": str(model)}, lambda _: model.exists()),
        ("all on the GPU", {**TEST_GPU, **ONE, **LOG, "ACCEL_SUMMARY": "json"}, all_on_the_gpu),
        ("all on the GPU, and checked", {**TEST_GPU, **ONE, "ACCEL_VERIFY": "all", "ACCEL_SUMMARY": "json"}, all_on_the_gpu),
        ("a GPU that fails", {**TEST_GPU, **ONE, "TESTGPU_FAIL": "cublasDgemm:20+"}, left_alone),
    ):
        done = start("steps", "threads:4:200:30", "threads:4:64:100", env={**env, "XDG_CACHE_HOME": folder})
        lines = done.stdout.splitlines()
        tap.ok(done.returncode == 0 and len(lines) == 8 and all(" 0 wrong" in line for line in lines), f"{name}: results",
               done.returncode, done.stdout, done.stderr[-500:])
        tap.ok(shown(done.stderr), f"{name}: where the calls ran", *reasons(done.stderr).items(), done.stderr[-500:])
for name, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
    done = start("turmoil", 800, TESTS, env={**env, **ONE, **REFERENCE}, timeout=600)
    tap.ok(done.returncode == 0, f"calls while libraries come and go, {name}", done.returncode, done.stdout[-500:], done.stderr[-500:])
done = start("predict_calls", "threads", env={**TEST_GPU, **ONE, **LOG})
tap.ok(done.returncode == 0 and reasons(done.stderr) == {"ran=gpu0 why=forced": 320}, "predictions by two models whose support vectors stay on the GPU",
       done.returncode, *reasons(done.stderr).items(), done.stderr[-500:])
tap.done()
