#!/usr/bin/python3 -B
"""What the first call of a routine loads (kernels, cuSOLVER) is not charged to the place that calls, and is counted where calls wait for it."""

import tempfile

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes
from lib.programs import LOG, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()

with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_LOAD_MS": "300", "ACCEL_MODEL": folder + "/model"}

    def solves(steps, settings, cpu_ms):
        """Where the systems of order 500 ran, by a calibration in which they take so long on the CPU, and 1 ms on the GPU."""
        calibrate(folder + "/model", known, cpu_ms, 1, kernels_ms=50, solver_ms=500)
        done = start("steps", *steps, env={**env, **settings})
        seen = outcomes(lines_for(done, sym="dgesv_"))
        return done, seen

    cpu, gpu, slower = ("cpu", "warming"), ("gpu0", "faster"), ("cpu", "slower")
    started = ["dgemm:500:2", "started"]

    done, seen = solves([*started, "solve:500:3", "sleep:9000", "solve:500:4"], {"TESTGPU_FIRST_MS": "1500"}, 500)
    tap.ok(seen == 3 * [cpu] + 4 * [gpu], "the first gain of a routine warms it up in the background, and its calls run on the CPU meanwhile", *seen)
    tap.ok("event=pinned" not in done.stderr and " 0 wrong" in done.stdout, "no place is sent back to the CPU for it", done.stdout, done.stderr[-500:])

    done, seen = solves([*started, "solve:500:4"], {"TESTGPU_FIRST_MS": "1000"}, 70000)
    tap.ok(seen == 4 * [gpu], "a call that gains more than a warm-up takes does not wait for it", *seen)
    tap.ok("event=pinned" not in done.stderr and " 0 wrong" in done.stdout, "and is not judged by it", done.stdout, done.stderr[-500:])

    done, seen = solves(["solve:500:5"], {"ACCEL_START": "wait"}, 200)
    estimates = [float(f["est_gpu_ms"]) for f in lines_for(done, sym="dgesv_")]
    tap.ok(seen == 2 * [slower] + 3 * [gpu], "ACCEL_START=wait: what the first call has to load is counted, until calls would have gained as much", *seen)
    tap.ok(len(estimates) == 5 and estimates[0] > estimates[1] > estimates[2] > 50 > 10 > estimates[3] == estimates[4], "and is in its estimate", estimates)

    def products(steps, cpu_ms, **first):
        """The same of products, with ACCEL_START=wait and these first costs."""
        calibrate(folder + "/model", known, cpu_ms, 1, **first)
        done = start("steps", *steps, "maps", env={**env, "ACCEL_START": "wait"})
        lines = lines_for(done, sym="dgemm_")
        return done, outcomes(lines), [float(f["est_gpu_ms"]) for f in lines]

    done, seen, estimates = products(["dgemm:500:5"], 20, kernels_ms=50)
    tap.ok(seen == 2 * [slower] + 3 * [gpu] and " 0 wrong" in done.stdout, "ACCEL_START=wait: what BLAS's first call has to load is counted, too, until "
           "calls would have gained as much", *seen)
    tap.ok(len(estimates) == 5 and estimates[0] > 50 > estimates[1] > 25 > estimates[2] > 10 > estimates[3] == estimates[4] > 1,
           "and is in its estimate, less what was gained", estimates)
    done, seen, _ = products(["dgemm:500:2"], 20, kernels_ms=50)
    tap.ok(seen == 2 * [slower] and "libcuda is not there" in done.stdout, "CUDA is not started for less", done.stdout, *seen)
    done, seen, _ = products(["dgemm:500:40"], 3, kernels_ms=50)
    tap.ok(seen[:20] == 20 * [slower] and seen[-10:] == 10 * [gpu], "many small gains start it", *seen[::5])
    done, seen, _ = products(["dgemm:500:15"], 20, kernels_ms=200)
    tap.ok(seen == 10 * [slower] + 5 * [gpu], "once the GPU is known, the calibration says how much it is", *seen)

# ---- A factorisation that fails at its first column tells nothing of one that does not ----

CHOLESKY = """
import ctypes
lapack, n = ctypes.CDLL("liblapack.so.3", ctypes.RTLD_GLOBAL), ctypes.c_int(600)
for first in -1, 4, -1, 4:
    a, info = (ctypes.c_double * 360000)(), ctypes.c_int()
    for i in range(600):
        a[601 * i] = 4
    a[0] = first
    lapack.dpotrf_(b"U", ctypes.byref(n), a, ctypes.byref(n), ctypes.byref(info), 1)
    assert info.value == (first < 0)
"""
with tempfile.TemporaryDirectory() as folder:
    model = folder + "/model"
    done = start("/usr/bin/python3", "-c", CHOLESKY, env={**AUTO, **LOG, "ACCEL_MODEL": model, "ACCEL_LEARN": "1", "TESTGPU_START_MS": "100000"})
    estimates = [float(f["est_cpu_ms"]) for f in lines_for(done, sym="dpotrf_")]
    tap.ok(done.returncode == 0 and len(estimates) == 4 and estimates[0] == estimates[1] and estimates[2] == estimates[3] > estimates[1] / 20,
           "a matrix that is not definite does not count as one that takes no time", estimates, done.stderr[-500:])

done = start("constructors", TESTS / "libat_load.so", env={**TEST_GPU, **LOG})
seen = [(f["ran"], f["why"]) for f in lines_for(done, sym="dgesv_") if f["why"] != "empty"]
tap.ok(done.returncode == 0 and done.stdout == "in a constructor: right\nbeside it: right\n" and seen == 2 * [("gpu0", "forced")],
       "a constructor and another thread both open cuSOLVER: neither waits for the other", done.returncode, done.stdout, *seen)
tap.done()
