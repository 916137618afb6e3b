#!/usr/bin/python3 -B
"""Sizes beyond 32 bits, of ILP64 libraries under plain names and under 64_ names: in the log in full, and nothing cut
on the way to the original, which must return at once: another size is 0."""

from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, PLAIN, TEST_GPU, start
from lib.tap import Tap

CALLS = """
import ctypes, sys
library, prefix, suffix = sys.argv[1:]
blas = ctypes.CDLL(library)
big, none, one = 2**32 + 7, 0, 1
real = lambda z: ctypes.byref(ctypes.c_double(z))
size = lambda n: ctypes.byref(ctypes.c_int64(n))
flag = lambda c: ctypes.c_char_p(c.encode())
memory = (ctypes.c_double * 4)(1, 2, 3, 4)
def call(name, *arguments):
    getattr(blas, prefix + name + suffix)(*arguments)
call("dgemm_", flag("N"), flag("N"), size(big), size(none), size(one), real(1), memory, size(big), memory, size(one),
     real(0), memory, size(big), 1, 1)
call("dsyrk_", flag("U"), flag("T"), size(none), size(big), real(1), memory, size(big), real(0), memory, size(one), 1, 1)
call("dgemv_", flag("N"), size(none), size(big), real(1), memory, size(one), memory, size(one), real(0), memory,
     size(one), 1)
long, value = ctypes.c_int64, ctypes.c_double
call("cblas_dgemm", 101, 111, 111, long(none), long(big), long(one), value(1), memory, long(one), memory, long(big),
     value(0), memory, long(big))
call("cblas_dger", 101, long(big), long(none), value(1), memory, long(one), memory, long(one), memory, long(one))
print(list(memory))
"""
EXPECTED = [("dgemm_", "m"), ("dsyrk_", "k"), ("dgemv_", "n"), ("cblas_dgemm", "n"), ("cblas_dger", "m")]
wheel, = (BUILD / "venv/lib").glob("python3*/site-packages/numpy.libs/libscipy_openblas64_-*")
LIBRARIES = {"plain names, OpenBLAS": ("/usr/lib/x86_64-linux-gnu/openblas64-pthread/libblas64.so.3", "", ""),
             "plain names, reference": ("/usr/lib/x86_64-linux-gnu/blas64/libblas64.so.3", "", ""),
             "64_ names": (wheel, "scipy_", "64_")}

tap = Tap()
for what, (library, prefix, suffix) in LIBRARIES.items():
    for mode, env in {"without libaccel": PLAIN, "no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
        done = start("/usr/bin/python3", "-c", CALLS, library, prefix, suffix, env={**env, **LOG})
        tap.ok(done.returncode == 0 and done.stdout == "[1.0, 2.0, 3.0, 4.0]\n", f"{what}, {mode}", done.stdout,
               done.stderr[-400:])
        if env is PLAIN:
            continue
        seen = [(line["sym"], next((key for key in "mnk" if line.get(key) == str(2**32 + 7)), None))
                for line in lines_for(done, ran="cpu", why="empty")]
        tap.ok(seen == [(prefix + name + suffix, key) for name, key in EXPECTED], f"{what}, {mode}: sizes in full", seen,
               done.stderr[-600:])
tap.done()
