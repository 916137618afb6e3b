#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A thread waits in a call for CUDA's start: what the program does meanwhile, to the thread or to itself, is as without
libaccel. TEST_LONG=1 takes each of it many times."""

import re

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes, said
from lib.programs import LOG, LONG, RUNTIME, TESTS, UNDER_TSAN, start

TIMES = 20 if LONG else 2
GPU, FORKED = ("gpu0", "faster"), ("cpu", "forked")
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas"}
forks = pytest.mark.skipif(bool(RUNTIME),
                           reason="a child that is forked beside other threads finds AddressSanitizer's allocator "
                                  "locked, and ThreadSanitizer lost")
any_time = pytest.mark.skipif(UNDER_TSAN, reason="ThreadSanitizer's runtime may not be left at any time")
ends = pytest.mark.skipif(UNDER_TSAN, reason="ThreadSanitizer takes a thread that is not joined then for a leak")


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    """Environments in which a call waits for so long at most."""
    folder = tmp_path_factory.mktemp("calibrations")

    def env(seconds=10, **more):
        # OpenBLAS's threads are not there in a child that it does not know of: there is the
        # reference library.
        calibrate(folder / "model", keys(folder, {name: more[name] for name in REFERENCE if name in more}),
                  {10: 100000, 1.8: 9000}[seconds], 1)
        return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_MODEL": str(folder / "model"), **more}

    return env


def took(done, what):
    """The milliseconds of the event, or of the process's end."""
    return float(re.search(rf"^{what} after (\d+) ms$", done.stderr, re.M)[1])


def check(what, outcome, calls, env, start_ms=700, over_ms=60000, end_ms=2500):
    """calls: None, where it is up to the moment; else all of them."""
    for _ in range(TIMES):
        done = start("waits", what, env={**env, "TESTGPU_START_MS": str(start_ms)}, timeout=300)
        assert done.returncode == 0, done.stderr[-600:]
        assert done.stdout == f"{outcome}, 0 wrong\n"
        # Without those of handlers that came after the call's end.
        assert calls is None or sorted(outcomes(line for line in lines_for(done) if line["why"] != "small")) == calls
        assert not said(done)
        assert took(done, "over") <= over_ms
        assert took(done, "end") <= end_ms


def test_16_threads_wait_at_once(waits):
    check("crowd", "returned", 16 * [GPU], waits())


def test_16_threads_wait_at_once_and_the_clock_is_put_back(waits):
    check("crowd", "returned", 16 * [GPU], waits(LD_PRELOAD=f"{TESTS / 'libset_back.so'}:{AUTO['LD_PRELOAD']}"))


def test_2000_handlers(waits):
    check("signals", "returned", [GPU], waits())


def test_2000_handlers_that_compute(waits):
    check("handler", "returned", [GPU], waits())


def test_the_process_is_stopped_for_longer_than_the_call_waits(waits):
    check("stop", "returned", [GPU], waits(1.8), start_ms=400)


def test_pthread_cancel_blas_is_no_point_for_that(waits):
    check("deferred", "cancelled", [GPU], waits())


@forks
def test_a_fork_whose_child_computes(waits):
    check("fork", "returned", [FORKED, GPU], waits())


@forks
def test_a_handler_forks_the_child_does_not_wait_on(waits):
    check("forks", "returned", [FORKED, GPU], waits(**REFERENCE), start_ms=2000)


@forks
def test_a_handler_forks_by__fork(waits):
    check("_Forks", "returned", [FORKED, GPU], waits(**REFERENCE), start_ms=2000)


@any_time
def test_pthread_cancel_at_any_time_the_thread_ends_at_once(waits):
    check("async", "cancelled", None, waits(), start_ms=2800, over_ms=1800, end_ms=60000)


@any_time
def test_pthread_cancel_at_any_time_exit_does_not_wait_for_it(waits):
    check("async", "cancelled", None, waits(), start_ms=400)


@any_time
def test_a_handler_leaves_the_call(waits):
    """The thread goes on as before, and can be cancelled."""
    check("jump", "cancelled", [GPU], waits())


# ---- The process ends ----


@ends
@pytest.mark.parametrize("how", ["return", "exit"])
@pytest.mark.parametrize("start_ms", [700, 8000])
def test_the_process_ends(start_ms, how, waits):
    for _ in range(TIMES // 2):
        done = start("steps", "beside:300:1", "sleep:200", f"end:{how}",
                     env=waits(ACCEL_LOG="0", TESTGPU_START_MS=str(start_ms)), timeout=300)
        assert done.returncode == 7
        # exit() gives up after 3 s.
        assert not [line for line in done.stderr.splitlines() if "what=exit_while_called" not in line
                    or start_ms < 3000]


@ends
def test_a_handler_calls_exit(waits):
    for _ in range(TIMES):
        done = start("waits", "quit", env=waits(TESTGPU_START_MS="700"), timeout=300)
        assert done.returncode == 0, done.stderr
        assert not lines_for(done)
        assert not said(done)
        assert took(done, "end") <= 2500


@ends
def test_a_handler_on_a_stack_of_its_own(waits):
    for _ in range(TIMES):
        done = start("waits", "alternate", env=waits(TESTGPU_START_MS="400"), timeout=300)
        assert done.returncode == 0, done.stderr
        assert not said(done)
