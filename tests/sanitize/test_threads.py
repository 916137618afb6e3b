#!/usr/bin/python3 -B
"""Programs with threads of their own, for ThreadSanitizer, which does not follow forks: tests/sanitize/run."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shim"))
from common import LOG, NO_GPU, TEST_GPU, TESTS, Tap, start  # noqa: E402

tap = Tap()
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64"}
ONE = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
AUTO = {**TEST_GPU, **ONE, "ACCEL_POLICY": "auto"}

with tempfile.TemporaryDirectory() as folder:
    for name, env in {
        "no GPU": {**NO_GPU, **ONE, **LOG},
        "a GPU that starts meanwhile": {**AUTO, **LOG, "TESTGPU_START_MS": "100"},
        "a GPU that starts meanwhile, without a log": {**AUTO, "TESTGPU_START_MS": "100"},
        "what was measured is learned": {**AUTO, "ACCEL_LEARN": "1", "ACCEL_MODEL": folder + "/model"},
        "all on the GPU": {**TEST_GPU, **ONE, **LOG, "ACCEL_SUMMARY": "1"},
        "all on the GPU, and checked": {**TEST_GPU, **ONE, "ACCEL_VERIFY": "all", "ACCEL_SUMMARY": "1"},
        "a GPU that fails": {**TEST_GPU, **ONE, "TESTGPU_FAIL": "cublasDgemm:20+"},
    }.items():
        done = start("steps", "threads:4:200:30", "threads:4:64:100", env={**env, "XDG_CACHE_HOME": folder})
        lines = done.stdout.splitlines()
        tap.ok(done.returncode == 0 and len(lines) == 8 and all(" 0 wrong" in line for line in lines), name, done.stdout, done.stderr[-500:])
for name, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
    done = start("turmoil", 800, TESTS, env={**env, **ONE, **REFERENCE}, timeout=200)
    tap.ok(done.returncode == 0, f"calls while libraries come and go, {name}", done.returncode, done.stdout[-500:], done.stderr[-500:])
tap.done()
