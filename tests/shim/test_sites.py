#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""More call sites of one name than libaccel's table has room for at one place, in code that was made at run time:
each call reaches BLAS."""

import platform

import pytest

from lib.log import lines_for
from lib.programs import LOG, NO_GPU, SHIM, TEST_GPU, TESTS, start

# The call puts nine words on the stack, six into registers; the table's places are
# ACCEL_SITE_HASH's (shim/arch/entry.h).
CALLS = """
import ctypes, mmap, struct, sys
SITES, HASH, BITS, SIZE = 40, 0x9e3779b1, 14, 2 << 20
library = ctypes.CDLL(sys.argv[1])
others = [ctypes.CDLL(path, ctypes.RTLD_GLOBAL) for path in sys.argv[2:]]
library.caller_handout.restype = ctypes.c_void_p
entry = library.caller_handout()
n, one, two, zero, c = ctypes.c_int(1), ctypes.c_double(1), ctypes.c_double(2), ctypes.c_double(0), ctypes.c_double(0)
at = ctypes.addressof
flag = ctypes.create_string_buffer(b"N")
words = [at(two), at(n), at(two), at(n), at(zero), at(c), at(n), 1, 1]
code = b"".join(b"\\x48\\xb8" + struct.pack("<Q", word) + b"\\x50" for word in reversed(words))  # mov rax, word; push rax
registers = ((b"\\x48\\xbf", at(flag)), (b"\\x48\\xbe", at(flag)), (b"\\x48\\xba", at(n)), (b"\\x48\\xb9", at(n)), (b"\\x49\\xb8", at(n)), (b"\\x49\\xb9", at(one)), (b"\\x48\\xb8", entry))
code += b"".join(move + struct.pack("<Q", word) for move, word in registers)
code += b"\\xff\\xd0"  # call rax; the stack is aligned: nine words and the return address
behind = b"\\x48\\x83\\xc4\\x48\\xc3"  # add rsp, 72; ret
memory = mmap.mmap(-1, SIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
begin = at(ctypes.c_char.from_buffer(memory))
place = lambda ret: (ret & 0xffffffff) * HASH % 2**32 >> 32 - BITS
rets, last = [], len(code)
wanted = place(begin + last)
while len(rets) < SITES and last + len(behind) < SIZE:
    if place(begin + last) == wanted:
        memory[last - len(code):last + len(behind)] = code + behind
        rets.append(begin + last)
        last += len(code) + len(behind)
    last += 1
results = []
for i in range(3):
    for ret in rets:
        c.value = -1
        ctypes.CFUNCTYPE(None)(ret - len(code))()
        results.append(c.value)
print(len(rets), set(results))
"""
MODES = {"without libaccel": {}, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, **LOG}}
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is that of x86-64")


@pytest.mark.parametrize("mode", ("ACCEL=0", "no GPU", "test GPU"))
def test_call_sites_of_one_place_with_blas_in_the_global_scope(mode):
    done = start("/usr/bin/python3", "-B", "-c", CALLS, TESTS / "libcaller_none.so", "libblas.so.3", env=MODES[mode])
    assert (done.returncode, done.stdout) == (0, "40 {4.0}\n"), done.stderr[-500:]


@pytest.mark.parametrize("mode", MODES)
def test_call_sites_of_one_place(mode):
    done = start("/usr/bin/python3", "-B", "-c", CALLS, TESTS / "libcaller_lp64.so", env=MODES[mode])
    assert (done.returncode, done.stdout) == (0, "40 {4.0}\n"), done.stderr[-500:]
    if mode == "test GPU":
        assert len(lines_for(done, sym="dgemm_")) == 120, "each call is seen"
