#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Of each operation of the table, or of each n-th one from the k-th on with FAULTS_SHARE=k/n, every CUDA, cuBLAS and
cuSOLVER call made to fail in a server (`accel serve`), as test_operations.py has it in the process: its client's results are
right, nobody hangs, and the next client finds a server that works, or none. With TEST_LONG=1 more uses of each call."""

import re
import tempfile
from pathlib import Path

import pytest

from faults.faults import Outcome, Report, check, ended_well, plan, record, sweep
from faults.test_operations import BLAS, BLAS_OF, LAPACK, LAPACK_OF, SEEDS, of, of_first_calls, of_routine, on_gpu, turn
from lib.log import parse_log, said
from lib.programs import LONG, start
from lib.served import Server

MOST = 6 if LONG else 3
# Why a call may run on the CPU, or not at all.
REASONS = {"forced", "empty", "bad_argument", "workspace_query", "unsupported", "error", "no_memory", "busy", "no_gpu"}
ENDED = r"accel serve: the GPU has failed: .+\n"


class Served:
    """A program by a server of its own, and another client behind it; both have ended."""

    def __init__(self, program, arguments, **faults):
        with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
            path = Path(folder, "report")
            server = Server(Path(folder), "--chunked=0", TESTGPU_REPORT=str(path), **faults)
            client = server.client(ACCEL_POLICY="gpu", ACCEL_LOG="1")
            try:
                self.done = start(program, *arguments, env=client, timeout=120)
                self.other = start("steps", "dgemm:40:2", env=client, timeout=120)
                server.process.terminate()
                self.said = server.process.communicate(timeout=60)[1]
            finally:
                server.kill()
            self.status = server.process.returncode
            self.report = Report(path.read_text() if path.exists() else "")


def judge(fault, run, expected):
    def wrong(why):
        return Outcome(fault, "wrong", f"{fault.plant}: {why} (status {run.done.returncode}) {run.done.stdout[-200:]} {run.done.stderr[-300:]} | {run.said}", 0)

    if not ended_well(run.done, expected):
        return wrong("not the right results")
    if run.other.returncode != 0 or " 0 wrong" not in run.other.stdout:
        return wrong("not the other client's right results")
    # A library's failure is the call's, not the device's, unless it makes the handle useless.
    may_end = not fault.plant.startswith(("cublas", "cusolver")) or "Create" in fault.plant or "SetStream" in fault.plant
    if (run.status, run.said) != (0, "") and not (may_end and run.status == 1 and re.fullmatch(ENDED, run.said)):
        return wrong(f"the server has ended with {run.status}")
    if not run.report.text or run.report.misuse:
        return wrong(f"misuse of CUDA: {run.report.misuse[:2]}")
    try:
        lines = parse_log(run.done.stderr)
    except ValueError as error:
        return wrong(error)
    if run.report.fired == 0:
        return Outcome(fault, "missed", fault.plant, 0)
    if {line["why"] for line in lines} - REASONS:
        return wrong("another reason")
    if len(set(said(run.done))) < len(said(run.done)):
        return wrong("a message comes twice")
    left = [line for line in lines if line["why"] in ("error", "no_memory", "no_gpu")]
    return Outcome(fault, "recovered" if left or run.said else "absorbed", "", 0)


def check_served(op, program, arguments, last_line=False):
    """arguments: without the seed of the draw, the first of which a call runs on the GPU."""
    for seed in SEEDS:
        words = [*arguments, "-s", seed, "-r", turn(op)]
        baseline = Served(program, words)
        assert baseline.said == ""
        if on_gpu(of_routine(parse_log(baseline.done.stderr), turn(op))):
            break
    else:
        pytest.fail("no such call runs on the GPU")
    expected = baseline.done.stdout.splitlines()[-1] if last_line else ""

    def attempt(fault):
        try:
            return judge(fault, Served(program, words, TESTGPU_FAIL=fault.plant), expected)
        except AssertionError as error: # a call of its start
            return Outcome(fault, "absorbed" if "accel serve: no GPU: " in str(error) else "wrong", f"{fault.plant}: {error}", 0)
        except Exception as error: # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)

    check(f"served {op.name}", sweep(list(plan(baseline.report, MOST)), attempt))


@of(BLAS)
def test_blas(op):
    check_served(op, "random_calls", [*BLAS_OF, "-c", 3, "-n", 24])


@of(LAPACK)
def test_lapack(op):
    if not on_gpu(of_first_calls(op)): # nothing to fail
        record(f"served {op.name}", [])
        pytest.skip("it is not for the GPU")
    if op.name == "laswp":
        pytest.skip("a server leaves it to its clients: docs/serve.md")
    check_served(op, "random_lapack", [*LAPACK_OF, "-c", 1, "-n", 20], last_line=True)
