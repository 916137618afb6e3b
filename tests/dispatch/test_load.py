#!/usr/bin/python3 -B
"""Wrong estimates, busy and full and failing devices, many callers: the program is no slower for them."""

import os
import re
import signal
import stat
import struct
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.busy import await_call, background, two_threads
from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes, parse_log, said
from lib.programs import LOG, right, start
from lib.tap import Tap

tap = Tap()
# The first call starts CUDA, and would not gain as much as one that waits for that.
READY, SMALL_READY = ["dgemm:600:1", "started"], ["dgemm:130:1", "started"]


with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    runtime = folder + "/runtime"
    os.mkdir(runtime, 0o700)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": folder, "XDG_RUNTIME_DIR": runtime}

    def calibrated(cpu_ms, gpu_ms):
        path = f"{folder}/{cpu_ms}-{gpu_ms}"
        calibrate(path, known, cpu_ms, gpu_ms)
        return {**env, "ACCEL_MODEL": path}

    # ---- A wrong estimate ----

    slow = {"TESTGPU_GFLOPS": "1", "TESTGPU_UP_GBPS": "0.5"}
    done = start("steps", "dgemm:500:100", "started", "dgemm:500:40", env={**env, **slow})
    seen = outcomes(lines_for(done))
    tap.ok(right(done) and 1 <= seen.count(("gpu0", "faster")) <= 5 and set(seen[-30:]) == {("cpu", "slower")},
           "built-in figures, a slow GPU: after a few runs on the CPU", seen, done.stdout)
    tap.ok(len(re.findall(r"^accel .*sym=dgemm_ event=pinned ms=.* est_cpu_ms=", done.stderr, re.M)) == 1, "a line says that", done.stderr[-600:])
    fixed = calibrated(20, 1)
    done = start("steps", "dgemm:600:3", *READY, "dgemm:500:12", "other:500:12", "dgemm:250:20", "dgemm:500:4", env={**fixed, **slow})
    lines = lines_for(done)[4:]
    parts = [lines[:12], lines[12:24], lines[24:44], lines[44:]]
    first, other, shape, last = [outcomes(part) for part in parts]
    for name, part in ("a place", first), ("another place", other):
        count = part.count(("gpu0", "faster"))
        tap.ok(right(done) and 1 <= count <= 5 and part == count * [("gpu0", "faster")] + (12 - count) * [("cpu", "slower")],
               f"calibrated, a slow GPU: {name} is judged for itself", part)
    tap.ok(shape[0] == ("gpu0", "faster") and set(last) == {("cpu", "slower")}, "another shape too, and the judgement stays", shape, last)
    tap.ok(done.stderr.count("event=pinned") >= 2, "a line for each", done.stderr.count("event=pinned"))
    done = start("steps", "dgemm:500:8", env={**fixed, **slow, "ACCEL_START": "wait"})
    tap.ok(outcomes(lines_for(done)) == 2 * [("cpu", "slower")] + 6 * [("gpu0", "faster")], "with ACCEL_START=wait decisions do not depend on times", done.stderr[-600:])
    done = start("steps", *READY, "dgemm:500:12", env={**calibrated(100000, 1), **slow})
    tap.ok(set(outcomes(lines_for(done)[1:])) == {("gpu0", "faster")}, "slower than its estimate, but than the CPU's too: it stays", done.stderr[-600:])

    # ---- A device that is busy: a call of order 600 takes it 6 s ----

    shared = {**calibrated(6500 / 1.2, 6000 / 1.2), "TESTGPU_GFLOPS": "0.072"}
    done = two_threads(SMALL_READY, shared)
    tap.ok(right(done) and sorted(outcomes(lines_for(done)[1:])) == [("cpu", "busy"), ("gpu0", "faster")],
           "two threads: while one uses the GPU, the other one's call goes to the CPU", done.stderr, done.stdout)
    busy = lines_for(done, why="busy")
    tap.ok(busy and float(busy[0]["est_gpu_ms"]) > float(busy[0]["est_cpu_ms"]) > 6000, "as the estimates say", *busy)

    def two(name, env_a, env_b, kill, expected):
        ready, go = (f"{folder}/{name}-{what}" for what in ("ready", "go"))
        a = background([*SMALL_READY, f"await:{ready}", "dgemm:600:1"], {**shared, **env_a})
        b = background([*SMALL_READY, f"write:{ready}", f"await:{go}", "dgemm:600:1"], {**shared, **env_b})
        await_call(a, {**shared, **env_a}["XDG_RUNTIME_DIR"])
        if kill:
            a.send_signal(signal.SIGKILL)
            a.wait()
        Path(go).touch()
        (_, err_a), (_, err_b) = a.communicate(timeout=300), b.communicate(timeout=300)
        lines_a, lines_b = outcomes(parse_log(err_a)), outcomes(parse_log(err_b))
        return (lines_b[-1] == expected and b.returncode == 0 and
                lines_a[1:] == ([] if kill else [("gpu0", "faster")])), lines_a, lines_b

    apart = [folder + "/a", folder + "/b"]
    for path in apart:
        os.mkdir(path, 0o700)
    with ThreadPoolExecutor(3) as pool:
        cases = {
            "two processes see each other": ("seen", {}, {}, False, ("cpu", "busy")),
            "not with folders of their own": ("apart", {"XDG_RUNTIME_DIR": apart[0]}, {"XDG_RUNTIME_DIR": apart[1]}, False, ("gpu0", "faster")),
        }
        jobs = {name: pool.submit(two, *case) for name, case in cases.items()}
        for name, job in jobs.items():
            tap.ok(job.result()[0], name, *job.result()[1:])
    result = two("killed", {}, {}, True, ("gpu0", "faster"))
    tap.ok(result[0], "a killed process does not leave the device busy", *result[1:])

    # ---- The page by which processes see each other ----

    pages = list(Path(runtime).iterdir())
    tap.ok(len(pages) == 1 and re.fullmatch(r"accel-\d+-[0-9a-f]{32}", pages[0].name) and stat.S_IMODE(pages[0].stat().st_mode) == 0o600,
           "one page for each device, for this user alone", *pages)
    page = pages[0].name
    size = pages[0].stat().st_size
    # This process uses the device for a long while.
    entry = struct.pack("<i4xq", os.getpid(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000 + 10**9)
    occupied = entry + bytes(size - len(entry))

    def other_owner(path):
        os.chown(path, 65534, 65534)

    quick = {**calibrated(100000, 1), "ACCEL_LOG_FILE": "/dev/stderr"}
    places = {
        "ours": (lambda path: None, "busy"),
        "others may read it": (lambda path: os.chmod(path, 0o644), "faster"),
        "others may write to it": (lambda path: os.chmod(path, 0o622), "faster"),
        "a symbolic link": (lambda path: (os.rename(path, path + "-"), os.symlink(path + "-", path)), "faster"),
        "longer": (lambda path: os.truncate(path, 2 * size), "faster"),
        "shorter": (lambda path: os.truncate(path, size // 2), "faster"),
        "a folder": (lambda path: (os.unlink(path), os.mkdir(path)), "faster"),
        "a FIFO": (lambda path: (os.unlink(path), os.mkfifo(path, 0o600)), "faster"),
        "nowhere": (lambda path: (os.unlink(path), os.chmod(os.path.dirname(path), 0o500 if os.geteuid() else 0o700)), "faster"),
        "of a dead process": (lambda path: Path(path).write_bytes(struct.pack("<i4xq", 2**30, 2**60) + bytes(size - 16)), "faster"),
        "random": (lambda path: Path(path).write_bytes(os.urandom(size)), None),
    }
    if os.geteuid() == 0:
        places["somebody else's"] = (other_owner, "faster")

    def with_page(number, change):
        home = f"{folder}/page-{number}"
        os.mkdir(home, 0o700)
        path = f"{home}/{page}"
        Path(path).write_bytes(occupied)
        os.chmod(path, 0o600)
        change(path)
        done = start("steps", *READY, "dgemm:600:1", env={**quick, "XDG_RUNTIME_DIR": home})
        os.chmod(home, 0o700)
        return done

    with ThreadPoolExecutor(4) as pool:
        jobs = {name: (pool.submit(with_page, i, change), why) for i, (name, (change, why)) in enumerate(places.items())}
        for name, (job, why) in jobs.items():
            done = job.result()
            seen = [f["why"] for f in lines_for(done)]
            tap.ok(right(done) and not said(done) and len(seen) == 2 and why in (None, seen[1]), f"the page is {name}: {why or 'no harm'}",
                   done.stderr, done.stdout)

    # ---- A device that fails, and one without memory ----

    fast = calibrated(1000, 1)
    done = start("steps", *READY, "dgemm:400:6", env={**fast, "TESTGPU_FAIL": "cuStreamSynchronize:8+"})
    seen = outcomes(lines_for(done)[1:])
    failed = [why for _, why in seen].index("error") if ("cpu", "error") in seen or ("gpu0+cpu", "error") in seen else 0
    tap.ok(right(done) and failed and set(seen[:failed]) == {("gpu0", "faster")} and set(seen[failed + 1:]) == {("cpu", "error")},
           "a device that fails is left alone for good", seen, done.stdout)
    tap.ok(len(said(done)) == 1 and "left alone" in said(done)[0], "one line says why", *said(done))
    report = folder + "/report"
    fails = ",".join(f"cuMemAlloc:{n}" for n in range(7, 27))
    done = start("steps", *READY, "dgemm:300:2", "dgemm:130:1", "dgemm:300:1", "sleep:1300", "dgemm:300:2",
                 env={**fast, "TESTGPU_FAIL": fails, "TESTGPU_REPORT": report})
    seen = outcomes(lines_for(done)[1:])
    tap.ok(right(done) and seen[:2] == 2 * [("cpu", "no_memory")] and seen[3] == ("cpu", "no_memory"),
           "no memory: that call runs on the CPU, and those as large for a while", seen, done.stdout, Path(report).read_text()[-1500:])
    tap.ok(seen[4:] == 2 * [("gpu0", "faster")] and not said(done), "about a second later it is tried again", seen, said(done))
    done = start("steps", *READY, "dgemm:1100:1", "solve:1700:1", env={**fast, "TESTGPU_MEMORY": "24M"})
    tap.ok(right(done) and outcomes(lines_for(done))[1:] == 2 * [("gpu0", "faster")] and float(lines_for(done)[-1]["up_mb"]) > 24,
           "a small device: BLAS goes through in blocks, a solution by LAPACK in panels", outcomes(lines_for(done)), done.stdout)

    # ---- Many callers ----

    cores = len(os.sched_getaffinity(0))
    one_thread = {"OPENBLAS_NUM_THREADS": "1"}
    known = keys(folder, one_thread)
    many = {**calibrated(100, 1), **one_thread, "ACCEL_POLICY": "cpu"}
    for kind in "team", "threads":
        done = start("steps", "dgemm:500:1", f"{kind}:{4 * cores}:500:12", env=many)
        estimates = [float(f["est_cpu_ms"]) for f in lines_for(done)]
        tap.ok(right(done) and estimates[0] == 100, f"{kind}: results are right", done.stdout)
        steps = {round(e * cores / 100, 2) for e in estimates[1:]}
        tap.ok(max(estimates) >= 200 and steps <= {float(n) for n in range(cores, 4 * cores + 1)},
               f"{kind} of {4 * cores} callers on {cores} cores: each call's estimate counts them", sorted(steps))

    # ---- All at once ----

    for name, extra in {"learning": {"ACCEL_LEARN": "1", "ACCEL_MODEL": folder + "/learned"}, "calibrated": fast}.items():
        done = start("random_calls", "-f", "y", "-c", 4, "-n", 160, "-r", "[dz]@(gemm|symm|syrk|trsm)", 8,
                     env={**env, "TESTGPU_GFLOPS": "100", "TESTGPU_UP_GBPS": "5", "TESTGPU_START_MS": "100", "TESTGPU_BUSY": "20", **extra})
        where = {f["ran"] for f in lines_for(done)}
        tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and not said(done), f"8 threads, {name}: right", done.stdout, said(done))
        tap.ok("cpu" in where and (name == "learning" or "gpu0" in where), f"8 threads, {name}: on both sides", where)
tap.done()
