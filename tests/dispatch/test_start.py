#!/usr/bin/python3 -B
"""CUDA starts beside the program: its calls, its end, its signals and its forks do not wait for it."""

import collections
import signal
import tempfile
import time
from pathlib import Path

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, said
from lib.programs import LOG, LONG, REFERENCE, RUNTIME, TESTS, UNDER_TSAN, start
from lib.tap import Tap

tap = Tap()
QUICK = {"TESTGPU_DELAY_US": "0"}


def reasons(done, pid=None):
    """(ran, why) of the calls of a run."""
    return [(f["ran"], f["why"]) for f in lines_for(done) if pid in (None, f["pid"])]


def runs(values):
    """What comes again and again, once."""
    return [v for i, v in enumerate(values) if i == 0 or values[i - 1] != v]


def ok(done, status=0):
    return done.returncode == status and " 0 wrong" in done.stdout and not any(" 0 wrong" not in line for line in done.stdout.splitlines())


with tempfile.TemporaryDirectory() as folder:
    # By this calibration the GPU always pays; and one call is enough to start it.
    model = folder + "/model"
    known = keys(folder)
    calibrate(model, known, 1000, 1)
    env = {**AUTO, **QUICK, **LOG, "ACCEL_MODEL": model}

    # ---- In the background ----

    # CUDA starts for as long as some calls take, however long that is: until a file is there.
    go = folder + "/go"

    def beside_start(calls, order, *later, env):
        """So many products while CUDA starts, and then these steps."""
        Path(go).unlink(missing_ok=True)
        return start("steps", f"dgemm:{order}:{calls}", "opened", f"write:{go}", "started", *later, env={**env, "TESTGPU_START_FILE": go})

    done = beside_start(12, 300, "dgemm:300:5", env=env)
    seen = reasons(done)
    tap.ok(ok(done) and runs(seen) == [("cpu", "warming"), ("gpu0", "faster")],
           "calls run on the CPU while CUDA starts, then on the GPU", runs(seen), done.stdout, said(done))
    tap.ok(seen.count(("cpu", "warming")) == 12, "and do not wait: all are done meanwhile", seen.count(("cpu", "warming")))
    # By built-in figures, each of these calls would gain some milliseconds, so that they start CUDA
    # together.
    done = beside_start(12, 1000, "dgemm:1000:3", env={**AUTO, **QUICK, **LOG, "XDG_CACHE_HOME": folder})
    seen = reasons(done)
    tap.ok(ok(done) and seen.count(("cpu", "warming")) >= 12 and ("gpu0", "faster") in seen and not said(done),
           "the same with built-in figures", runs(seen)[:20], done.stdout, said(done))
    # ThreadSanitizer makes calls many times as long.
    done = start("steps", f"threads:4:300:{60 if UNDER_TSAN else 400}", "started", "threads:4:300:3", env={**env, "TESTGPU_START_MS": "300"})
    seen = reasons(done)
    tap.ok(ok(done) and {why for _, why in seen} == {"warming", "faster"}, "four threads", runs(seen)[:20], done.stdout)

    # A call that would gain seconds waits for a third of them: 20 s, and 1.2 s.
    large = {**env, "ACCEL_MODEL": folder + "/large"}
    calibrate(large["ACCEL_MODEL"], known, 100000, 1)
    done = start("steps", "dgemm:300:3", "solve:300:1", env={**large, "TESTGPU_START_MS": "700"})
    tap.ok(ok(done) and set(reasons(done)) == {("gpu0", "faster")}, "a large call waits for CUDA", reasons(done), done.stdout)
    done = start("steps", "threads:4:300:3", env={**large, "TESTGPU_START_MS": "700"})
    tap.ok(ok(done) and set(reasons(done)) == {("gpu0", "faster")}, "four threads with large calls", reasons(done), done.stdout)
    done = start("steps", "dgemm:300:3", env={**large, "TESTGPU_FAIL": "cuInit:1"})
    tap.ok(ok(done) and set(reasons(done)) == {("cpu", "no_gpu")}, "and does not if CUDA cannot start", reasons(done), done.stdout)
    calibrate(large["ACCEL_MODEL"], known, 6000, 1)
    done = start("steps", "dgemm:300:10", "end:_exit", env={**large, "TESTGPU_START_MS": "8000"})
    tap.ok(ok(done, 7) and reasons(done) == 10 * [("cpu", "warming")], "one waits in vain for a start that takes long, and those after it do not wait",
           reasons(done), done.stdout)

    # A thread that must have the GPU waits 30 s for one that starts CUDA already. (TEST_LONG=1: it
    # takes them.)
    if LONG:
        put_back = {**env, "ACCEL_POLICY": "gpu", "LD_PRELOAD": f"{TESTS / 'libset_back.so'}:{env['LD_PRELOAD']}"}
        done = start("steps", "threads:2:300:1", env={**put_back, "TESTGPU_START_MS": "45000"})
        tap.ok(ok(done) and sorted(reasons(done)) == [("cpu", "warming"), ("gpu0", "forced")], "a thread gives up waiting for another one's start, though the clock is put back",
               reasons(done), done.stdout)

    # Threads of ours have stacks that are large enough, whatever those of the program's threads
    # are. (OpenBLAS's threads overflow such ones by themselves.)
    Path(go).unlink(missing_ok=True)
    steps = f"{TESTS}/steps dgemm:300:4 opened write:{go} started dgemm:300:3"
    done = start("/bin/bash", "-c", f"ulimit -s 64 && exec {steps}", env={**env, **REFERENCE, "TESTGPU_START_FILE": go})
    tap.ok(ok(done) and reasons(done)[-1] == ("gpu0", "faster"), "with stacks of 64 KB", done.returncode, reasons(done)[-1:], done.stdout, done.stderr[-300:])

    report = folder + "/report"
    quiet = {**AUTO, **LOG, "TESTGPU_REPORT": report, "XDG_CACHE_HOME": folder}
    # One call, since those after it are estimated by how long it took.
    done = start("steps", "dgemm:200:1", "maps", env=quiet)
    tap.ok(done.returncode == 0 and "libcuda is not there" in done.stdout and not Path(report).exists(),
           "a program that would gain too little does not open CUDA", done.stdout)
    tap.ok(set(reasons(done)) == {("cpu", "warming")}, "although its call would pay", reasons(done))
    done = start("steps", "dgemm:200:3", "maps", env={**quiet, "ACCEL_START": "wait"})
    tap.ok("libcuda is not there" in done.stdout and set(reasons(done)) == {("cpu", "slower")}, "nor with ACCEL_START=wait", done.stdout, reasons(done))
    done = start("steps", "dgemm:1500:1", "dgemm:200:3", "maps", env={**quiet, "ACCEL_START": "wait"})
    tap.ok("libcuda is there" in done.stdout and Path(report).exists() and set(reasons(done)) == {("gpu0", "faster")},
           "where one of its calls gains as much as the start wants, it does", done.stdout, reasons(done))

    # ---- ACCEL_START=wait: the same decisions each time ----

    steps = ["dgemm:40:2", "dgemm:300:3", "dgemm:1500:1", "dgemm:300:3", "other:700:2", "solve:300:2", "threads:2:150:3", "dgemm:200:1"]
    sequences = []
    for busy in ("0", "80", "30"):
        done = start("steps", *steps, env={**AUTO, **LOG, "ACCEL_START": "wait", "TESTGPU_START_MS": "300", "TESTGPU_BUSY": busy,
                                           "TESTGPU_GFLOPS": "20", "XDG_CACHE_HOME": folder})
        lines = lines_for(done)
        threads = sorted({f["tid"] for f in lines}, key=lambda tid: [f["tid"] for f in lines].index(tid))
        sequences.append([[tuple(f.get(k) for k in "sym m n k nrhs ran why est_cpu_ms est_gpu_ms".split()) for f in lines
                           if f["tid"] == tid] for tid in threads])
        tap.ok(ok(done) and ("gpu0", "faster") in reasons(done) and not said(done), "ACCEL_START=wait runs", done.stdout, said(done))
    tap.ok(sequences[0] == sequences[1] == sequences[2], "three times, on a device of three speeds: the same decisions and estimates",
           *sequences)
    paying = [f for f in lines if f["why"] not in ("small", "slower")]
    tap.ok(paying and {f["why"] for f in paying} == {"faster"}, "the first call that pays runs on the GPU", *paying[:3])

    # ---- The program ends meanwhile ----

    def end(how, settings, name):
        arguments = ["dgemm:600:2", "opened", "sleep:50", "maps", f"end:{how}"]
        begun = time.monotonic()
        done = start("steps", *arguments, env={**env, "ACCEL_LOG": "0", **settings})
        took = time.monotonic() - begun
        status = {"abort": -signal.SIGABRT, "kill": -signal.SIGTERM}.get(how, 7)
        tap.ok(done.returncode == status and done.stdout == "dgemm 600: 2 calls, 0 wrong\nlibcuda is there\n" and done.stderr == "",
               f"{name}, {how}: status and output are the program's own", done.returncode, done.stdout, done.stderr)
        tap.ok(took < 8, f"{name}, {how}: it ends at once", took)

    for how in ("_exit", "abort", "kill"):
        end(how, {"TESTGPU_START_MS": "20000"}, "CUDA starts")
    for how in ("return", "exit"):
        end(how, {"TESTGPU_START_MS": "1500"}, "CUDA starts")
    for how in ("return", "exit", "_exit"):
        end(how, {"TESTGPU_LOAD_MS": "1000"}, "a library loads")
    end("exit", {"TESTGPU_START_MS": "1500", "ACCEL_LOG": "1", "ACCEL_LOG_FILE": folder + "/log"}, "with a log")
    bad = []
    for early in ("0", "1"):
        for i in range(12):
            done = start("steps", "dgemm:300:1", f"sleep:{15 * i}", f"end:{('return', 'exit')[i % 2]}",
                         env={**env, "ACCEL_LOG": "0", "TESTGPU_START_MS": "60", "TESTGPU_EXIT_EARLY": early, "ACCEL_LEARN": "1"})
            if (done.returncode, done.stdout, done.stderr) != (7, "dgemm 300: 1 calls, 0 wrong\n", ""):
                bad.append((early, i, done.returncode, done.stdout, done.stderr))
    tap.ok(not bad, "a program that ends at any moment of the start", *bad[:4])

    # ---- Signals ----

    def calibrated_env(name, own):
        """The environment with settings of its own, and a calibration of what runs with them."""
        calibrate(f"{model}-{name}", keys(folder, own), 1000, 1)
        return {**env, **own, "ACCEL_MODEL": f"{model}-{name}"}

    one_thread = calibrated_env("one", {"OPENBLAS_NUM_THREADS": "1"})
    for mode, extra in {"background": {}, "wait": {"ACCEL_START": "wait"}}.items():
        done = start("signals", 2500, env={**one_thread, "TESTGPU_START_MS": "700", **extra})
        tap.ok(done.returncode == 0 and done.stdout == "alarms came, interrupts came, elsewhere 0\nawaited came, unwanted 0, a pause is "
               "interrupted\nother threads seen, open 0\n", f"signals come to the program's own threads, {mode}", done.stdout)
        tap.ok(reasons(done)[-1] == ("gpu0", "faster"), f"while and after CUDA starts, {mode}", runs(reasons(done)))

    # ---- fork ----

    if RUNTIME:
        tap.skip("forks", "a child that is forked beside other threads finds AddressSanitizer's allocator locked, and ThreadSanitizer lost")
    else:
        # OpenBLAS may not be in use on another thread when the process forks: the child finds its
        # locks taken.
        reference = calibrated_env("reference", {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas"})
        for mode, blas in {"main": calibrated_env("two", {"OPENBLAS_NUM_THREADS": "2"}), "thread": reference}.items():
            done = start("forks_anytime", 200, 60, mode, 5000, env={**blas, "TESTGPU_START_MS": "300", "TESTGPU_LOAD_MS": "300"})
            pids = [f["pid"] for f in lines_for(done)]
            parent = max(set(pids), key=pids.count)
            children = [reasons(done, pid) for pid in set(pids) - {parent}]
            tap.ok(done.returncode == 0 and done.stdout == "60 children, 0 wrong\n" and "fault what=forked" not in done.stderr,
                   f"forks from the {mode} thread at any moment: no child hangs, each result is right",
                   done.returncode, done.stdout, *[line for line in done.stderr.splitlines() if not line.startswith("accel ")][:5])
            tap.ok(len(children) == 30 and {x for c in children for x in c} <= {("cpu", "forked"), ("cpu", "warming")} and
                   sum(c == 2 * [("cpu", "forked")] for c in children) > 10, f"from the {mode} thread: they compute on the CPU", *children)
            tap.ok(runs(reasons(done, parent)) == [("cpu", "warming"), ("gpu0", "faster")], f"from the {mode} thread: the parent goes on to the GPU",
                   runs(reasons(done, parent)))

        # A child's descriptors are copied before its memory is: the log that another thread opens
        # meanwhile may be in one of them alone.
        crowds = [start("forks_anytime", 100, 12, "crowd", 0, env=reference) for _ in range(30)]
        bad = [done for done in crowds if done.returncode != 0 or
               sorted(collections.Counter(f["pid"] for f in lines_for(done)).values())[:12] != 12 * [2]]
        tap.ok(not bad, "a crowd of children, some forked while the log is opened: each of their calls is in it",
               len(bad), *[done.stderr for done in bad[:1]])
        # glibc 2.36's dl_iterate_phdr() hangs in a child that was forked in the middle of another
        # thread's.
        done = start("forks_anytime", 8, 400, "crowd", 0, env={**reference, "ACCEL_LOG": "0", "ACCEL_SUMMARY": "1"})
        tap.ok(done.returncode == 0, "a crowd of 400, while calls come as fast as they can", done.stdout, done.stderr[-500:])
tap.done()
