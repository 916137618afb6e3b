#!/usr/bin/python3 -B
"""What libaccel adds to a forwarded call, in instructions, for every exported name: at most 20, however its original is
found, and one jump with ACCEL=0 or on a machine without a GPU."""

import glob
import re

from lib.programs import BUILD, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
LIMIT = 20
PROVIDER = TESTS / "libentry_provider.so"
# Opened by an interpreter with RTLD_LOCAL, as extension modules are; the provider comes with it or
# was there before.
OPEN = f"import ctypes; ctypes.CDLL('{TESTS / 'libentry_cost.so'}').%s"
GLOBAL = {"LD_PRELOAD": f"{BUILD / 'libaccel.so'} {PROVIDER}"}
GPU = {**TEST_GPU, "ACCEL_POLICY": "auto"}
CONFIGURATIONS = {
    "one BLAS for all callers": ({**GPU, **GLOBAL}, 0, LIMIT),
    "each caller its own BLAS": (GPU, 0, LIMIT),
    "function pointers from dlsym": ({**GPU, **GLOBAL}, 1, LIMIT),
    "no GPU, each its own": (NO_GPU, 0, LIMIT),
    "ACCEL=0, one BLAS": ({**SHIM, **GLOBAL, "ACCEL": "0"}, 0, 1),
    "ACCEL=0, each its own": ({**SHIM, "ACCEL": "0"}, 0, LIMIT),
}


def count(name, what, env, limit, least):
    done = start("/usr/bin/python3", "-c", OPEN % what, env=env)
    counts = {place: int(n) for place, n in (line.split() for line in done.stdout.splitlines())}
    tap.ok(done.returncode == 0 and not done.stderr and len(counts) >= least and 0 < min(counts.values())
           and max(counts.values()) <= limit,
           f"{name}: at most {max(counts.values(), default=None)} instructions added, of {len(counts)}",
           done.stderr, *[f"{place}: {n}" for place, n in counts.items() if not 0 < n <= limit][:20])


if glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg"):
    tap.note("no GPU, one BLAS: left out, this machine has a GPU's device files")
else:
    CONFIGURATIONS["no GPU, one BLAS"] = ({**NO_GPU, **GLOBAL}, 0, 1)
    CONFIGURATIONS["no GPU, function pointers from dlsym"] = ({**NO_GPU, **GLOBAL}, 1, 1)
for name, (env, bound, limit) in CONFIGURATIONS.items():
    # All calls come from one place.
    count(f"{name}, all names", f"entry_cost({bound})", env, limit, 300)
    count(f"{name}, many places that call one", "call_site_cost()", env, limit, 256)

# A function of another library, by the count in its struct; at the last of 65 places a pointer from
# dlsym.
TOY = BUILD / "tests/toy"
TOY_GLOBAL = {"LD_PRELOAD": f"{TOY / 'libaccel.so'} {TOY / '1/libtoy.so'}"}
TOY_ALONE = {"LD_PRELOAD": str(TOY / "libaccel.so")}
SMALL = int(re.search(r"FLOAT64, (\d+)", (ROOT / "tests/toy/functions.def").read_text())[1]) - 1


def toy_counts(env, *calls):
    """The instructions at each place, for each of `calls`, a library and the features of the model that it calls with."""
    everywhere = int("libtoy" in env["LD_PRELOAD"])
    code = "import ctypes\n" + "".join(f"ctypes.CDLL('{TOY / library}').toy_cost({features}, {everywhere})\nprint()\n" for library, features in calls)
    done = start("/usr/bin/python3", "-uc", code, env=env)
    tap.ok(done.returncode == 0 and not done.stderr, f"{[features for _, features in calls]}: called", done.stderr)
    return [[int(line.split()[1]) for line in block.splitlines()] for block in done.stdout.split("\n\n")[:-1]]


# Each its own: two more than of BLAS, as the function may take any number of arguments (see
# jump_site in entry.S).
FOUND = 15
for name, env, least, most in (("one library for all callers", {**GPU, **TOY_GLOBAL}, 65, 11), ("each caller its own", {**GPU, **TOY_ALONE}, 64, LIMIT),
                               ("no GPU, each its own", {**NO_GPU, **TOY_ALONE}, 64, FOUND),
                               ("ACCEL=0, one library", {**TOY_GLOBAL, "ACCEL": "0"}, 65, 1), ("ACCEL=0, each its own", {**TOY_ALONE, "ACCEL": "0"}, 64, FOUND),
                               ("ACCEL_ML=0, one library", {**GPU, **TOY_GLOBAL, "ACCEL_ML": "0"}, 65, 1),
                               ("ACCEL_ML=0, each its own", {**GPU, **TOY_ALONE, "ACCEL_ML": "0"}, 64, FOUND)):
    small, = toy_counts(env, ("libtoy_cost.so", SMALL))
    seen = small[:64] if "=0" in name else small  # of a library that is turned off, dlsym finds the function itself
    tap.ok(len(small) == least and 0 < min(seen) <= max(small) <= most,
           f"a small call of another library, {name}: at most {max(small, default=None)} instructions added", small)
for name, env in ("one library for all callers", {**GPU, **TOY_GLOBAL}), ("each caller its own", {**GPU, **TOY_ALONE}):
    large, = toy_counts(env, ("libtoy_cost.so", SMALL + 1))
    tap.ok(len(large) >= 64 and min(large) > LIMIT, f"one that is not small is looked at, {name}", large)
one, other, again = toy_counts({**GPU, **TOY_ALONE}, ("libtoy_cost.so", SMALL), ("libtoy102_cost.so", SMALL), ("libtoy_cost.so", SMALL))
tap.ok(max(one + again) <= LIMIT < min(other), "of another layout than the first one's, every call is looked at", one, other, again)
XGBOOST = {"LD_PRELOAD": f"{BUILD / 'libaccel.so'} {TESTS / 'libxgboost.so'}"}
count("XGBoost, which ACCEL_ML does not name", "guided_cost()", {**GPU, **XGBOOST}, 1, 1)
count("XGBoost, ACCEL=0", "guided_cost()", {**XGBOOST, "ACCEL": "0", "ACCEL_ML": "xgboost"}, 1, 1)
tap.done()
