#!/usr/bin/python3 -B
"""ACCEL_TRACE: the calls of programs as events of Chrome's trace format. The file is whole at every moment, each process has its
own, events nest, and say what the log says."""

import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from lib.log import parse_log, said
from lib.programs import BUILD, DEBIAN_PYTHON, NO_GPU, TEST_GPU, TESTS, clean_env, start
from lib.tap import Tap

tap = Tap()
PROGRAM = ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30, "-r", "?gemm"]
GPU = {**TEST_GPU, "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"}


DEVICE = 10**9  # tracks from here on are the device's


def calls_of(events):
    return [e for e in events if e.get("cat") == "call"]


def broken(events):
    """What is wrong with events: with their fields, or with the times of those on one track: calls must nest, steps on the device lie side by side."""
    wrong, tracks = [], defaultdict(list)
    for e in events:
        if not {"ph", "name", "pid", "tid"} <= e.keys() or e["ph"] not in "MXiC" or (e["ph"] != "M") != ("ts" in e):
            wrong.append(e)
        elif e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append((e["ts"], -e["dur"], e["name"]))
    for (_, number), track in tracks.items():
        ends = []
        for begin, minus, name in sorted(track):
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and (begin - minus > ends[-1] or (number >= DEVICE and minus)):
                wrong.append(("overlaps", name, begin, -minus))
            ends.append(begin - minus)
    return wrong


def names_of(events, what):
    return {e["args"]["name"] for e in events if e["name"] == what}


# ---- What it says ----

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "t.json")
    done = start(*PROGRAM, env={**GPU, "ACCEL_TRACE": str(path), "ACCEL_LOG": "1"})
    log, events = parse_log(done.stderr), json.loads(path.read_text(), parse_float=str)
    calls = calls_of(events)
    tap.ok(not broken(events), "events of the format, nested", *broken(events))
    said_of = [{"sym": c["name"], "pid": c["pid"], "tid": c["tid"], **c["args"]} for c in calls]
    same = [all(k in s and str(s[k]) == v for k, v in f.items()) for s, f in zip(said_of, log)]
    tap.ok(len(calls) == len(log) == 8 and all(same), "an event for each line of the log, with its fields", *calls, *log)
    apart = [abs(c["dur"] - 1000 * float(f["ms"])) for c, f in zip(calls, log) if "ms" in f]
    tap.ok(apart and max(apart) < 2 + 0.001 * max(c["dur"] for c in calls), "as long as the log says, to a microsecond and the log's digits", *apart)
    tap.ok(names_of(events, "process_name") == {"random_calls"} <= names_of(events, "thread_name"), "names of process and thread")
    now = time.time() * 1e6
    tap.ok(all(now - 600e6 < c["ts"] < now for c in calls), "the time of day")

    # Another thread's calls have a track of their own.
    path.unlink()
    start("random_calls", "-c", 50, "-n", 8, "-r", "?gemm", 4, env={**GPU, "ACCEL_TRACE": str(path)})
    events = json.loads(path.read_text())
    calls = calls_of(events)
    tap.ok(len(calls) == 4 * 4 * 50 and len({c["tid"] for c in calls}) == 4 and not broken(events), "4 threads, 4 tracks", len(calls), *broken(events))
    named = [e["tid"] for e in events if e["name"] == "thread_name"]
    tap.ok(len(named) == len(set(named)) and {c["tid"] for c in calls} <= set(named), "each thread is named once")

    # Calls inside calls; and those that are not timed.
    path.unlink()
    done = start(DEBIAN_PYTHON, "-c", "import numpy as n; n.linalg.eigh(n.eye(300)); n.linalg.solve(n.eye(300), n.eye(300))",
                 env={**NO_GPU, "ACCEL_TRACE": str(path), "ACCEL_POLICY": "cpu"})
    events = json.loads(path.read_text())
    tap.ok(len(calls_of(events)) > 2 and not broken(events), "inner calls lie within the outer one", *broken(events))
    path.unlink()
    start("bad_arguments", env={**GPU, "ACCEL_TRACE": str(path)})
    marks = [e for e in calls_of(json.loads(path.read_text())) if e["ph"] == "i"]
    tap.ok(marks and all(e["args"]["why"] == "bad_argument" and e["s"] == "t" for e in marks), "what is not timed is a mark", *marks)

# ---- The device ----


def steps_of(events, *kinds):
    return [e for e in events if e.get("cat") in kinds]


def within(call, step):
    return call["ts"] <= step["ts"] and step["ts"] + step["dur"] <= call["ts"] + call["dur"]


def counted(events, name):
    return [e["args"]["value"] for e in sorted((e for e in events if e["name"] == name), key=lambda e: e["ts"])]


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "t.json")
    product = "import numpy as n\na = n.arange(250000.).reshape(500, 500) % 7\nb = n.ones((500, 200))\nprint((a @ b).sum(), round(n.linalg.solve(a + 99 * n.eye(500), b).sum(), 6))"
    plain = start(DEBIAN_PYTHON, "-c", product)
    done = start(DEBIAN_PYTHON, "-c", product, env={**GPU, "ACCEL_TRACE": str(path)})
    events = json.loads(path.read_text())
    calls = [c for c in calls_of(events) if c["args"]["ran"] == "gpu0"]
    tap.ok({c["name"] for c in calls} == {"cblas_dgemm", "dgesv_"} and not broken(events), "calls on the GPU; steps of one kind do not overlap", *broken(events))
    gemm = next(c for c in calls if c["name"] == "cblas_dgemm")
    steps = [s for s in steps_of(events, "up", "compute", "down") if within(gemm, s)]
    tap.ok({(s["cat"], s["name"]) for s in steps} == {("up", "a"), ("up", "b"), ("compute", "cblas_dgemm"), ("down", "c")}, "what a product does, by operand", *steps)
    for kind, key in (("up", "up_mb"), ("down", "down_mb")):
        moved = [sum(s["args"]["mb"] for s in steps_of(events, kind) if s["name"] != c["name"] and within(c, s)) for c in calls]
        tap.ok(all(abs(m - c["args"][key]) < 1e-3 * c["args"][key] for m, c in zip(moved, calls)), f"the steps of a call move its {key}", *zip(moved, calls))
    tap.ok(all(any(within(c, s) and s["args"]["sym"] == c["name"] for c in calls) for s in steps_of(events, "up", "compute", "down")), "each step lies within its call")
    first_down = min(s["ts"] for s in steps if s["cat"] == "down")
    tap.ok(all(s["ts"] + s["dur"] <= first_down for s in steps if s["cat"] == "compute"), "kernels before the result comes down")
    tap.ok({"gpu0: up", "gpu0: compute", "gpu0: down"} <= names_of(events, "thread_name"), "the device's rows have names")
    tap.ok(max(counted(events, "device memory (MB)")) > 3 and set(counted(events, "calls on the GPU")) == {0, 1}, "counters of memory and calls")

    # A thread that is told late of the call's begin.
    path.unlink()
    start("steps", "dgemm:100:40", env={**GPU, "ACCEL_TRACE": str(path), "TESTGPU_WAKE_US": "10000", "TESTGPU_SEED": "1", "TESTGPU_LAUNCH_US": "1000"})
    events = json.loads(path.read_text())
    lasted = [s["dur"] for s in steps_of(events, "compute")]
    tap.ok(len(lasted) == 40 and min(lasted) > 900 and not broken(events), "kernels last as long as on the device, whenever the thread wakes up", *sorted(lasted)[:3])

    # A product by a schedule: blocks go up and come down, and all that it moves is there.
    path.unlink()
    start(DEBIAN_PYTHON, "-c", "import numpy as n\na = n.ones((1100, 900))\na @ n.ones((900, 800))", env={**GPU, "ACCEL_TRACE": str(path)})
    events = json.loads(path.read_text())
    (call,) = calls_of(events)
    blocks = {kind: [s for s in steps_of(events, kind) if within(call, s)] for kind in ("up", "compute", "down")}
    moved = {kind: sum(s["args"]["mb"] for s in blocks[kind]) for kind in ("up", "down")}
    tap.ok(len(blocks["up"]) > 2 and len(blocks["down"]) > 1 and blocks["compute"] and not broken(events) and
           all(abs(m - call["args"][f"{kind}_mb"]) < 1e-3 * m for kind, m in moved.items()), "a product by a schedule, block by block", moved, *blocks.values())

    # An operand that stays; tiles, of which the first are shown; calls at once.
    path.unlink()
    again = "import numpy as n\na = n.ones((500, 500))\nfor i in range(4): a @ n.ones((500, 300))"
    start(DEBIAN_PYTHON, "-c", again, env={**GPU, "ACCEL_TRACE": str(path), "ACCEL_RESIDENT": "hash"})
    tap.ok(max(counted(json.loads(path.read_text()), "of it kept (MB)")) >= 2, "what is kept")
    path.unlink()
    start(DEBIAN_PYTHON, "-c", "import numpy as n\na = n.ones((1200, 1200))\na @ a", env={**GPU, "ACCEL_TRACE": str(path), "ACCEL_MEMORY": "1M"})
    events = json.loads(path.read_text())
    more = [e["args"]["steps"] for e in events if e["name"] == "further steps are left out"]
    tap.ok(len(steps_of(events, "up", "compute", "down")) == 256 and more and more[0] > 0 and not broken(events), "a call shows 256 steps", len(events), more)
    path.unlink()
    start("random_calls", "-c", 30, "-n", 200, "-r", "dgemm", 4, env={**GPU, "ACCEL_TRACE": str(path)})
    events = json.loads(path.read_text())
    running = counted(events, "calls on the GPU")
    tap.ok(not broken(events) and min(running) == 0 and max(running) <= 4, "4 threads: no lane has two steps at once", *broken(events))

    # Events that fail are none of the call's.
    for fault in ("cuEventCreate:2", "cuEventRecord:1", "cuEventRecord:2", "cuEventElapsedTime:1", "cuEventElapsedTime:1+"):
        path.unlink()
        done = start(DEBIAN_PYTHON, "-c", product, env={**GPU, "ACCEL_TRACE": str(path), "TESTGPU_FAIL": fault})
        events = json.loads(path.read_text())
        tap.ok(done.stdout == plain.stdout and not broken(events) and any(c["args"]["ran"] == "gpu0" for c in calls_of(events)), f"{fault} fails: the call does not", done.stdout)

# ---- The file ----

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "t.json")
    path.write_text("mine\n")
    done = start(*PROGRAM, env={**GPU, "ACCEL_TRACE": str(path)})
    others = [p for p in Path(folder).iterdir() if p != path]
    tap.ok(path.read_text() == "mine\n" and len(others) == 1 and re.fullmatch(r"t\.\d+\.json", others[0].name) and
           len(calls_of(json.loads(others[0].read_text()))) == 8, "a file that is there stays; the number goes into the name", *others)
    tap.ok(len(said(done)) == 1 and str(others[0]) in said(done)[0], "which a message says", *said(done))
    done = start(str(BUILD / "accel"), "run", "--policy=gpu", "--trace", str(path), "--", str(TESTS / PROGRAM[0]), *map(str, PROGRAM[1:]),
                 env={k: v for k, v in GPU.items() if k not in ("LD_PRELOAD", "ACCEL_POLICY")})
    tap.ok(len(calls_of(json.loads(path.read_text()))) == 8 and not said(done), "accel run --trace begins it anew", *said(done))
    done = start(*PROGRAM, env={**GPU, "ACCEL_TRACE": folder + "/none/t.json"})
    tap.ok(done.returncode == 0 and len(said(done)) == 1 and "No such file" in said(done)[0], "a file that cannot be made is named once", *said(done))
    done = start("/bin/true", env={**GPU, "ACCEL_TRACE": folder + "/no.json"})
    tap.ok(not Path(folder, "no.json").exists(), "no call, no file")

with tempfile.TemporaryDirectory() as folder:
    pattern = folder + "/t.%p.%r.json"
    forks = "import numpy as n, os\na = n.ones((300, 300)); a @ a\nif os.fork() == 0:\n a @ a; os._exit(0)\nos.wait(); a @ a"
    start(DEBIAN_PYTHON, "-c", forks, env={**GPU, "ACCEL_TRACE": pattern, "PMI_RANK": "3", "PMI_SIZE": "4", "ACCEL_POLICY": "gpu"})
    files = {p.name: json.loads(p.read_text()) for p in Path(folder).iterdir()}
    tap.ok(sorted(len(calls_of(e)) for e in files.values()) == [1, 2] and all(re.fullmatch(r"t\.\d+\.3\.json", n) for n in files),
           "the child of a fork has a file of its own", *files)
    tap.ok(all({c["pid"] for c in e} == {int(n.split(".")[1])} for n, e in files.items()), "in which it says who it is")
    together = sum(files.values(), [])
    order = [c["args"]["why"] for c in sorted(calls_of(together), key=lambda c: c["ts"])]
    tap.ok(order == ["forced", "forked", "forced"] and not broken(together), "put together, they are in the order of time", *order)

# It is whole whenever one looks, also when the process is killed.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "t.json")
    endless = subprocess.Popen([DEBIAN_PYTHON, "-c", "import numpy as n\na = n.ones((99, 99))\nprint()\nwhile True: a @ a"], stdout=subprocess.DEVNULL,
                               env={**clean_env(folder), **NO_GPU, "ACCEL_POLICY": "cpu", "ACCEL_TRACE": str(path)})
    while not (path.exists() and path.stat().st_size > 5000) and endless.poll() is None:
        time.sleep(0.02)
    endless.send_signal(signal.SIGSTOP)
    while endless.poll() is None and "State:\tT" not in Path(f"/proc/{endless.pid}/status").read_text():
        time.sleep(0.01)
    while_it_runs = calls_of(json.loads(path.read_text()))
    endless.kill()
    tap.ok(endless.wait() == -signal.SIGKILL and calls_of(json.loads(path.read_text())) == while_it_runs and len(while_it_runs) > 9,
           "whole while it runs, and after SIGKILL", len(while_it_runs))

    # The limit on file sizes, as a full disk: what is there stays whole, and the rest is counted.
    path.unlink()
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    done = subprocess.run([TESTS / "random_calls", "-i", "cblas-row", "-c", "20", "-n", "30", "-r", "?gemm"], preexec_fn=limited, capture_output=True, text=True,
                          env={**clean_env(folder), **NO_GPU, "ACCEL_POLICY": "cpu", "ACCEL_TRACE": str(path)}, timeout=300)
    events = json.loads(path.read_text())
    left_out = [int(n) for e in events if e["name"] == "process_labels" for n in re.findall(r"; (\d+) events left out: File too large$", e["args"]["labels"])]
    tap.ok(done.returncode == 0 and left_out and left_out[0] + len(calls_of(events)) == 80, "a full file says how many events are not in it", left_out, len(events), done.returncode)

    # No byte may be written: no trace, no file, and no signal for the program. Without stdout and
    # with few descriptors, the trace takes neither's place.
    path.unlink()
    multiply = [DEBIAN_PYTHON, "-c", "import numpy as n, os\na = n.ones((300, 300)); a @ a\ntry: os.write(1, b'output')\nexcept OSError: os._exit(7)"]
    done = start("/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *multiply, env={**NO_GPU, "ACCEL_POLICY": "cpu", "ACCEL_TRACE": str(path)})
    tap.ok(done.returncode == 0 and "there is no trace" in done.stderr and not path.exists(), "no room for any trace: one line", done.returncode, done.stderr)
    done = start("/bin/sh", "-c", 'ulimit -n 100; exec "$@" >&-', "sh", *multiply, env={**NO_GPU, "ACCEL_POLICY": "cpu", "ACCEL_TRACE": str(path)})
    tap.ok(done.returncode == 7 and len(calls_of(json.loads(path.read_text()))) == 1, "a program without stdout: the trace is not that", done.returncode, done.stderr)

tap.done()
