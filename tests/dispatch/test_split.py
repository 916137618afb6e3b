#!/usr/bin/python3 -B
"""One call on several devices: what each of them gets, what the log, the trace and verification say of it, that it is the same each time where it
must be, and what becomes of it if a device or a thread cannot be had."""

import json
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from lib.calibrated import AUTO, calibrate, keys
from lib.log import events, lines_for, parse_json, said
from lib.programs import DEBIAN_PYTHON, LOG, RUNTIME, SHIM, TESTS, UNDER_TSAN, right, start
from lib.split import behind_slow_links, several
from lib.tap import Tap

tap = Tap()
REFERENCE = "/usr/lib/x86_64-linux-gnu/blas"  # others cannot be interrupted like that


def places(done):
    return Counter(line["ran"] for line in lines_for(done))


# ---- What the log says ----

done = start("steps", "dgemm:256:3", env=several(2))
lines = lines_for(done)
tap.ok(right(done) and places(done) == {"gpu0+gpu1": 3} and not said(done), "two devices, one line for each call", done.stdout, done.stderr)
whole = 256 * 256 * 8
tap.ok({(line["up_mb"], line["down_mb"]) for line in lines} == {(f"{3 * whole * 1e-6:.4g}", f"{whole * 1e-6:.4g}")},
       "each byte of a factor goes to each device that needs it, once, those of the result come down once", *lines)
tap.ok({line["tid"] for line in lines} == {lines[0]["pid"]}, "the lines are the calling thread's", *lines)
done = start("steps", "dgemm:256:1", env=several(2, ACCEL_LOG="2"))
moves = [(way, move) for way in ("h2d", "d2h") for move in events(done.stderr, way)]
seen = Counter((way, move["operand"], int(move["rows"]) * int(move["cols"])) for way, move in moves)
half = 128 * 256
tap.ok(right(done) and seen == {("h2d", "a", 2 * half): 2, ("h2d", "b", half): 2, ("d2h", "c", half): 2}, "ACCEL_LOG=2 says what moved", dict(seen))
tap.ok({move["tid"] for _, move in moves} == {lines_for(done)[0]["pid"]}, "those lines are the calling thread's, too", moves)
done = start("steps", "dgemm:300:2", env=several(3, ACCEL_LOG="json"))
ran = {line["ran"] for line in parse_json(done.stderr) if "sym" in line}
tap.ok(right(done) and ran == {"gpu0+gpu1+gpu2"}, "three devices, as JSON", ran, done.stderr[-800:])
done = start("steps", "dgemm:300:2", env=several(16, ACCEL_LOG="1", ACCEL_SUMMARY="1"))
sixteen = "+".join(f"gpu{i}" for i in range(16))
tap.ok(right(done) and places(done) == {sixteen: 2} and sixteen in done.stderr.split("ran=")[-1], "sixteen devices have their names in the log and in the summary",
       places(done), done.stderr[-1500:])
for devices, expected in {"2,0": "gpu0+gpu2", "1": "gpu1", "auto": "gpu0"}.items():
    done = start("steps", "dgemm:300:2", env=several(3, ACCEL_DEVICES=devices))
    tap.ok(right(done) and places(done) == {expected: 2}, f"ACCEL_DEVICES={devices}", places(done), done.stderr[-800:])

# ---- Bytes for each device, by the trace; each has its own rows ----

with tempfile.TemporaryDirectory() as folder:
    done = start("steps", "dgemm:300:2", env=several(3, ACCEL_TRACE=folder + "/trace"))
    trace = json.loads(Path(folder, "trace").read_text())
    trace = trace["traceEvents"] if isinstance(trace, dict) else trace
    rows = {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    sent = defaultdict(float)
    for e in trace:
        if e["ph"] == "X" and e.get("cat") in ("up", "down"):
            sent[rows[e["tid"]], e["name"]] += e["args"]["mb"]
    expected = {}
    for i in range(3):
        expected |= {(f"gpu{i}: up", "a"): 2 * 0.72, (f"gpu{i}: up", "b"): 2 * 0.24, (f"gpu{i}: down", "c"): 2 * 0.24}
    tap.ok(right(done) and {k: round(v, 4) for k, v in sent.items()} == {k: round(v, 4) for k, v in expected.items()},
           "bytes of each operand to each device, in the trace", dict(sent))
    calls = [e for e in trace if e.get("cat") == "call"]
    tap.ok(len(calls) == 2 and all(e["args"]["ran"] == "gpu0+gpu1+gpu2" for e in calls), "the trace has one call for each")

# ---- A triangle's grid: each device gets the lines of the factor that its part has ----

# So many groups of lines there are; a part has two of them.
for devices, groups in ((3, 3), (6, 4), (8, 4)):
    with tempfile.TemporaryDirectory() as folder:
        n = 64 * groups
        done = start("steps", f"dsyrk:{n}:2", env=behind_slow_links(devices, folder, ACCEL_TRACE=folder + "/trace"))
        trace = json.loads(Path(folder, "trace").read_text())
        trace = trace["traceEvents"] if isinstance(trace, dict) else trace
        rows = {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name"}
        sent, back = defaultdict(float), 0
        for e in trace:
            if e["ph"] == "X" and e.get("cat") == "up":
                sent[rows[e["tid"]], e["name"]] += e["args"]["mb"]
            elif e["ph"] == "X" and e.get("cat") == "down":
                back += e["args"]["mb"]
        lines = 2 * 64 * n * 8e-6
        tap.ok(right(done) and len(sent) == devices and {name for _, name in sent} == {"a"} and all(abs(mb - 2 * lines) < 1e-3 * mb for mb in sent.values()),
               f"dsyrk on {devices} devices: two of {groups} groups of lines go to each, once", done.stdout, dict(sent), places(done), done.stderr[-500:])
        tap.ok(back <= 2 * n * n * 8e-6 * 1.001, "each element comes down once", back)

# ---- Verification ----

done = start("steps", "dgemm:300:2", env=several(2, ACCEL_VERIFY="all"))
tap.ok(right(done) and all(float(line["verify"]) < 1 for line in lines_for(done, ran="gpu0+gpu1")) and len(lines_for(done)) == 2,
       "ACCEL_VERIFY judges the whole", done.stderr[-800:])
for kernel in (1, 2):
    done = start("steps", "dgemm:300:3", env=several(2, ACCEL_VERIFY="all", ACCEL_VERIFY_ACTION="cpu", TESTGPU_WRONG=f"gemm:{kernel}"))
    lines = lines_for(done)
    tap.ok(right(done) and [line["why"] for line in lines] == ["verify_failed"] * 3 and places(done) == {"cpu": 3},
           f"a wrong element of kernel {kernel}: the CPU computes, then and later", *lines, *said(done))

# ---- The same each time ----

seen = {}
for name, extra in {"one rank": {}, "again": {}, "slow kernels": {"TESTGPU_DELAY_US": "1000"},
                    "MPI": {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}}.items():
    env = several(3, **extra)
    if name == "MPI":
        del env["ACCEL_START"]
    done = start("steps", "dgemm:300:2", "threads:3:250:3", "dgemm:64:2", env=env)
    seen[name] = Counter((line["m"], line["ran"], line["up_mb"]) for line in lines_for(done))
    tap.ok(right(done) and seen[name] == seen["one rank"], f"calls of one size have one split, whatever other threads do: {name}", seen[name], said(done))
tap.ok(len(seen["one rank"]) == 3, "each size has one", seen["one rank"])
for rank in range(2):
    ranks = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    done = start("steps", "dgemm:300:2", env=several(4, **ranks))
    tap.ok(right(done) and places(done) == {f"gpu{2 * rank}+gpu{2 * rank + 1}": 2}, f"rank {rank} of 2 keeps to its two of four", places(done), done.stderr[-800:])

# ---- When it does not pay, and what is busy ----

with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    calibrate(folder + "/short", known, 100000, 0.2)
    calibrate(folder + "/long", known, 100000, 250)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": "2", "XDG_CACHE_HOME": folder, "XDG_RUNTIME_DIR": folder, "ACCEL_DEVICES": "all"}
    done = start("steps", "dgemm:500:3", env={**env, "ACCEL_START": "wait", "ACCEL_MODEL": folder + "/short"})
    tap.ok(right(done) and places(done) == {"gpu0": 3} and "index=1" not in done.stderr, "a short call runs on one; the other is not even started", done.stderr[-800:])
    done = start("steps", "dgemm:500:3", env={**env, "ACCEL_START": "wait", "ACCEL_MODEL": folder + "/long"})
    lines = lines_for(done)
    tap.ok(right(done) and places(done) == {"gpu0+gpu1": 3} and all(line["why"] == "faster" and 100 < float(line["est_gpu_ms"]) < 200 for line in lines),
           "a long one on both, which the estimate tells", *lines)
    done = start("steps", "dgemm:500:1", "started", "dgemm:500:3", "sleep:500", "dgemm:500:3", env={**env, "ACCEL_MODEL": folder + "/long"})
    tap.ok(right(done) and list(lines_for(done))[-1]["ran"] == "gpu0+gpu1", "started in the background, the second one joins", places(done), done.stderr[-1500:])
    done = start("steps", "solve:500:3", env={**env, "ACCEL_START": "wait", "ACCEL_MODEL": folder + "/long"})
    tap.ok(right(done) and places(done) == {"gpu0": 3}, "LAPACK runs on one", places(done))

# ---- Devices and threads that cannot be had ----

for modes, expected in (("default,prohibited,default", "gpu0+gpu2"), ("default,failing,failing", "gpu0"), ("failing,default,default", "gpu1+gpu2")):
    done = start("steps", "dgemm:300:3", env=several(3, TESTGPU_MODES=modes))
    tap.ok(right(done) and places(done) == {expected: 3}, f"{modes}: the others share it", places(done), done.stderr[-800:])
done = start("steps", "dgemm:300:3", env=several(3, TESTGPU_MEMORY="1G,4M,1G"))
tap.ok(right(done) and len(lines_for(done)) == 3 and set(places(done)) <= {"gpu0+gpu1+gpu2", "gpu0+gpu2"}, "little memory on one", places(done), done.stderr[-800:])
plant = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{SHIM['LD_PRELOAD']}"}
if UNDER_TSAN:
    tap.skip("no threads", "libplant stands before ThreadSanitizer's runtime, which has not started when it is called")
else:
    for fault, name in {"pthread_create:1+": "no thread can be started: the calling one computes all parts", "pthread_create:2": "one thread cannot be started"}.items():
        done = start("steps", "dgemm:300:3", env=several(3, **plant, PLANT=fault))
        tap.ok(right(done) and places(done) == {"gpu0+gpu1+gpu2": 3} and not said(done), name, done.returncode, done.stdout, done.stderr[-800:])

# ---- A factorisation that is too large for one ----

small = {"ACCEL_MEMORY": "600K"}  # a matrix of order 500 has 2 MB
for devices, expected in ((2, "gpu0+gpu1"), (3, "gpu0+gpu1+gpu2")):
    done = start("steps", "solve:500:3", env=several(devices, **small))
    seen = {(line["ran"], line["up_mb"], line["down_mb"]) for line in lines_for(done)}
    tap.ok(right(done) and {ran for ran, _, _ in seen} == {expected} and len(seen) == 1 and not said(done), f"LU of a matrix above the memory of one: {expected}, the same each time", seen,
           *said(done))
# The factors and the pivots (int64) come down once; so does the solution.
tap.ok({round(float(down) * 1e6, -3) for _, _, down in seen} == {round(500 * 500 * 8 + 500 * 8 + 500 * 8, -3)}, "each element comes down once", seen)
if not UNDER_TSAN:
    done = start("steps", "solve:500:3", env=several(3, **small, **plant, PLANT="pthread_create:1+"))
    tap.ok(right(done) and places(done) == {"gpu0": 3} and not said(done), "no thread can be started: the first one does it alone", places(done), done.stderr[-800:])
    done = start("steps", "solve:500:1", env=several(3, **small, **plant, PLANT="pthread_create:1+", ACCEL_LOG="2"))
    moved, total = sum(float(move["mb"]) for move in events(done.stderr, "h2d")), [float(line["up_mb"]) for line in lines_for(done)]
    tap.ok(right(done) and len(total) == 1 and abs(total[0] - moved) < 1e-3 * moved, "what went up before and then counts once", moved, total)
done = start("steps", "solve:500:1", "solvers:4:500:8", env=several(2, **small))
tap.ok(right(done) and set(places(done)) <= {"gpu0+gpu1", "gpu0", "gpu1", "cpu"} and places(done)["gpu0+gpu1"] > 4, "four threads with one each: one at a time is shared", places(done), *said(done))
done = start("steps", "solve:200:3", env=several(2, **small))
tap.ok(right(done) and "+" not in "".join(places(done)), "one that fits stays on one", places(done))

# ---- Forks and cancellation meanwhile ----

if RUNTIME:
    tap.skip("forks", "a child that is forked beside other threads finds the sanitizer's allocator locked")
else:
    for mode in ("main", "thread"):
        done = start("forks_anytime", 60, 30, mode, 0, env=several(2, LD_LIBRARY_PATH=REFERENCE))
        pids = [line["pid"] for line in lines_for(done)]
        parent = max(set(pids), key=pids.count)
        there = Counter((line["ran"], line["why"]) for line in lines_for(done) if line["pid"] == parent)
        children = Counter((line["ran"], line["why"]) for line in lines_for(done) if line["pid"] != parent)
        tap.ok(done.returncode == 0 and done.stdout == "30 children, 0 wrong\n" and there == {("gpu0+gpu1", "forced"): 30 if mode == "main" else there.total()} and
               set(children) == {("cpu", "forked")} and children.total() == 30, f"forks from the {mode} thread, while two devices run calls", done.returncode,
               done.stdout[-500:], there, children, done.stderr[-800:])
    # One device has been started, the other one has not: CUDA's driver is one for both.
    done = start(DEBIAN_PYTHON, "-c", "import os, numpy as n; c = n.linalg.cholesky; a = n.eye(300); c(a)\nif os.fork() == 0:\n  c(a); c(a); os._exit(0)\nos.wait()",
                 env={**several(2, ACCEL_POLICY="gpu"), "OPENBLAS_NUM_THREADS": "1"})
    calls = lines_for(done, sym="dpotrf_")
    tap.ok([(line["ran"], line["why"]) for line in calls] == [("gpu0", "forced")] + [("cpu", "forked")] * 2, "a fork when one of two devices has been started",
           *calls, done.stderr[-300:])
for how in ("deferred",) if UNDER_TSAN else ("deferred", "async"):
    done = start("interrupts", how, 40, env=several(2, LD_LIBRARY_PATH=REFERENCE), timeout=120)
    tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and any("+" in line["ran"] for line in lines_for(done)), f"threads that are cancelled: {how}", done.returncode, done.stdout[-500:],
           places(done), *said(done))
tap.done()
