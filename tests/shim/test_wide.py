#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Sizes beyond 32 bits, of ILP64 libraries under plain names and under 64_ names: in the log in full, and nothing cut
on the way to the original, which must return at once: another size is 0."""

import subprocess

import pytest

from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, PLAIN, TEST_GPU, start

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
WHEEL = "venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_-*"
LIBRARIES = {"plain names, OpenBLAS": ("/usr/lib/x86_64-linux-gnu/openblas64-pthread/libblas64.so.3", "", ""),
             "plain names, reference": ("/usr/lib/x86_64-linux-gnu/blas64/libblas64.so.3", "", ""),
             "64_ names": (None, "scipy_", "64_")}
MODES = {"without libaccel": PLAIN, "no GPU": NO_GPU, "test GPU": TEST_GPU}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("library, prefix, suffix", LIBRARIES.values(), ids=LIBRARIES)
def test_sizes_beyond_32_bits(library, prefix, suffix, mode):
    path = library or next(BUILD.glob(WHEEL))
    done = start("/usr/bin/python3", "-c", CALLS, path, prefix, suffix, env={**MODES[mode], **LOG})
    assert (done.returncode, done.stdout) == (0, "[1.0, 2.0, 3.0, 4.0]\n"), done.stderr[-400:]
    if mode != "without libaccel":
        seen = [(line["sym"], next((key for key in "mnk" if line.get(key) == str(2**32 + 7)), None))
                for line in lines_for(done, ran="cpu", why="empty")]
        assert seen == [(prefix + name + suffix, key) for name, key in EXPECTED], "sizes in full"


# ---- A caller without a BLAS of its own, and libraries of both widths: sizes that only 64 bits
# hold are for the wide one ----

BOTH = """
import ctypes, sys
narrow, wide, caller = (ctypes.CDLL(path) for path in sys.argv[1:])
one, zero = ctypes.byref(ctypes.c_double(1)), ctypes.byref(ctypes.c_double(0))
memory, x, y = (ctypes.c_double * 4)(1, 2, 3, 4), (ctypes.c_double * 2)(1, 1), (ctypes.c_double * 2)()
def call(integer, m, n):
    m, n, ld, inc = (ctypes.byref(integer(number)) for number in (m, n, max(m, 1), 1))
    caller.call(b"N", m, n, one, memory, ld, x, inc, zero, y, inc)
call(ctypes.c_int64, 2**32 + 7, 0)
call(ctypes.c_int32, 2, 2)
print(list(y))
"""
SOURCE = """
void dgemv_();
void call(const char *t, void *m, void *n, void *alpha, void *a, void *lda, void *x, void *incx, void *beta, void *y, void *incy)
{
    dgemv_(t, m, n, alpha, a, lda, x, incx, beta, y, incy, 1L);
}
"""


@pytest.mark.parametrize("mode", ("no GPU", "test GPU"))
def test_both_widths(mode, tmp_path):
    caller = tmp_path / "libcaller.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", caller], input=SOURCE, text=True, check=True)
    done = start("/usr/bin/python3", "-c", BOTH, "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3",
                 "/usr/lib/x86_64-linux-gnu/blas64/libblas64.so.3", caller, env={**MODES[mode], **LOG})
    assert (done.returncode, done.stdout) == (0, "[4.0, 6.0]\n"), done.stderr[-400:]
    assert [(line["m"], line["n"]) for line in lines_for(done, sym="dgemv_")] == [(str(2**32 + 7), "0"), ("2", "2")]
