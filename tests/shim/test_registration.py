#!/usr/bin/python3 -B
"""What R gets where a package registers functions: its own functions, and all others as they are in the package's table. The R is one that only the package is
linked to, or none."""

from lib.programs import NO_GPU, PLAIN, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

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
MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": TEST_GPU}
NAMES = ["of another library", "of none", "within a function", "in no function", "no function of packages", "its own"]

tap = Tap()
for mode, env in {"without libaccel": PLAIN, **MODES}.items():
    done = start("/usr/bin/python3", "-B", "-c", CALLS, TESTS / "libpackage.so", "package_register", "package_register_older", env=env)
    expected = "".join(f"{line}\n" for line in ["R: 46", *(f"{name}: as it was" for name in NAMES), "R: 41", "older: as it was"])
    tap.ok((done.returncode, done.stdout) == (0, expected), f"a package that has none of these functions, {mode}", done.returncode, done.stdout, done.stderr)
    done = start("/usr/bin/python3", "-B", "-c", OWN, TESTS / "libpackage_registry.so", TESTS / "libregistered.so", env=env)
    whose, found = ("libaccel.so", "None") if mode in ("no GPU", "test GPU") else ("libregistered.so", "VR_knn")
    tap.ok((done.returncode, done.stdout) == (0, f"1 {whose} {found}\n42\n"), f"its own function, {mode}: it answers", done.returncode, done.stdout, done.stderr)
    if env:
        done = start("/usr/bin/python3", "-B", "-c", ALONE, env=env)
        tap.ok((done.returncode, done.stdout) == (0, "0\n"), f"without an R, {mode}: nothing is registered", done.returncode, done.stdout, done.stderr)
tap.done()
