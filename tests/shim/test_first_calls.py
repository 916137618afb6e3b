#!/usr/bin/python3 -B
"""What the first call of a routine loads (kernels, cuSOLVER) is not charged to the place that calls, and is counted where calls wait for it."""

import tempfile

from calibrated import AUTO, calibrate, keys
from common import LOG, Tap, lines_for, start

tap = Tap()

with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_LOAD_MS": "300", "ACCEL_MODEL": folder + "/model"}

    def solves(steps, settings, cpu_ms):
        """Where the systems of order 500 ran, by a calibration in which they take so long on the CPU, and 1 ms on the GPU."""
        calibrate(folder + "/model", known, cpu_ms, 1)
        done = start("steps", *steps, env={**env, **settings})
        seen = [(f["ran"], f["why"]) for f in lines_for(done, sym="dgesv_")]
        return done, seen

    cpu, gpu, slower = ("cpu", "warming"), ("gpu0", "faster"), ("cpu", "slower")
    started = ["dgemm:500:2", "sleep:2500"]

    done, seen = solves([*started, "solve:500:3", "sleep:4000", "solve:500:4"], {"TESTGPU_FIRST_MS": "400"}, 200)
    tap.ok(seen == 3 * [cpu] + 4 * [gpu], "the first gain of a routine warms it up in the background, and its calls run on the CPU meanwhile", *seen)
    tap.ok("event=pinned" not in done.stderr and " 0 wrong" in done.stdout, "no place is sent back to the CPU for it", done.stdout, done.stderr[-500:])

    done, seen = solves(["dgemm:500:2", "sleep:6500", "solve:500:4"], {"TESTGPU_FIRST_MS": "1000"}, 700)
    tap.ok(seen == 4 * [gpu], "a call that gains more than a warm-up takes does not wait for it", *seen)
    tap.ok("event=pinned" not in done.stderr and " 0 wrong" in done.stdout, "and is not judged by it", done.stdout, done.stderr[-500:])

    done, seen = solves(["solve:500:5"], {"ACCEL_START": "wait"}, 200)
    estimates = [float(f["est_gpu_ms"]) for f in lines_for(done, sym="dgesv_")]
    tap.ok(seen == 2 * [slower] + 3 * [gpu], "ACCEL_START=wait: what the first call has to load is counted, until calls would have gained as much", *seen)
    tap.ok(len(estimates) == 5 and estimates[0] > estimates[1] > estimates[2] > 50 > 10 > estimates[3] == estimates[4], "and is in its estimate", estimates)
tap.done()
