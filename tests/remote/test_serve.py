#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A process that owns the GPU (`accel serve`) runs the calls of others: right, as in the process, and without CUDA there; in
forked children, too. Whichever of the two ends at whatever moment, or lies, the other one goes on."""

import getpass
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from lib.log import lines_for, outcomes, parse_log, said
from lib.programs import BUILD, LOG, LONG, RUNTIME, clean_env, start
from lib.served import ACCEL, AUTO, Server, wait_for

GPU = ("gpu0", "forced")
# Of a routine, so many calls in so many rounds.
ROUNDS = 400 if LONG else 40
# So many kills of each kind, and messages of clients that lie, where that is asked for.
KILLS, MESSAGES = (int(os.environ.get(name, 0)) for name in ("SERVE_KILLS", "SERVE_MESSAGES"))
DEBIAN_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def folder():
    # A socket's path has little room.
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def server(folder):
    (folder / "shared").mkdir()
    server = Server(folder / "shared")
    yield server
    assert server.end() == ""


@pytest.fixture(scope="module")
def chunking_server(folder):
    """It has clients copy each matrix in chunks, however small."""
    (folder / "chunking").mkdir()
    server = Server(folder / "chunking", "--chunked=0")
    yield server
    assert server.end() == ""


# Servers that have clients copy small matrices before the call, and under way.
both = pytest.mark.parametrize("which", ("server", "chunking_server"), ids=("before", "under way"))


@pytest.fixture
def own_server(folder):
    """One that the test may end."""
    place = Path(tempfile.mkdtemp(dir=folder))
    servers = []

    def begin(*options, **env):
        servers.append(Server(place, *options, **env))
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()


def begin(server, *steps, **env):
    return subprocess.Popen([BUILD / "tests/steps", *steps], env={**clean_env("/tmp"), **server.client(ACCEL_POLICY="gpu", **env)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# ---- Calls ----

def test_products_and_systems_run_there_without_cuda_here(server):
    done = start("steps", "maps", "dgemm:300:3", "dsyrk:300:3", "solve:300:3", "maps", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("libcuda is not there") == 2
    assert done.stdout.count(" 0 wrong") == 3
    for sym in ("dgemm_", "dsyrk_", "dgesv_"):
        assert outcomes(lines_for(done, sym=sym)) == 3 * [GPU]
    line, = re.findall("(?m)^.* event=gpu .*", done.stderr)
    assert " chosen=server " in line


def test_the_first_call_that_pays_goes_there_at_once(server):
    """Nobody waits for CUDA, nothing is warmed up."""
    done = start("steps", "dgemm:1000:1", env=server.client(**LOG))
    assert outcomes(lines_for(done, sym="dgemm_")) == [("gpu0", "faster")]


@pytest.mark.parametrize("interface", ("fortran", "no-lengths", "cblas-column", "cblas-row"))
@pytest.mark.parametrize("program, library", (("random_calls", "liblacking.so"), ("random_calls64", "liblacking64.so")),
                         ids=("LP64", "ILP64"))
@both
def test_random_calls(which, request, program, library, interface):
    server = request.getfixturevalue(which)
    done = start(program, "-f", "y", "-l", BUILD / "tests" / library, "-i", interface, "-s", 7000, "-c", ROUNDS,
                 env=server.client(**LOG, ACCEL_POLICY="gpu"), timeout=1800)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
    assert re.search(r"(?m)^[1-9]\d+ calls, 0 wrong$", done.stdout)
    lines = [f for f in lines_for(done) if (f["ran"], f["why"]) != ("cpu", "empty")]
    assert not [f for f in lines if f["ran"] != "gpu0"][:5]
    # Each routine of BLAS that the device has.
    assert len({f["sym"] for f in lines}) > 70


@pytest.mark.parametrize("program", ("random_lapack", "random_lapack64"))
@both
def test_random_calls_of_lapack(which, request, tmp_path, program):
    server = request.getfixturevalue(which)
    log = tmp_path / "log"
    done = start(program, "-f", "tyesmv", "-n", 60, "-c", 2 if LONG else 1, env=server.client(
        **LOG, ACCEL_POLICY="gpu", ACCEL_LOG_FILE=str(log)), timeout=1800)
    wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    assert done.returncode == 0, (done.stdout[-300:], wrong[:8])
    assert re.search(r"(?m)^\d+ cases, [1-9]\d* calls, 0 wrong,", done.stdout)
    ran = {f["sym"] for f in parse_log(log.read_text()) if f["ran"] == "gpu0"}
    assert len(ran) > 60


def test_inputs_that_come_again_are_found_there(own_server):
    """By a digest, which the program makes; also those of other processes."""
    hashes = own_server().client(**LOG, ACCEL_POLICY="gpu", ACCEL_RESIDENT="hash")
    for brought in (("16", None), ("0", "16")):
        done = start("steps", "dgemm:1000:3", env=hashes)
        assert " 0 wrong" in done.stdout
        assert [(f["up_mb"], f.get("kept_mb")) for f in lines_for(done, sym="dgemm_")] == [brought] + 2 * [("0", "16")]


def test_eight_processes_bring_the_same_matrices_once(own_server):
    server = own_server(TESTGPU_DELAY_US="3000")
    ready = [begin(server, "dgemm:64:1", f"await:{server.path}.go", "dgemm:1000:1", ACCEL_RESIDENT="hash", **LOG) for _ in range(8)]
    wait_for(lambda: server.lanes() == 8)
    Path(f"{server.path}.go").touch()
    up = []
    for process in ready:
        stdout, stderr = process.communicate(timeout=60)
        assert stdout.count(" 0 wrong") == 2
        up.append([f["up_mb"] for f in parse_log(stderr)][-1])
    assert sorted(up) == 7 * ["0"] + ["16"]


def test_eight_threads(server):
    done = start("steps", "threads:8:200:20", "solvers:8:100:20", "team:4:200:20", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert done.returncode == 0, done.stdout
    assert {(f["ran"], f["why"]) for f in lines_for(done, sym="dgemm_")} == {GPU}


def test_matrices_larger_than_the_device(own_server):
    """They go through its memory in parts, as in the process."""
    done = start("steps", "dgemm:1100:1", "solve:1200:2", "dsyrk:1100:1", env=own_server(ACCEL_MEMORY="7M").client(**LOG, ACCEL_POLICY="gpu"))
    assert outcomes(lines_for(done)) == 4 * [GPU]
    assert done.stdout.count(" 0 wrong") == 3


def test_results_are_verified_here(server):
    """Also those that overwrite what the call has read."""
    done = start("steps", "dgemm:300:2", "solve:300:2", env=server.client(**LOG, ACCEL_POLICY="gpu", ACCEL_VERIFY="all"))
    assert done.stdout.count(" 0 wrong") == 2
    assert all(float(f["verify"]) < 1 for f in lines_for(done))
    assert not said(done)


def test_a_signal_ends_a_program_whose_call_computes(own_server):
    server = own_server(TESTGPU_GFLOPS="0.02")
    client = begin(server, "solve:700:1")
    wait_for(lambda: server.lanes() == 1)
    time.sleep(1)
    client.terminate()
    assert client.wait(timeout=5) == -signal.SIGTERM # of ten seconds


IN_PROCESS = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}


def test_a_process_with_larger_operands_starts_cuda_itself(own_server):
    """From then on all its calls are there. Matrices that go in chunks need no room."""
    server = own_server("--room=1", "--chunked=1000")
    done = start("steps", "dgemm:100:2", "dgemm:700:2", "dgemm:250:2", "dgemm:100:2", env=server.client(**LOG, **IN_PROCESS, ACCEL_POLICY="gpu"))
    assert outcomes(lines_for(done)) == 8 * [GPU]
    first, second = re.findall("(?m)^.* event=gpu .*", done.stderr)
    assert " chosen=server " in first
    assert " chosen=only " in second
    assert done.stdout.count(" 0 wrong") == 4


def test_a_training_starts_cuda_here(server):
    """What the provider's own allocator makes, such as a model, is made in the process."""
    done = start("svm_calls", "rand", env=server.client(**LOG, **IN_PROCESS, ACCEL_POLICY="gpu"))
    assert done.returncode == 0
    assert {where for where in outcomes(lines_for(done, sym="svm_train"))} == {GPU}
    assert "chosen=server" not in done.stderr


def test_where_there_is_no_gpu_beside_the_server_these_stay_on_the_cpu(own_server):
    server = own_server("--room=1", "--chunked=1000")
    done = start("steps", "dgemm:100:2", "dgemm:250:2", "dgemm:700:2", "dgemm:250:2", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert [where[0] for where in outcomes(lines_for(done))] == ["gpu0", "gpu0", "cpu", "cpu", "gpu0", "gpu0", "cpu", "cpu"]
    assert done.stdout.count(" 0 wrong") == 4


def test_small_calls_do_not_wait_behind_large_ones(own_server):
    """Twelve threads have large products under way all the time, of which each copy and kernel takes a while."""
    server = own_server(TESTGPU_DELAY_US="3000")
    large = begin(server, "threads:12:700:1000")
    wait_for(lambda: server.lanes() == 12)
    small = begin(server, "dgemm:64:1000")

    def row():
        return re.search(rf"(?m)^ *{small.pid} +\S+ +\S+ +(\d+) .* (\S+) +\S+$", top(server, "--once").stdout)

    wait_for(lambda: row() and int(row()[1]) >= 40)
    waited = float(row()[2])
    assert large.poll() is None and small.poll() is None
    for client in (large, small):
        client.kill()
        client.communicate()
    # Where large ones may have all of the device's streams, they wait for a third of the time.
    assert waited < 1


# ---- Forked children ----

FORKS = """
import multiprocessing, numpy, os, sys
def solve(seed):
    a = numpy.random.default_rng(seed).random((300, 300)) + 300 * numpy.eye(300)
    return float(numpy.abs(numpy.linalg.solve(a, a @ numpy.ones(300)) - 1).max()) < 1e-10
if __name__ == "__main__":
    how, count = sys.argv[1], int(sys.argv[2])
    assert solve(0)
    if how == "os.fork":
        for i in range(count):
            child = os.fork()
            if child == 0:
                os._exit(0 if solve(i) else 1)
            assert os.waitpid(child, 0)[1] == 0
    else:
        with multiprocessing.get_context(how).Pool(4) as pool:
            assert all(pool.map(solve, range(count)))
    assert solve(0)
"""
forks = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is not made for a child that is forked beside other threads")


@forks
@pytest.mark.parametrize("how, count", (("os.fork", 200), ("fork", 40), ("forkserver", 40), ("spawn", 8)))
def test_children_of_a_process_that_has_used_it(server, tmp_path, how, count):
    """Each connects anew; without a server those that are forked stay on the CPU."""
    script, log = tmp_path / "program.py", tmp_path / "log"
    script.write_text(FORKS)
    done = start(DEBIAN_PYTHON, script, how, count, env=server.client(**LOG, ACCEL_POLICY="gpu", ACCEL_LOG_FILE=f"{log}.%p"))
    assert done.returncode == 0, done.stderr[-800:]
    by_process = {}
    for path in tmp_path.glob("log.*"):
        for f in parse_log(path.read_text()):
            if f["sym"].startswith("dgesv"):
                by_process.setdefault(f["pid"], []).append((f["ran"], f["why"]))
    assert sum(map(len, by_process.values())) == count + 2
    assert {where for wheres in by_process.values() for where in wheres} == {GPU}
    assert len(by_process) > 1


# ---- Who ends, and when ----

def test_a_server_that_ends_costs_a_call_its_time_alone(own_server, tmp_path):
    """The call in which it ends is computed here; the next ones find the server that comes after it."""
    server = own_server()
    client = begin(server, "during:6000:100", **LOG, ACCEL_LOG_FILE=str(tmp_path / "log"))
    for _ in range(3):
        time.sleep(0.5)
        server.kill()
        time.sleep(0.5)
        server.begin()
    stdout, _ = client.communicate(timeout=120)
    assert client.returncode == 0, stdout
    assert " 0 wrong" in stdout
    ran = outcomes(parse_log((tmp_path / "log").read_text()))
    assert ran.count(GPU) > 10
    assert ran[-1] == GPU
    assert ran[0] == GPU
    assert {where for where in ran if where != GPU} == {("cpu", "error")}


@pytest.mark.parametrize("step, fails", (("update", "cuMemcpyDtoHAsync:3"), ("update", "cuMemcpyDtoHAsync:12"), ("update_triangle", "cuMemcpyDtoHAsync:3"),
                                         ("update_triangle", "cuMemcpy2DAsync:40")))
def test_the_original_completes_what_has_come_down_in_part(own_server, step, fails):
    """The GPU fails when a part of the program's matrix, to which a product is added, is overwritten."""
    server = own_server("--chunked=0", TESTGPU_FAIL=fails)
    done = start("steps", f"{step}:1500:1", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert outcomes(parse_log(done.stderr)) == [("gpu0+cpu", "error")]
    assert done.returncode == 0, done.stdout


GER = """
import ctypes, numpy
n = ctypes.c_int(3000)
a, x, y = numpy.ones((n.value, n.value), order="F"), numpy.arange(n.value, dtype=float), numpy.ones(n.value)
def at(v):
    return v.ctypes.data_as(ctypes.c_void_p)
ctypes.CDLL("libblas.so.3").dger_(ctypes.byref(n), ctypes.byref(n), at(y), at(x), ctypes.byref(ctypes.c_int(1)), at(y), ctypes.byref(ctypes.c_int(1)), at(a), ctypes.byref(n))
assert (a == 1 + x[:, None]).all()
"""


def test_a_library_that_fails_half_way_ends_no_server(own_server):
    """Tiles of the result are finished: the call is the client's, and the device is well."""
    server = own_server(TESTGPU_FAIL="cublasDger:3")
    done = start(DEBIAN_PYTHON, "-c", GER, env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert done.returncode == 0, done.stderr
    assert outcomes(lines_for(done, sym="dger_")) == [("cpu", "error")]
    assert start("steps", "dgemm:100:5", env=server.client(ACCEL_POLICY="gpu")).stdout.count(" 0 wrong") == 1
    assert server.end() == ""


def test_killed_at_any_moment(own_server):
    """A server that is killed again and again under some programs: no result is wrong, none hangs."""
    server, moments, kills = own_server(), random.Random(1), 0

    def program(step):
        words = step.split(":")
        return begin(server, f"{words[0]}:{20000 if LONG else 8000}:{words[1]}")

    clients = {step: program(step) for step in ("during:40", "during:300", "updating:150", "updating:500")}
    while clients:
        time.sleep(moments.uniform(0.02, 0.42))
        server.kill()
        server.begin()
        kills += 1
        for step in [step for step, client in clients.items() if client.poll() is not None]:
            client = clients.pop(step)
            stdout, stderr = client.communicate()
            assert client.returncode == 0, stdout + stderr[-500:]
            assert " 0 wrong" in stdout
            if kills < KILLS:
                clients[step] = program(step)
    assert kills >= max(KILLS, 5)


def test_clients_that_are_killed_leave_nothing(own_server, folder):
    report = folder / "report"
    server, moments = own_server(TESTGPU_REPORT=str(report)), random.Random(2)
    # It makes as many streams as calls can have at a time.
    assert start("steps", "threads:12:600:6", "threads:12:60:300", env=server.client(ACCEL_POLICY="gpu")).returncode == 0
    for i in range(max(KILLS, 60 if LONG else 20)):
        if i == 5:
            wait_for(lambda: server.lanes() == 0)
            threads, files, memory = server.threads(), server.files(), server.memory()
        client = begin(server, "dgemm:600:1000")
        time.sleep(moments.uniform(0.03, 0.25))
        client.kill()
        client.communicate()
    wait_for(lambda: server.lanes() == 0)
    wait_for(lambda: server.threads() <= threads + 4) # the copy pool's and streams of the device come and go
    wait_for(lambda: server.files() == files)
    assert RUNTIME or server.memory() < memory + (16 << 20) # a sanitizer keeps what is freed
    assert start("steps", "dgemm:100:5", env=server.client(ACCEL_POLICY="gpu")).stdout.count(" 0 wrong") == 1
    assert server.end() == ""
    text = report.read_text()
    assert "testgpu fault " not in text
    assert re.search(r"testgpu leaked .*device_allocations=0 ", text), text[-500:]


def lane_kib(pid):
    """What a process has of its lanes' memory."""
    smaps = Path(f"/proc/{pid}/smaps").read_text()
    return sum(int(kib) for kib in re.findall(r"memfd:accel-lane.*\n(?:(?!.*-.* ).*\n)*?Rss: +(\d+) kB", smaps))


def test_a_client_that_sleeps_holds_no_memory(own_server):
    server = own_server()
    client = begin(server, "dgemm:1000:2", "solve:900:2", f"write:{server.path}.done", f"await:{server.path}.go", "solve:900:2", "dgemm:1000:2")
    wait_for(Path(f"{server.path}.done").exists)
    assert lane_kib(client.pid) > 4000
    wait_for(lambda: max(lane_kib(client.pid), lane_kib(server.process.pid)) < 600)
    Path(f"{server.path}.go").touch()
    assert client.communicate(timeout=60)[0].count(" 0 wrong") == 4


def test_a_server_with_another_gpu_gets_no_calls(own_server):
    """What is known of the device, and has been decided by it, would be wrong."""
    server = own_server(TESTGPU_DEVICES="2", TESTGPU_MEMORY="1G,2G", CUDA_VISIBLE_DEVICES="0")
    client = begin(server, "dgemm:300:1", f"await:{server.path}.go", "dgemm:300:1", **LOG)
    wait_for(lambda: re.search(r"(?m)^ *all +\d+ +1 ", top(server, "--once").stdout))
    server.kill()
    server.env["CUDA_VISIBLE_DEVICES"] = "1"
    server.begin()
    Path(f"{server.path}.go").touch()
    stdout, stderr = client.communicate(timeout=60)
    assert stdout.count(" 0 wrong") == 2
    assert outcomes(parse_log(stderr)) == [GPU, ("cpu", "error")]


def test_a_server_that_gives_no_sign_of_life(own_server):
    """Stopped, it is waited for ten seconds, and then left."""
    server = own_server()
    client = begin(server, "dgemm:300:1", f"await:{server.path}.go", "dgemm:300:1", **LOG)
    time.sleep(1)
    server.process.send_signal(signal.SIGSTOP)
    Path(f"{server.path}.go").touch()
    stdout, stderr = client.communicate(timeout=60)
    server.process.send_signal(signal.SIGCONT)
    assert stdout.count(" 0 wrong") == 2
    assert outcomes(parse_log(stderr)) == [GPU, ("cpu", "error")]
    assert stderr.count(' event=server_lost reason="the server has given no sign of life for 10 s"\n') == 1


def test_a_client_that_stops_while_it_is_to_copy(own_server):
    """It loses the call that it had under way, and nothing else; others go on meanwhile."""
    server = own_server()
    client = begin(server, "during:12000:700", **LOG)
    wait_for(lambda: server.metric("calls_total") > 5)
    client.send_signal(signal.SIGSTOP)
    while server.metric("running") == 0: # it was between two calls
        client.send_signal(signal.SIGCONT)
        time.sleep(0.03)
        client.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    other = start("steps", "dgemm:700:5", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert outcomes(lines_for(other)) == 5 * [GPU]
    time.sleep(max(0, 6 - (time.monotonic() - begun)))
    client.send_signal(signal.SIGCONT)
    stdout, stderr = client.communicate(timeout=60)
    assert " 0 wrong" in stdout
    ran = outcomes(parse_log(stderr))
    assert [where for where in ran if where != GPU] == [("cpu", "busy")]
    assert ran[-1] == GPU


def test_a_client_that_stops_while_a_result_comes_down(own_server):
    """The memory through which it comes is the client's until its copies have ended, however late: what it writes then is the product."""
    server = own_server()
    client = begin(server, "update_stop:1500:1", "dgemm:1000:1", **LOG)
    wait_for(lambda: Path(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    wait_for(lambda: server.metric("running") == 0)
    time.sleep(2) # in which the server gives back memory that idle clients do not need
    client.send_signal(signal.SIGCONT)
    stdout, stderr = client.communicate(timeout=60)
    assert stdout.count(" 0 wrong") == 2, stdout
    assert [f["ran"] for f in parse_log(stderr)] == ["gpu0+cpu", "gpu0"]


# ---- Who is no server of ours ----

def as_server(path, answer):
    """Listens at a path, and does this with the first connection."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen()

    def run():
        connection, _ = listening.accept()
        answer(connection)
        connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


ANSWERS = {"closes": lambda c: None, "says nothing": lambda c: time.sleep(4), "sends another message": lambda c: c.send(b"hello"),
           "is of another build": lambda c: (c.recv(10000), c.send(b"x" * WELCOME_BYTES))}
WELCOME_BYTES = 2048


@pytest.mark.parametrize("answer", ANSWERS)
def test_who_is_no_server_is_left_alone(folder, answer):
    place = Path(tempfile.mkdtemp(dir=folder)) / "serve"
    as_server(place, ANSWERS[answer])
    begun = time.monotonic()
    done = start("steps", "dgemm:600:3", env={**AUTO, **LOG, "ACCEL_SERVER": str(place)})
    assert done.stdout.count(" 0 wrong") == 1
    assert {f["ran"] for f in lines_for(done, sym="dgemm_")} == {"cpu"}
    assert time.monotonic() - begun < 30
    assert any(line.startswith(f"accel: {place}: ") for line in said(done)), said(done)


@pytest.mark.parametrize("off", ({"ACCEL_SERVER": "off"}, {"ACCEL_SERVER": "0"}, {"CUDA_VISIBLE_DEVICES": "-1"}, {"CUDA_VISIBLE_DEVICES": ""}), ids=str)
def test_off(server, off):
    done = start("steps", "dgemm:600:3", env={**server.client(**LOG), **off})
    assert "chosen=server" not in done.stderr
    assert {f["ran"] for f in lines_for(done, sym="dgemm_")} == {"cpu"}


# ---- What it has done ----

def top(server, *options):
    return subprocess.run([ACCEL, "top", f"--socket={server.path}", *options], env=clean_env("/tmp"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_top(own_server):
    server = own_server()
    client = begin(server, "dgemm:200:5", "solve:100:3", f"await:{server.path}.go", "dgemm:100:1")
    wait_for(lambda: re.search(r"(?m)^ *all +\d+ +8 ", top(server, "--once").stdout))
    lines = top(server).stdout.splitlines()
    assert lines[0] == f"accel serve, pid {server.process.pid}: Test GPU, 1 lanes, 1 users"
    assert re.fullmatch(r"0 calls run, 0 wait \(0 small ones\); device memory: \d+\.\d MB, with 0\.0 MB of kept inputs", lines[1])
    assert lines[2].split() == "pid user seconds calls refused up MB down MB busy % wait % program".split()
    for line, name in zip(lines[3:], (["all"], [str(client.pid), getpass.getuser()])):
        assert line.split()[:len(name)] == name
        assert line.split()[len(name) + 1:len(name) + 5] == ["8", "0", "3.4", "1.8"], line
    assert lines[4].split()[-1] == "steps"
    Path(f"{server.path}.go").touch()
    client.communicate()
    wait_for(lambda: server.lanes() == 0)
    lines = top(server).stdout.splitlines()
    assert [line.split()[2] for line in lines[3:]] == ["9"]
    metrics = dict(line.split() for line in top(server, "--metrics").stdout.splitlines() if not line.startswith("#"))
    assert (metrics["accel_serve_calls_total"], metrics["accel_serve_lanes"]) == ("9", "0")
    assert float(metrics["accel_serve_upload_bytes_total"]) > 3e6


def test_top_without_a_server(folder):
    done = subprocess.run([ACCEL, "top", f"--socket={folder}/none"], env=clean_env("/tmp"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"accel top: {folder}/none: no server answers: No such file or directory\n"


# ---- Clients that lie ----

SEEDS = range(1, 9 if LONG else 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_clients_that_lie(own_server, seed):
    """Whatever they ask for, and write into what they share with it, the server serves on. It may find no fault but that they
    change what is being copied."""
    server, told = own_server(), []
    reader = threading.Thread(target=lambda: told.extend(server.process.stderr)) # of more than a pipe holds
    reader.start()
    count = -(-MESSAGES // len(SEEDS)) or (1_000_000 if LONG else 5000)
    done = start("hostile_client", server.path, seed, count, timeout=7200)
    assert done.returncode == 0, done.stderr + "".join(told)[-500:]
    assert int(re.fullmatch(rf"{count} requests, (\d+) done\n", done.stdout)[1]) > count / 20
    assert start("steps", "dgemm:100:5", "solve:100:5", env=server.client(ACCEL_POLICY="gpu")).stdout.count(" 0 wrong") == 2
    server.process.terminate()
    assert server.process.wait(timeout=60) == 0
    reader.join()
    assert [line for line in told if " what=source_changed " not in line] == []
