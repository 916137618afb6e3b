#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What libaccel adds to a forwarded call, in instructions, for every exported name: at most 20, however its original
is found, and one jump with ACCEL=0 or on a machine without a GPU."""

import glob
import re

import pytest

from lib.programs import BUILD, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start

LIMIT = 20
PROVIDER = TESTS / "libentry_provider.so"
# Opened by an interpreter with RTLD_LOCAL, as extension modules are; the provider comes with it or
# was there before.
OPEN = f"import ctypes; ctypes.CDLL('{TESTS / 'libentry_cost.so'}').%s"
GLOBAL = {"LD_PRELOAD": f"{BUILD / 'libaccel.so'} {PROVIDER}"}
GPU = {**TEST_GPU, "ACCEL_POLICY": "auto"}
HAS_GPU = bool(glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg"))
# How functions are bound, and the most instructions.
CONFIGURATIONS = {
    "one BLAS for all callers": ({**GPU, **GLOBAL}, 0, LIMIT),
    "each caller its own BLAS": (GPU, 0, LIMIT),
    "function pointers from dlsym": ({**GPU, **GLOBAL}, 1, LIMIT),
    "no GPU, each its own": (NO_GPU, 0, LIMIT),
    "ACCEL=0, one BLAS": ({**SHIM, **GLOBAL, "ACCEL": "0"}, 0, 1),
    "ACCEL=0, each its own": ({**SHIM, "ACCEL": "0"}, 0, LIMIT),
    "no GPU, one BLAS": ({**NO_GPU, **GLOBAL}, 0, 1),
    "no GPU, function pointers from dlsym": ({**NO_GPU, **GLOBAL}, 1, 1),
}


def check(what, env, limit, least):
    """At most so many instructions are added, at each of so many places."""
    done = start("/usr/bin/python3", "-c", OPEN % what, env=env)
    counts = {place: int(n) for place, n in (line.split() for line in done.stdout.splitlines())}
    assert (done.returncode, done.stderr) == (0, "")
    assert len(counts) >= least
    assert not {place: n for place, n in counts.items() if not 0 < n <= limit}


@pytest.fixture(params=CONFIGURATIONS)
def configuration(request):
    if HAS_GPU and request.param in ("no GPU, one BLAS", "no GPU, function pointers from dlsym"):
        pytest.skip("this machine has a GPU's device files")
    return CONFIGURATIONS[request.param]


def test_all_names_called_from_one_place(configuration):
    env, bound, limit = configuration
    check(f"entry_cost({bound})", env, limit, 300)


def test_many_places_that_call_one(configuration):
    env, _, limit = configuration
    check("call_site_cost()", env, limit, 256)


# ---- A function of another library, by the count in its struct; at the last of 65 places a pointer
# from dlsym ----

TOY = BUILD / "tests/toy"
TOY_GLOBAL = {"LD_PRELOAD": f"{TOY / 'libaccel.so'} {TOY / '1/libtoy.so'}"}
TOY_ALONE = {"LD_PRELOAD": str(TOY / "libaccel.so")}
# Each its own: two more than of BLAS, as the function may take any number of arguments (see
# jump_site in entry.S).
FOUND = 15
SMALL_CALLS = {"one library for all callers": ({**GPU, **TOY_GLOBAL}, 65, 11),
               "each caller its own": ({**GPU, **TOY_ALONE}, 64, LIMIT),
               "no GPU, each its own": ({**NO_GPU, **TOY_ALONE}, 64, FOUND),
               "ACCEL=0, one library": ({**TOY_GLOBAL, "ACCEL": "0"}, 65, 1),
               "ACCEL=0, each its own": ({**TOY_ALONE, "ACCEL": "0"}, 64, FOUND),
               "ACCEL_ML=0, one library": ({**GPU, **TOY_GLOBAL, "ACCEL_ML": "0"}, 65, 1),
               "ACCEL_ML=0, each its own": ({**GPU, **TOY_ALONE, "ACCEL_ML": "0"}, 64, FOUND)}


@pytest.fixture(scope="module")
def small():
    """The most features of a small call."""
    return int(re.search(r"FLOAT64, (\d+)", (ROOT / "tests/toy/functions.def").read_text())[1]) - 1


def toy_counts(env, *calls):
    """The instructions at each place, for each of `calls`, a library and the features of the model that it calls
    with."""
    everywhere = int("libtoy" in env["LD_PRELOAD"])
    code = "import ctypes\n" + "".join(f"ctypes.CDLL('{TOY / library}').toy_cost({features}, {everywhere})\nprint()\n"
                                       for library, features in calls)
    done = start("/usr/bin/python3", "-uc", code, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return [[int(line.split()[1]) for line in block.splitlines()] for block in done.stdout.split("\n\n")[:-1]]


@pytest.mark.parametrize("name", SMALL_CALLS)
def test_small_call_of_another_library(name, small):
    env, least, most = SMALL_CALLS[name]
    counts, = toy_counts(env, ("libtoy_cost.so", small))
    # Of a library that is turned off, dlsym finds the function itself.
    seen = counts[:64] if "=0" in name else counts
    assert len(counts) == least
    assert 0 < min(seen)
    assert max(counts) <= most


@pytest.mark.parametrize("name", ("one library for all callers", "each caller its own"))
def test_call_that_is_not_small_is_looked_at(name, small):
    counts, = toy_counts(SMALL_CALLS[name][0], ("libtoy_cost.so", small + 1))
    assert len(counts) >= 64
    assert min(counts) > LIMIT


def test_of_another_layout_than_the_first_ones_every_call_is_looked_at(small):
    one, other, again = toy_counts({**GPU, **TOY_ALONE}, ("libtoy_cost.so", small), ("libtoy102_cost.so", small),
                                   ("libtoy_cost.so", small))
    assert max(one + again) <= LIMIT
    assert min(other) > LIMIT


XGBOOST = {"LD_PRELOAD": f"{BUILD / 'libaccel.so'} {TESTS / 'libxgboost.so'}"}


@pytest.mark.parametrize("env", ({**GPU, **XGBOOST}, {**XGBOOST, "ACCEL": "0", "ACCEL_ML": "xgboost"}),
                         ids=("which ACCEL_ML does not name", "ACCEL=0"))
def test_xgboost(env):
    check("guided_cost()", env, 1, 1)
