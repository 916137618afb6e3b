#!/usr/bin/python3 -B
"""What libaccel adds to a forwarded call, in instructions, for every exported name: at most 20, however its original is
found, and one jump with ACCEL=0."""

from common import BUILD, NO_GPU, SHIM, TESTS, Tap, start

tap = Tap()
LIMIT = 20
PROVIDER = TESTS / "libentry_provider.so"
# Opened by an interpreter with RTLD_LOCAL, as extension modules are; the provider comes with it or was there before.
OPEN = f"import ctypes; ctypes.CDLL('{TESTS / 'libentry_cost.so'}').entry_cost(%d, %d, %d)"
# All calls of a run come from one place: as many call sites as a program has, no more, so that few share a place in the
# table of call sites.
PARTS = 12
GLOBAL = {"LD_PRELOAD": f"{BUILD / 'libaccel.so'} {PROVIDER}"}
CONFIGURATIONS = {
    "one BLAS for all callers": ({**NO_GPU, **GLOBAL}, 0, LIMIT),
    "each caller its own BLAS": (NO_GPU, 0, LIMIT),
    "function pointers from dlsym": ({**NO_GPU, **GLOBAL}, 1, LIMIT),
    "ACCEL=0, one BLAS": ({**SHIM, **GLOBAL, "ACCEL": "0"}, 0, 1),
    "ACCEL=0, each its own": ({**SHIM, "ACCEL": "0"}, 0, LIMIT),
}
for name, (env, bound, limit) in CONFIGURATIONS.items():
    counts, errors = {}, []
    for part in range(PARTS):
        done = start("/usr/bin/python3", "-c", OPEN % (bound, part, PARTS), env=env)
        errors += [done.stderr] if done.returncode or done.stderr else []
        counts.update((symbol, int(n)) for symbol, n in (line.split() for line in done.stdout.splitlines()))
    worst = max(counts, key=counts.get, default=None)
    tap.ok(not errors and len(counts) > 300 and 0 < min(counts.values()) and counts[worst] <= limit,
           f"{name}: at most {counts.get(worst)} instructions added, of {len(counts)} names",
           *errors, *[f"{symbol}: {n}" for symbol, n in counts.items() if not 0 < n <= limit][:20])
tap.done()
