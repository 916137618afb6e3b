#!/usr/bin/python3 -B
"""What libaccel adds to dlclose: little, however many symbols the libraries have that are loaded. Programs with plug-ins (MPI) open and close a
hundred of them at their start."""

import glob

from lib.log import said
from lib.programs import DEBIAN_PYTHON, NO_GPU, SHIM, start
from lib.tap import Tap

tap = Tap()
# SciPy has opened BLAS by then. The library that is opened and closed has no names of BLAS.
PROGRAM = """
import sys, time
import _ctypes, numpy, scipy.linalg, scipy.special, scipy.sparse.linalg, scipy.optimize
numpy.ones((9, 9)) @ numpy.ones((9, 9))

def milliseconds():
    begun = time.process_time()
    for _ in range(20):
        _ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 2))
    return (time.process_time() - begun) * 1000 / 20

assert sys.argv[1] not in open("/proc/self/maps").read()
print(min(milliseconds() for _ in range(8)))
"""
LIBRARY, = glob.glob("/usr/lib/python3*/lib-dynload/audioop.*.so")


def milliseconds(name, env):
    done = start(DEBIAN_PYTHON, "-c", PROGRAM, LIBRARY, env={**env, "OPENBLAS_NUM_THREADS": "1"})
    tap.ok(done.returncode == 0 and not said(done), f"{name}: libraries were opened and closed", done.returncode, done.stderr)
    return float(done.stdout or "nan")


# Without libaccel 0.05 to 0.2 ms; where all relocations are read each time, 3 to 5 ms.
native = milliseconds("without libaccel", {})
for name, env in {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}}.items():
    taken = milliseconds(name, env)
    tap.ok(taken < 6 * native, f"{name}: dlopen and dlclose take {taken:.2f} ms, without libaccel {native:.2f}")
tap.done()
