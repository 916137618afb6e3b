#!/usr/bin/python3 -B
"""A program whose forked children use CUDA themselves: libaccel is not who starts CUDA in their parent, where that can be told or is said."""

import shutil
import tempfile

from lib.calibrated import AUTO
from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, LOG, RUNTIME, start
from lib.tap import Tap

tap = Tap()
PYTHON = "/usr/bin/python3"
CUDA = str(BUILD / "testgpu" / "libcuda.so.1")

# A parent of real multiprocessing: products, then children that start CUDA, then a product. Loads
# libraries; "own" starts CUDA.
PROGRAM = """
import ctypes, importlib, sys, time
import numpy
cuda, loaded, own = sys.argv[1], sys.argv[2], sys.argv[3] == "own"

def start_cuda(_):
    driver, context = ctypes.CDLL(cuda), ctypes.c_void_p()
    return driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)

if loaded:
    ctypes.CDLL(loaded)
import multiprocessing.pool
if own:
    start_cuda(0)
a = numpy.ones((1500, 1500))
for _ in range(6):
    a @ a
time.sleep(1)
b = a @ a
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(start_cuda, range(2)), b[0, 0])
"""

FINE, BROKEN = "[(0, 0), (0, 0)] 1500.0\n", "[(3, 3), (3, 3)] 1500.0\n"

if RUNTIME:
    tap.skip("children that use CUDA", "a child that is forked beside other threads finds AddressSanitizer's allocator locked, and ThreadSanitizer lost")
else:
    with tempfile.TemporaryDirectory() as folder:
        runtime = folder + "/libcudart.so.13"
        shutil.copy("/lib/x86_64-linux-gnu/libanl.so.1", runtime)  # a library of that name, whatever is in it

        def run(name, loaded, own, settings, children, way):
            done = start(PYTHON, "-c", PROGRAM, CUDA, loaded, own, env={**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": folder, **settings})
            seen = outcomes(lines_for(done))
            tap.ok(done.returncode == 0 and done.stdout == children, f"{name}: its children", done.returncode, done.stdout, done.stderr[-600:])
            tap.ok(set(seen) == {held} if way == held else gpu in seen, f"{name}: its products are {way[1]}", *seen)
            return done

        held, gpu = ("cpu", "no_gpu"), ("gpu0", "faster")
        done = run("the driver is loaded", CUDA, "", {}, FINE, held)
        tap.ok(len(said(done)) == 1 and "ACCEL_START=background" in said(done)[0], "one line says what is held back, and the way out", *said(done))
        run("the run time is loaded", runtime, "", {}, FINE, held)
        quiet = {**AUTO, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": folder}
        loaded = [PYTHON, "-c", PROGRAM, CUDA, CUDA, ""]
        done = start(*loaded, env={**quiet, "ACCEL_SUMMARY": "1"})
        hint = " ".join(
            line[len("accel:"):].strip() for line in done.stderr.splitlines() if "accel: " in line
        )
        way_out = "if none does, ACCEL_START=background lets libaccel start it"
        tap.ok(" calls ran on the CPU because the program has loaded CUDA, and children" in hint and way_out in hint
               and "no GPU is there" not in hint, "a hint of the summary has the way out", done.stderr)
        log = folder + "/log"
        start(*loaded, env={**quiet, **LOG, "ACCEL_LOG_FILE": log})
        done = start(str(BUILD / "accel"), "explain", log)
        tap.ok(way_out in " ".join(done.stdout.split()), "so has accel explain, of a log", done.stdout, done.stderr)
        run("the run time is loaded, ACCEL_START=background", runtime, "", {"ACCEL_START": "background"}, BROKEN, gpu)
        run("no library is loaded", "", "", {}, BROKEN, gpu)
        run("no library is loaded, ACCEL_START=program", "", "", {"ACCEL_START": "program"}, FINE, held)
        run("ACCEL_START=program, and the program starts CUDA", "", "own", {"ACCEL_START": "program"}, BROKEN, gpu)
        run("the driver is loaded, and the program starts CUDA", CUDA, "own", {}, BROKEN, gpu)

# A promise is not held back: a program that must have the GPU, and that never starts CUDA.
done = start("steps", "dgemm:600:1", env={**AUTO, **LOG, "ACCEL_START": "program", "ACCEL_REQUIRE": "gpu"})
tap.ok(done.returncode == 1 and "ACCEL_REQUIRE=gpu is set" in done.stderr, "ACCEL_START=program, and ACCEL_REQUIRE=gpu: the program is ended",
       done.returncode, done.stderr[-400:])
tap.done()
