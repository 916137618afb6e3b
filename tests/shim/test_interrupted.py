#!/usr/bin/python3 -B
"""What comes in between a call: handlers that call BLAS themselves, on the thread's stack and on alternate ones; and threads that are
cancelled, at a point of their own and at any time. With the reference BLAS, which itself can be interrupted like that, and with GSL, whose calls a handler
also leaves."""

import statistics
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import LOG, LONG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, UNDER_TSAN, start
from lib.tap import Tap

tap = Tap()
COUNT = 3000 if LONG else 120
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64", "TESTGPU_DELAY_US": "0"}
WHAT = {"handler": "a handler that calls BLAS", "above": "the same on an alternate stack above the thread's", "below": "and below it",
        "deferred": "pthread_cancel, deferred", "async": "pthread_cancel at any time"}

with tempfile.TemporaryDirectory() as folder:
    log = folder + "/log"
    for what, name in WHAT.items():
        if UNDER_TSAN and what == "async":
            tap.skip(name, "ThreadSanitizer's runtime may not be cancelled at any time")
            continue
        for mode, env in {"without libaccel": {}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG, "ACCEL_LOG_FILE": log}, "test GPU": TEST_GPU,
                          "test GPU, logged": {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": log}}.items():
            Path(log).unlink(missing_ok=True)
            done = start("interrupts", what, COUNT, env={**env, **REFERENCE}, timeout=300)
            tap.ok(done.returncode == 0 and f"{COUNT} times, 0 wrong\n" == done.stdout, f"{name}, {mode}", done.returncode, done.stdout, done.stderr)
            if "logged" not in mode:
                continue
            lines = [line for line in parse_log(Path(log).read_text()) if "why" in line]
            tap.ok(len(lines) >= COUNT // 2, f"{name}, {mode}: the log is whole", len(lines))
            if what != "async":
                continue
            # Threads that have ended within a call do not count as computing: these would be many
            # times what a core does alone.
            estimates = [float(line["est_cpu_ms"]) for line in lines if "est_cpu_ms" in line and line["m"] == "48"]
            tap.ok(estimates[-1] < 10 * statistics.median(estimates), f"{name}, {mode}: nor are they thought to compute on",
                   estimates[-1], statistics.median(estimates))

# ---- GSL ----

    for what, name in {"deferred": WHAT["deferred"], "async": WHAT["async"], "jump": "a handler that leaves by siglongjmp"}.items():
        if UNDER_TSAN and what != "deferred":
            tap.skip(f"GSL, {name}", "ThreadSanitizer's runtime may not be left at any time")
            continue
        modes = {"without libaccel": {}, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU}
        if what != "jump":  # out of a driver or libaccel, it would leave locks held
            modes |= {"no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU, "test GPU, logged": {**TEST_GPU, **LOG}}
        for mode, env in modes.items():
            Path(log).unlink(missing_ok=True)
            done = start("gsl_interrupts", what, COUNT // 3, env={**env, **REFERENCE, "ACCEL_LOG_FILE": log}, timeout=300)
            tap.ok(done.returncode == 0 and f"{COUNT // 3} times, 0 wrong\n" == done.stdout, f"GSL, {name}, {mode}", done.returncode, done.stdout, done.stderr)
            if "logged" in mode:
                calls = [(line["sym"], line["ran"]) for line in parse_log(Path(log).read_text()) if "why" in line and line["sym"].startswith("gsl")]
                ran = "gpu0" if "test GPU" in mode else "cpu"
                tap.ok(len(calls) > COUNT // 3 and set(calls) == {("gsl_linalg_cholesky_decomp1", ran)}, f"GSL, {name}, {mode}: {len(calls)} calls: {ran}", *set(calls))

# ---- A call that has ended is around no later one, also where its stack is as it was ----

done = start("nested", "untouched", env={**NO_GPU, "ACCEL_LOG": "2", "LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/lapack:{REFERENCE['LD_LIBRARY_PATH']}"})
lines = parse_log(done.stderr)
products = {line["m"]: line.get("depth", "0") for line in lines if line["sym"] == "dgemm_" and line["m"] in ("5", "7")}
inner = {line.get("depth") for line in lines if line["sym"] == "dtrsm_"}
tap.ok(done.returncode == 0 and inner == {"1"} and products == {"5": "0", "7": "0"}, "a product below what was a factorisation's stack is the program's own",
       done.returncode, inner, products, done.stderr[-500:])

# ---- A handler that calls a name for the first time, while the thread that it has interrupted
# holds a lock of libaccel's ----

if RUNTIME:
    tap.skip("a signal before each lock is given back", "a sanitizer's locks are its own")
for mode, env in {} if RUNTIME else {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU}.items():
    preload = f"{TESTS / 'libunlocks.so'}:{env['LD_PRELOAD']}"
    done = start("handled_calls", TESTS / "libcaller_none.so", env={**env, **REFERENCE, "LD_PRELOAD": preload})
    tap.ok((done.returncode, done.stdout) == (0, "right, 8 by the handler\n"), f"a signal before each lock is given back, {mode}: nothing waits for itself",
           done.returncode, done.stdout, done.stderr[-500:])

# ---- One that closes libraries and looks names up then ----

BLAS = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3"
native = start("handled_closes", TESTS, BLAS, env=REFERENCE)
tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, "a handler that closes libraries: right without libaccel", native.stdout, native.stderr)
for mode, env in {} if RUNTIME else {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU}.items():
    preload = f"{TESTS / 'libunlocks.so'}:{env['LD_PRELOAD']}"
    done = start("handled_closes", TESTS, BLAS, env={**env, **REFERENCE, "LD_PRELOAD": preload})
    tap.ok((done.returncode, done.stdout) == (0, native.stdout) and "no signal came" not in done.stderr, f"a handler that closes libraries, {mode}: the same",
           done.returncode, done.stdout, done.stderr[-500:], "---", native.stdout)
tap.done()
