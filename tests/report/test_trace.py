#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""ACCEL_TRACE: the calls of programs as events of Chrome's trace format. The file is whole at every moment, each
process has its own, events nest, and say what the log says."""

import json
import re
import resource
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest

from lib.log import parse_log, said
from lib.programs import BUILD, DEBIAN_PYTHON, NO_GPU, TEST_GPU, TESTS, clean_env, start

PROGRAM = ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30, "-r", "?gemm"]
GPU = {**TEST_GPU, "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"}
ON_CPU = {**NO_GPU, "ACCEL_POLICY": "cpu"}
PRODUCT = """import numpy as n
a = n.arange(250000.).reshape(500, 500) % 7
b = n.ones((500, 200))
print((a @ b).sum(), round(n.linalg.solve(a + 99 * n.eye(500), b).sum(), 6))"""
FORKS = """import numpy as n, os
a = n.ones((300, 300)); a @ a
if os.fork() == 0:
 a @ a; os._exit(0)
os.wait(); a @ a"""
ENDLESS = "import numpy as n\na = n.ones((99, 99))\nprint()\nwhile True: a @ a"
WRITES = "import numpy as n, os\na = n.ones((300, 300)); a @ a\ntry: os.write(1, b'output')\nexcept OSError: " \
         "os._exit(7)"
DEVICE = 10**9  # tracks from here on are the device's


def calls_of(events):
    return [e for e in events if e.get("cat") == "call"]


def broken(events):
    """What is wrong with events: with their fields, or with the times of those on one track: calls must nest, steps on
    the device lie side by side."""
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


def steps_of(events, *kinds):
    return [e for e in events if e.get("cat") in kinds]


def within(call, step):
    return call["ts"] <= step["ts"] and step["ts"] + step["dur"] <= call["ts"] + call["dur"]


def counted(events, name):
    return [e["args"]["value"] for e in sorted((e for e in events if e["name"] == name), key=lambda e: e["ts"])]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.json"


def trace(path, *command, **env):
    """What ran, and the events of its trace, none of which is broken."""
    done = start(*command, env={**GPU, "ACCEL_TRACE": str(path), **env})
    events = json.loads(path.read_text())
    assert not broken(events)
    return done, events


def python_trace(path, program, **env):
    return trace(path, DEBIAN_PYTHON, "-c", program, **env)


# ---- What it says ----


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The lines of a program's log, and the events of its calls; their numbers as they are written."""
    path = tmp_path_factory.mktemp("logged") / "t.json"
    done, _ = trace(path, *PROGRAM, ACCEL_LOG="1")
    return parse_log(done.stderr), json.loads(path.read_text(), parse_float=str), path


def test_an_event_for_each_line_of_the_log_with_its_fields(logged):
    log, events, _ = logged
    calls = calls_of(events)
    assert len(calls) == len(log) == 8
    for call, fields in zip(calls, log):
        told = {"sym": call["name"], "pid": call["pid"], "tid": call["tid"], **call["args"]}
        assert {name: str(told.get(name)) for name in fields} == fields


def test_as_long_as_the_log_says_to_a_microsecond_and_the_log_s_digits(logged):
    log, _, path = logged
    calls = calls_of(json.loads(path.read_text()))
    apart = [abs(call["dur"] - 1000 * float(fields["ms"])) for call, fields in zip(calls, log) if "ms" in fields]
    assert apart
    assert max(apart) < 2 + 0.001 * max(call["dur"] for call in calls)


def test_names_of_process_and_thread(logged):
    assert names_of(logged[1], "process_name") == {"random_calls"}
    assert "random_calls" in names_of(logged[1], "thread_name")


def test_the_process_has_the_name_of_its_start_whatever_title_it_gives_itself(tmp_path):
    done, events = trace(tmp_path / "t.json", "titles", "ray::task")
    assert done.returncode == 0
    assert names_of(events, "process_name") == {"titles"}


def test_the_time_of_day(logged):
    now = time.time() * 1e6
    for call in calls_of(json.loads(logged[2].read_text())):
        assert now - 600e6 < call["ts"] < now


def test_4_threads_have_4_tracks(path):
    _, events = trace(path, "random_calls", "-c", 50, "-n", 8, "-r", "?gemm", 4)
    calls = calls_of(events)
    assert len(calls) == 4 * 4 * 50
    assert len({c["tid"] for c in calls}) == 4
    named = [e["tid"] for e in events if e["name"] == "thread_name"]
    assert len(named) == len(set(named)), "each thread is named once"
    assert {c["tid"] for c in calls} <= set(named)


def test_inner_calls_lie_within_the_outer_one(path):
    program = "import numpy as n; n.linalg.eigh(n.eye(300)); n.linalg.solve(n.eye(300), n.eye(300))"
    _, events = python_trace(path, program, **ON_CPU)
    assert len(calls_of(events)) > 2


def test_what_is_not_timed_is_a_mark(path):
    _, events = trace(path, "bad_arguments")
    marks = [e for e in calls_of(events) if e["ph"] == "i"]
    assert {(e["args"]["why"], e["s"]) for e in marks} == {("bad_argument", "t")}


# ---- The device ----


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The events of a product and a solution on the GPU."""
    return python_trace(tmp_path_factory.mktemp("device") / "t.json", PRODUCT)[1]


def on_gpu(events):
    return [c for c in calls_of(events) if c["args"]["ran"] == "gpu0"]


def of_product(events):
    """The steps of the product."""
    gemm = next(c for c in on_gpu(events) if c["name"] == "cblas_dgemm")
    return [s for s in steps_of(events, "up", "compute", "down") if within(gemm, s)]


def test_calls_on_the_gpu(device):
    assert {c["name"] for c in on_gpu(device)} == {"cblas_dgemm", "dgesv_"}


def test_what_a_product_does_by_operand(device):
    assert {(s["cat"], s["name"]) for s in of_product(device)} == {("up", "a"), ("up", "b"), ("compute", "cblas_dgemm"),
                                                                   ("down", "c")}


@pytest.mark.parametrize("kind", ["up", "down"])
def test_the_steps_of_a_call_move_its_megabytes(device, kind):
    for call in on_gpu(device):
        moved = sum(s["args"]["mb"] for s in steps_of(device, kind) if s["name"] != call["name"] and within(call, s))
        assert abs(moved - call["args"][f"{kind}_mb"]) < 1e-3 * call["args"][f"{kind}_mb"]


def test_each_step_lies_within_its_call(device):
    for step in steps_of(device, "up", "compute", "down"):
        assert [c for c in on_gpu(device) if within(c, step) and step["args"]["sym"] == c["name"]]


def test_kernels_before_the_result_comes_down(device):
    steps = of_product(device)
    first_down = min(s["ts"] for s in steps if s["cat"] == "down")
    assert max(s["ts"] + s["dur"] for s in steps if s["cat"] == "compute") <= first_down


def test_the_device_s_rows_have_names(device):
    assert {"gpu0: up", "gpu0: compute", "gpu0: down"} <= names_of(device, "thread_name")


def test_counters_of_memory_and_calls(device):
    assert max(counted(device, "device memory (MB)")) > 3
    assert set(counted(device, "calls on the GPU")) == {0, 1}


def test_kernels_last_as_long_as_on_the_device_whenever_the_thread_wakes_up(path):
    """A thread that is told late of the call's begin."""
    _, events = trace(path, "steps", "dgemm:100:40", TESTGPU_WAKE_US="10000", TESTGPU_SEED="1",
                      TESTGPU_LAUNCH_US="1000")
    lasted = [s["dur"] for s in steps_of(events, "compute")]
    assert len(lasted) == 40
    assert min(lasted) > 900


def test_a_product_by_a_schedule_block_by_block(path):
    """Blocks go up and come down, and all that it moves is there."""
    _, events = python_trace(path, "import numpy as n\na = n.ones((1100, 900))\na @ n.ones((900, 800))")
    (call,) = calls_of(events)
    blocks = {kind: [s for s in steps_of(events, kind) if within(call, s)] for kind in ("up", "compute", "down")}
    assert len(blocks["up"]) > 2
    assert len(blocks["down"]) > 1
    assert blocks["compute"]
    for kind in ("up", "down"):
        moved = sum(s["args"]["mb"] for s in blocks[kind])
        assert abs(moved - call["args"][f"{kind}_mb"]) < 1e-3 * moved


def test_an_operand_that_stays(path):
    again = "import numpy as n\na = n.ones((500, 500))\nfor i in range(4): a @ n.ones((500, 300))"
    _, events = python_trace(path, again, ACCEL_RESIDENT="hash")
    assert max(counted(events, "of it kept (MB)")) >= 2


def test_a_call_shows_256_steps(path):
    """Of tiles the first are shown."""
    _, events = python_trace(path, "import numpy as n\na = n.ones((1200, 1200))\na @ a", ACCEL_MEMORY="1M")
    more = [e["args"]["steps"] for e in events if e["name"] == "further steps are left out"]
    assert len(steps_of(events, "up", "compute", "down")) == 256
    assert more[0] > 0


def test_calls_at_once_no_lane_has_two_steps_at_once(path):
    _, events = trace(path, "random_calls", "-c", 30, "-n", 200, "-r", "dgemm", 4)
    running = counted(events, "calls on the GPU")
    assert min(running) == 0
    assert max(running) <= 4


@pytest.mark.parametrize("fault", ["cuEventCreate:2", "cuEventRecord:1", "cuEventRecord:2", "cuEventElapsedTime:1",
                                   "cuEventElapsedTime:1+"])
def test_events_that_fail_are_none_of_the_call_s(path, fault):
    done, events = python_trace(path, PRODUCT, TESTGPU_FAIL=fault)
    assert done.stdout == start(DEBIAN_PYTHON, "-c", PRODUCT).stdout
    assert on_gpu(events)


# ---- The file ----


def test_a_file_that_is_there_stays_and_the_number_goes_into_the_name(path):
    path.write_text("mine\n")
    done = start(*PROGRAM, env={**GPU, "ACCEL_TRACE": str(path)})
    (other,) = [p for p in path.parent.iterdir() if p != path]
    assert path.read_text() == "mine\n"
    assert re.fullmatch(r"t\.\d+\.json", other.name)
    assert len(calls_of(json.loads(other.read_text()))) == 8
    (message,) = said(done)
    assert str(other) in message


def test_accel_run_begins_it_anew(path):
    path.write_text("mine\n")
    done = start(str(BUILD / "accel"), "run", "--policy=gpu", "--trace", str(path), "--", str(TESTS / PROGRAM[0]),
                 *PROGRAM[1:],
                 env={k: v for k, v in GPU.items() if k not in ("LD_PRELOAD", "ACCEL_POLICY")})
    assert len(calls_of(json.loads(path.read_text()))) == 8
    assert not said(done)


def test_a_file_that_cannot_be_made_is_named_once(tmp_path):
    done = start(*PROGRAM, env={**GPU, "ACCEL_TRACE": f"{tmp_path}/none/t.json"})
    assert done.returncode == 0
    (message,) = said(done)
    assert "No such file" in message


def test_no_call_no_file(path):
    start("/bin/true", env={**GPU, "ACCEL_TRACE": str(path)})
    assert not path.exists()


def test_the_child_of_a_fork_has_a_file_of_its_own(tmp_path):
    start(DEBIAN_PYTHON, "-c", FORKS, env={**GPU, "ACCEL_TRACE": f"{tmp_path}/t.%p.%r.json", "PMI_RANK": "3",
                                           "PMI_SIZE": "4"})
    files = {p.name: json.loads(p.read_text()) for p in tmp_path.iterdir()}
    assert sorted(len(calls_of(events)) for events in files.values()) == [1, 2]
    for name, events in files.items():
        assert re.fullmatch(r"t\.\d+\.3\.json", name)
        assert {e["pid"] for e in events} == {int(name.split(".")[1])}, "it says who it is"
    together = sum(files.values(), [])
    assert not broken(together)
    assert [c["args"]["why"] for c in sorted(calls_of(together), key=lambda c: c["ts"])] == ["forced", "forked",
                                                                                             "forced"]


def test_it_is_whole_while_the_program_runs_and_after_sigkill(path):
    endless = subprocess.Popen([DEBIAN_PYTHON, "-c", ENDLESS], stdout=subprocess.DEVNULL,
                               env={**clean_env(str(path.parent)), **ON_CPU, "ACCEL_TRACE": str(path)})
    try:
        while not (path.exists() and path.stat().st_size > 5000) and endless.poll() is None:
            time.sleep(0.02)
        endless.send_signal(signal.SIGSTOP)
        while endless.poll() is None and "State:\tT" not in Path(f"/proc/{endless.pid}/status").read_text():
            time.sleep(0.01)
        while_it_runs = calls_of(json.loads(path.read_text()))
    finally:
        endless.kill()
    assert endless.wait() == -signal.SIGKILL
    assert calls_of(json.loads(path.read_text())) == while_it_runs
    assert len(while_it_runs) > 9


def test_a_full_file_says_how_many_events_are_not_in_it(path):
    """The limit on file sizes, as a full disk: what is there stays whole, and the rest is counted."""
    done = subprocess.run([TESTS / "random_calls", "-i", "cblas-row", "-c", "20", "-n", "30", "-r", "?gemm"],
                          stdout=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)), timeout=300,
                          env={**clean_env(str(path.parent)), **ON_CPU, "ACCEL_TRACE": str(path)})
    events = json.loads(path.read_text())
    left_out = [int(n) for e in events if e["name"] == "process_labels"
                for n in re.findall(r"; (\d+) events left out: File too large$", e["args"]["labels"])]
    assert done.returncode == 0
    assert left_out[0] + len(calls_of(events)) == 80


def test_no_room_for_any_trace_one_line(path):
    """No file, and no signal for the program."""
    done = start("/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", DEBIAN_PYTHON, "-c", WRITES,
                 env={**ON_CPU, "ACCEL_TRACE": str(path)})
    assert done.returncode == 0
    assert "there is no trace" in done.stderr
    assert not path.exists()


def test_the_trace_of_a_program_without_stdout_is_not_that(path):
    """With few descriptors, too."""
    done = start("/bin/sh", "-c", 'ulimit -n 100; exec "$@" >&-', "sh", DEBIAN_PYTHON, "-c", WRITES,
                 env={**ON_CPU, "ACCEL_TRACE": str(path)})
    assert done.returncode == 7
    assert len(calls_of(json.loads(path.read_text()))) == 1
