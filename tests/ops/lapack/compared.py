"""Random calls of LAPACK on the test GPU, compared with those without libaccel, case by case. See random_lapack.c."""

import tempfile
from pathlib import Path

from lib.log import complaints, parse_log, said
from lib.programs import LOG, PLAIN, TEST_GPU, start

QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
# What OpenBLAS 0.3.21 itself gets wrong: cases.h.
RANDOM = ["-f", "tyesmv"]
SIZES = {"s": 4, "d": 8, "c": 8, "z": 16}


def run(program, arguments, env):
    """The finished process, which found nothing wrong; its cases with their INFO; and its decisions."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start(program, *RANDOM, "-o", report, *arguments, env={**QUICK, **env})
        cases = dict(line.split(" | ") for line in report.read_text().splitlines() if " | " in line)
    assert done.returncode == 0, [line for line in done.stderr.splitlines() if line.startswith("wrong: ")][:5]
    return done, {case: outcome.split()[0] for case, outcome in cases.items()}, parse_log(done.stderr)


def same_as_native(program, arguments, env):
    """Runs with libaccel and without have the same INFO; returns the one with it, and its decisions."""
    _, native, _ = run(program, arguments, PLAIN)
    done, cases, lines = run(program, arguments, {**TEST_GPU, **LOG, **env})
    assert cases
    assert len(cases) == len(native)
    other = [f"{case} | {native.get(case)} | {info}" for case, info in cases.items() if native.get(case) != info]
    assert not other, other[:5]
    # A calibration of a test's own has nothing for a CPU library.
    messages = complaints(done) if "ACCEL_MODEL" in env else said(done)
    assert not messages, messages
    return done, lines
