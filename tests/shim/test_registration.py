#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What R gets where a package registers functions: its own functions, and all others as they are in the package's
table. The R is one that only the package is linked to, or none."""

import pytest

from lib.programs import NO_GPU, PLAIN, SHIM, TEST_GPU, TESTS, start

CALLS = """
import ctypes, sys
package = ctypes.CDLL(sys.argv[1])
for call in sys.argv[2:]:
    getattr(package, call)()
"""
# Of a library that registers its own VR_knn(): whether R gets that one.
OWN = """
import ctypes, sys
r = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
class Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("arguments", ctypes.c_int), ("types", ctypes.c_void_p)]
class Info(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]
library.R_init_libregistered(None)
function = Method.in_dll(r, "registered").function
info = Info()
ctypes.CDLL(None).dladdr(ctypes.c_void_p(function), ctypes.byref(info))
print(ctypes.c_int.in_dll(r, "registered_count").value, info.path.decode().rpartition("/")[2], info.name and info.name.decode())
res = ctypes.c_int(0)
one = ctypes.byref(ctypes.c_int(1))
ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 14)(function)(*[ctypes.addressof(ctypes.c_int(1))] * 8, ctypes.addressof(res), *[ctypes.addressof(ctypes.c_int(1))] * 5)
print(res.value)
"""
ALONE = """
import ctypes
ours = ctypes.CDLL(None).R_registerRoutines
print(ours(None, None, None, None, None))
"""
MODES = {"without libaccel": PLAIN, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": TEST_GPU}
NAMES = ["of another library", "of none", "within a function", "in no function", "no function of packages", "its own"]


def run(program, *words, mode):
    return start("/usr/bin/python3", "-B", "-c", program, *words, env=MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_package_that_has_none_of_these_functions(mode):
    done = run(CALLS, TESTS / "libpackage.so", "package_register", "package_register_older", mode=mode)
    expected = ["R: 46", *(f"{name}: as it was" for name in NAMES), "R: 41", "older: as it was"]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_its_own_function_answers(mode):
    done = run(OWN, TESTS / "libpackage_registry.so", TESTS / "libregistered.so", mode=mode)
    whose = "libaccel.so None" if mode in ("no GPU", "test GPU") else "libregistered.so VR_knn"
    assert (done.returncode, done.stdout) == (0, f"1 {whose}\n42\n"), done.stderr


@pytest.mark.parametrize("mode", ("ACCEL=0", "no GPU", "test GPU"))
def test_without_an_r_nothing_is_registered(mode):
    done = run(ALONE, mode=mode)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
