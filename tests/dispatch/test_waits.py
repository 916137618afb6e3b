#!/usr/bin/python3 -B
"""A thread waits in a call for CUDA's start: what the program does meanwhile, to the thread or to itself, is as without libaccel. TEST_LONG=1 takes each
of it many times."""

import re
import tempfile

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, said
from lib.programs import LOG, LONG, RUNTIME, TESTS, UNDER_TSAN, start
from lib.tap import Tap

tap = Tap()
TIMES = 20 if LONG else 2
GPU, FORKED = ("gpu0", "faster"), ("cpu", "forked")

with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    for name, ms in {"10 s": 100000, "1.8 s": 9000}.items():  # the longest waits
        calibrate(f"{folder}/{name}", known, ms, 1)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_MODEL": folder + "/10 s"}

    def reasons(done):
        """Without those of handlers that came after the call's end."""
        return sorted((line["ran"], line["why"]) for line in lines_for(done) if line["why"] != "small")

    def took(done, what):
        """The milliseconds of the event, or of the process's end."""
        return float(re.search(rf"^{what} after (\d+) ms$", done.stderr, re.M)[1])

    def check(what, outcome, calls, name, start_ms=700, over_ms=60000, end_ms=2500, **settings):
        """calls: None, where it is up to the moment; else all of them."""
        bad = []
        for _ in range(TIMES):
            done = start("waits", what, env={**env, "TESTGPU_START_MS": str(start_ms), **settings}, timeout=300)
            if (done.returncode, done.stdout) != (0, f"{outcome}, 0 wrong\n") or calls not in (None, reasons(done)) or said(done) or \
                    took(done, "over") > over_ms or took(done, "end") > end_ms:
                bad.append((done.returncode, done.stdout, reasons(done), done.stderr[-600:]))
        tap.ok(not bad, f"{name}, {TIMES} times", len(bad), *bad[:2])

    back = {"LD_PRELOAD": f"{TESTS / 'libset_back.so'}:{env['LD_PRELOAD']}"}
    check("crowd", "returned", 16 * [GPU], "16 threads wait at once")
    check("crowd", "returned", 16 * [GPU], "and the clock is put back", **back)
    check("signals", "returned", [GPU], "2000 handlers")
    check("handler", "returned", [GPU], "2000 handlers that compute")
    check("stop", "returned", [GPU], "the process is stopped for longer than the call waits", start_ms=400, ACCEL_MODEL=folder + "/1.8 s")
    check("deferred", "cancelled", [GPU], "pthread_cancel: BLAS is no point for that")
    if RUNTIME:
        tap.skip("a fork", "a child that is forked beside other threads finds AddressSanitizer's allocator locked, and ThreadSanitizer lost")
    else:
        check("fork", "returned", [FORKED, GPU], "a fork, whose child computes")
        # OpenBLAS's threads are not there in a child that it does not know of.
        reference = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas", "ACCEL_MODEL": folder + "/reference"}
        calibrate(reference["ACCEL_MODEL"], keys(folder, {"LD_LIBRARY_PATH": reference["LD_LIBRARY_PATH"]}), 100000, 1)
        check("forks", "returned", [FORKED, GPU], "a handler forks: the child does not wait on", start_ms=2000, **reference)
        check("_Forks", "returned", [FORKED, GPU], "a handler forks by _Fork()", start_ms=2000, **reference)
    if UNDER_TSAN:
        tap.skip("pthread_cancel at any time, siglongjmp", "ThreadSanitizer's runtime may not be left at any time")
    else:
        check("async", "cancelled", None, "pthread_cancel at any time: the thread ends at once", start_ms=2800, over_ms=1800, end_ms=60000)
        check("async", "cancelled", None, "and exit() does not wait for it", start_ms=400)
        check("jump", "cancelled", [GPU], "a handler leaves the call: the thread goes on as before, and can be cancelled")

    bad = []
    if UNDER_TSAN:
        tap.skip("the process ends", "ThreadSanitizer takes a thread that is not joined then for a leak")
    for start_ms, how in [] if UNDER_TSAN else [(700, "return"), (700, "exit"), (8000, "return"), (8000, "exit")] * (TIMES // 2):
        done = start("steps", "beside:300:1", "sleep:200", f"end:{how}", env={**env, "ACCEL_LOG": "0", "TESTGPU_START_MS": str(start_ms)}, timeout=300)
        ours = [line for line in done.stderr.splitlines() if "what=exit_while_called" not in line or start_ms < 3000]  # exit() gives up after 3 s
        if done.returncode != 7 or ours:
            bad.append((start_ms, how, done.returncode, done.stdout, done.stderr))
    for _ in range(0 if UNDER_TSAN else TIMES):
        done = start("waits", "quit", env={**env, "TESTGPU_START_MS": "700"}, timeout=300)
        if done.returncode != 0 or lines_for(done) or said(done) or took(done, "end") > 2500:
            bad.append(("a handler calls exit()", done.returncode, done.stdout, done.stderr))
    for _ in range(0 if UNDER_TSAN else TIMES):
        done = start("waits", "alternate", env={**env, "TESTGPU_START_MS": "400"}, timeout=300)
        if done.returncode != 0 or said(done):
            bad.append(("a handler on a stack of its own", done.returncode, done.stdout, done.stderr))
    if not UNDER_TSAN:
        tap.ok(not bad, "the process ends", *bad[:3])
tap.done()
