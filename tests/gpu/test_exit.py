#!/usr/bin/python3 -B
"""A program that ends while CUDA is being loaded, started, warmed up or used: no thread is inside CUDA's libraries when their exit handlers
run. The test GPU's libraries report whatever is there then; TEST_LONG=1 takes many more programs, TEST_SEED chooses when they end."""

import os
import random
import tempfile

from pathlib import Path

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for
from lib.programs import LOG, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
seed = int(os.environ.get("TEST_SEED", "1"))
chance = random.Random(seed)
PROGRAMS = 400 if os.environ.get("TEST_LONG") == "1" else 20
# cuInit and the context, each of three libraries, the first call of each function: milliseconds.
PHASES = {"TESTGPU_START_MS": "70", "TESTGPU_LOAD_MS": "40", "TESTGPU_FIRST_MS": "20", "TESTGPU_DELAY_US": "500"}

with tempfile.TemporaryDirectory() as folder:
    model = folder + "/model"
    calibrate(model, keys(folder), 100000, 1)
    env = {**AUTO, **PHASES, "ACCEL_MODEL": model}

    def ends(name, steps, settings, latest_ms, count):
        """Programs that end at random moments up to latest_ms: status and output are their own, and no library complains."""
        bad = []
        for i in range(count):
            how = ("return", "exit")[i % 2]
            settings = {**settings, "TESTGPU_EXIT_EARLY": str(i // 2 % 2), "TESTGPU_SEED": str(i + 1)}
            arguments = [*steps, f"sleep:{chance.randrange(latest_ms)}", f"end:{how}"]
            done = start("steps", *arguments, env={**env, **settings}, timeout=300)
            if done.returncode != 7 or done.stderr:
                bad.append((arguments, settings, done.returncode, done.stdout, done.stderr))
        tap.ok(not bad, f"{name}: {count} programs end at any moment, seed {seed}", len(bad), *bad[:3])

    ends("CUDA loads and starts", ["dgemm:300:1"], {}, 400, PROGRAMS)
    ends("cuSOLVER is opened", ["dgemm:300:1", "solve:300:1", "sleep:150", "solve:300:1"], {}, 400, PROGRAMS // 2)
    # One call, which is on its way all the while: after exit() has begun, the CPU computes, and
    # exit() waits for that, too.
    ends("a thread is in a call", ["beside:20:1"], {"ACCEL_POLICY": "gpu", "TESTGPU_LAUNCH_US": "100000"}, 500, PROGRAMS // 2)

    slow = {"LD_PRELOAD": f"{env['LD_PRELOAD']}:{TESTS / 'libslow.so'}", "ACCEL_POLICY": "gpu", "TESTGPU_START_MS": "200"}
    done = start("steps", "beside:20:1", "sleep:60", "end:return", env={**env, **slow})
    tap.ok(done.returncode == 7 and done.stdout.count("computed to the end") == 1 and not done.stderr,
           "a call that has waited for CUDA when exit() began: its library is not ended before it has computed", done.returncode, done.stdout, done.stderr)

    # A driver that hangs keeps no program from its end: exit() gives up waiting after some seconds,
    # and says nothing.
    done = start("steps", "dgemm:300:1", "opened", "sleep:500", "end:return", env={**env, "TESTGPU_START_MS": "1000000"})
    said = [line for line in done.stderr.splitlines() if "what=exit_while_called where=- detail=\"libcuda:" not in line]
    tap.ok(done.returncode == 7 and not said, "a driver that hangs: the program ends all the same", done.returncode, *said)

# ---- The program's own handlers: they run, newest first, and the C library has no more of them
# than without libaccel ----

MANY = 100000
with tempfile.TemporaryDirectory() as folder:
    counts = {}
    for name, env in {"without libaccel": {}, "GPU": TEST_GPU}.items():
        preload = ":".join(filter(None, [env.get("LD_PRELOAD"), str(TESTS / "libregistrations.so")]))
        done = start("steps", "dgemm:64:2", f"handlers:{MANY}", "end:return",
                     env={**env, "LD_PRELOAD": preload, "TEST_REGISTRATIONS": folder + "/count"})
        tap.ok(done.returncode == 7 and "handlers: right" in done.stdout and not done.stderr, f"{MANY} handlers of the program, {name}: each has run",
               done.returncode, done.stdout, done.stderr)
        counts[name] = int(Path(folder, "count").read_text())
    more = counts["GPU"] - counts["without libaccel"]
    tap.ok(counts["without libaccel"] > MANY and 0 < more < 30, f"{more} registrations are not the program's", counts)

# ---- A library that comes and goes inside a call of cuBLAS: its handler runs, and that is no end
# of the process ----

done = start("steps", "dgemm:64:5", "solve:64:2", "end:return", env={**TEST_GPU, **LOG, "TESTGPU_HELPER": str(TESTS / "libhandled.so")})
ran = [line["ran"] for line in lines_for(done)]
tap.ok(done.returncode == 7 and len(ran) >= 7 and set(ran) == {"gpu0"} and "what=" not in done.stderr,
       "a dlclose inside CUDA's libraries is no end of the process: further calls run on the GPU", done.returncode, done.stdout, done.stderr)

# ---- A call after exit() has begun is the CPU's, and no broken promise ----

for steps in ["later:64", "dgemm:64:2"], ["dgemm:64:2", "later:64"]:
    done = start("steps", *steps, "end:return", env={**TEST_GPU, **LOG, "ACCEL_REQUIRE": "gpu"})
    ran = [line["ran"] for line in lines_for(done)]
    tap.ok(done.returncode == 7 and ran == ["gpu0", "gpu0", "cpu"] and "later 64: 1 calls, 0 wrong" in done.stdout and "ACCEL_REQUIRE" not in done.stderr,
           f"ACCEL_REQUIRE=gpu, {' '.join(steps)}: a product in a handler of exit() does not end the program", done.returncode, done.stdout, done.stderr)
tap.done()
