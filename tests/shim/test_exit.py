#!/usr/bin/python3 -B
"""A program that ends while CUDA is being loaded, started, warmed up or used: no thread is inside CUDA's libraries when their exit handlers
run. The test GPU's libraries report whatever is there then; TEST_LONG=1 takes many more programs, TEST_SEED chooses when they end."""

import os
import random
import tempfile

from calibrated import AUTO, calibrate, keys
from common import Tap, start

tap = Tap()
seed = int(os.environ.get("TEST_SEED") or random.randrange(10**6))
chance = random.Random(seed)
PROGRAMS = 400 if os.environ.get("TEST_LONG") == "1" else 20
# cuInit and the context, each of three libraries, the first call of each function: milliseconds.
PHASES = {"TESTGPU_START_MS": "70", "TESTGPU_LOAD_MS": "40", "TESTGPU_FIRST_MS": "20", "TESTGPU_DELAY_US": "500"}

with tempfile.TemporaryDirectory() as folder:
    model = folder + "/model"
    calibrate(model, keys(folder), 1000, 1)
    env = {**AUTO, **PHASES, "ACCEL_MODEL": model}

    def ends(name, steps, settings, latest_ms, count):
        """Programs that end at random moments up to latest_ms: status and output are their own, and no library complains."""
        bad = []
        for i in range(count):
            how = ("return", "exit")[i % 2]
            settings = {**settings, "TESTGPU_EXIT_EARLY": str(i // 2 % 2), "TESTGPU_SEED": str(i + 1)}
            arguments = [*steps, f"sleep:{chance.randrange(latest_ms)}", f"end:{how}"]
            done = start("steps", *arguments, env={**env, **settings}, timeout=60)
            if done.returncode != 7 or done.stderr:
                bad.append((arguments, settings, done.returncode, done.stdout, done.stderr))
        tap.ok(not bad, f"{name}: {count} programs end at any moment, seed {seed}", len(bad), *bad[:3])

    ends("CUDA loads and starts", ["dgemm:300:1"], {}, 400, PROGRAMS)
    ends("cuSOLVER is opened", ["dgemm:300:1", "solve:300:1", "sleep:150", "solve:300:1"], {}, 400, PROGRAMS // 2)
    # One call, which is on its way all the while: after exit() has begun, the CPU computes, and its library is being ended, too.
    ends("a thread is in a call", ["beside:20:1"], {"ACCEL_POLICY": "gpu", "TESTGPU_LAUNCH_US": "100000"}, 500, PROGRAMS // 2)

    # A driver that hangs keeps no program from its end: exit() gives up waiting after some seconds, and says nothing.
    done = start("steps", "dgemm:300:1", "opened", "sleep:500", "end:return", env={**env, "TESTGPU_START_MS": "100000"})
    said = [line for line in done.stderr.splitlines() if "what=exit_while_called where=- detail=\"libcuda:" not in line]
    tap.ok(done.returncode == 7 and not said, "a driver that hangs: the program ends all the same", done.returncode, *said)
tap.done()
