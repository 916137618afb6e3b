#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What comes in between a call: handlers that call BLAS themselves, on the thread's stack and on alternate ones; and
threads that are cancelled, at a point of their own and at any time. With the reference BLAS, which itself can be
interrupted like that, and with GSL, whose calls a handler also leaves."""

import statistics

import pytest

from lib.log import parse_log
from lib.programs import LOG, LONG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, UNDER_TSAN, start

COUNT = 3000 if LONG else 120
REFERENCE = {
    "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64", "TESTGPU_DELAY_US": "0"
}
WHAT = {
    "handler": "a handler that calls BLAS", "above": "the same on an alternate stack above the thread's",
    "below": "and below it", "deferred": "pthread_cancel, deferred", "async": "pthread_cancel at any time"
}
MODES = {"without libaccel": {}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU,
         "test GPU, logged": {**TEST_GPU, "ACCEL_LOG": "2"}}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", WHAT, ids=WHAT.get)
def test_between_a_call(what, mode, tmp_path):
    if UNDER_TSAN and what == "async":
        pytest.skip("ThreadSanitizer's runtime may not be cancelled at any time")
    log = tmp_path / "log"
    done = start("interrupts", what, COUNT,
                 env={**MODES[mode], **REFERENCE, **({"ACCEL_LOG_FILE": str(log)} if "logged" in mode else {})})
    assert (done.returncode, done.stdout) == (0, f"{COUNT} times, 0 wrong\n"), done.stderr
    if "logged" in mode:
        lines = [line for line in parse_log(log.read_text()) if "why" in line]
        assert len(lines) >= COUNT // 2, "the log is whole"
        if what == "async":
            # Threads that have ended within a call do not count as computing: these would be many
            # times what a core does alone.
            estimates = [float(line["est_cpu_ms"]) for line in lines if "est_cpu_ms" in line and line["m"] == "48"]
            assert estimates[-1] < 10 * statistics.median(estimates)


# ---- GSL ----

OF_GSL = {"deferred": WHAT["deferred"], "async": WHAT["async"], "jump": "a handler that leaves by siglongjmp"}
GSL_MODES = {"without libaccel": {}, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU}
# Out of a driver or libaccel, a jump would leave locks held.
CANCEL_MODES = {"no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU, "test GPU, logged": {**TEST_GPU, **LOG}}


@pytest.mark.parametrize("what, mode", [(what, mode) for what in OF_GSL
                                        for mode in (*GSL_MODES, *(CANCEL_MODES if what != "jump" else {}))],
                         ids=lambda word: OF_GSL.get(word, word))
def test_between_a_call_of_gsl(what, mode, tmp_path):
    if UNDER_TSAN and what != "deferred":
        pytest.skip("ThreadSanitizer's runtime may not be left at any time")
    log, count = tmp_path / "log", COUNT // 3
    done = start("gsl_interrupts", what, count,
                 env={**{**GSL_MODES, **CANCEL_MODES}[mode], **REFERENCE, "ACCEL_LOG_FILE": str(log)})
    assert (done.returncode, done.stdout) == (0, f"{count} times, 0 wrong\n"), done.stderr
    if "logged" in mode:
        calls = [(line["sym"], line["ran"]) for line in parse_log(log.read_text())
                 if "why" in line and line["sym"].startswith("gsl")]
        assert len(calls) > count
        assert set(calls) == {("gsl_linalg_cholesky_decomp1", "gpu0" if "test GPU" in mode else "cpu")}


def test_product_below_what_was_a_factorisations_stack_is_the_programs_own():
    """A call that has ended is around no later one, also where its stack is as it was."""
    path = f"/usr/lib/x86_64-linux-gnu/lapack:{REFERENCE['LD_LIBRARY_PATH']}"
    done = start("nested", "untouched", env={**NO_GPU, "ACCEL_LOG": "2", "LD_LIBRARY_PATH": path})
    lines = parse_log(done.stderr)
    assert done.returncode == 0, done.stderr[-500:]
    assert {line.get("depth") for line in lines if line["sym"] == "dtrsm_"} == {"1"}
    assert {line["m"]: line.get("depth", "0") for line in lines
            if line["sym"] == "dgemm_" and line["m"] in ("5", "7")} == {"5": "0", "7": "0"}


# ---- A handler, while the thread that it has interrupted holds a lock of libaccel's ----

BLAS = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3"


@pytest.fixture(params=({**SHIM, "ACCEL": "0"}, NO_GPU, {**NO_GPU, **LOG}, TEST_GPU),
                ids=("ACCEL=0", "no GPU", "no GPU, logged", "test GPU"))
def unlocks(request):
    """A signal comes before each lock is given back."""
    if RUNTIME:
        pytest.skip("a sanitizer's locks are its own")
    return {**request.param, **REFERENCE, "LD_PRELOAD": f"{TESTS / 'libunlocks.so'}:{request.param['LD_PRELOAD']}"}


def test_handler_that_calls_a_name_for_the_first_time(unlocks):
    """Nothing waits for itself."""
    done = start("handled_calls", TESTS / "libcaller_none.so", env=unlocks)
    assert (done.returncode, done.stdout) == (0, "right, 8 by the handler\n"), done.stderr[-500:]


@pytest.fixture(scope="module")
def handled_closes():
    """What the program prints of its handler, which closes libraries and looks names up then, without libaccel."""
    done = start("handled_closes", TESTS, BLAS, env=REFERENCE)
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stdout
    return done.stdout


def test_handler_that_closes_libraries(unlocks, handled_closes):
    done = start("handled_closes", TESTS, BLAS, env=unlocks)
    assert (done.returncode, done.stdout) == (0, handled_closes), done.stderr[-500:]
    assert "no signal came" not in done.stderr
