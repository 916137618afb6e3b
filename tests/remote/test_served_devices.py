#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A server with several GPUs: processes spread over them and stay where their last call ran, results are right, one that fails
is left out and the others go on, and only those of the first one's kind are used. tests/tool/test_fair_order.c has the order in
which calls get places."""

import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from lib import served
from lib.log import lines_for, outcomes, parse_log
from lib.programs import BUILD, LOG, LONG, clean_env, start
from lib.served import ACCEL, Server

wait_for = partial(served.wait_for, seconds=60)
TWO = {"TESTGPU_DEVICES": "2"}


@pytest.fixture
def serve():
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        servers = []

        def begin(*options, **env):
            servers.append(Server(Path(folder), *options, **{**TWO, **env}))
            return servers[-1]

        yield begin
        for server in servers:
            server.kill()


def begin(server, *steps, **env):
    return subprocess.Popen([BUILD / "tests/steps", *steps], env={**clean_env("/tmp"), **server.client(ACCEL_POLICY="gpu", **env)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def top(server, *options):
    return subprocess.run([ACCEL, "top", f"--socket={server.path}", "--once", *options], env=clean_env("/tmp"), stdout=subprocess.PIPE, text=True, check=True).stdout


def of_devices(server, name):
    """A metric of each device."""
    return {gpu: float(value) for gpu, value in re.findall(rf'(?m)^accel_serve_gpu_{name}{{gpu="(\w+)"}} (\S+)$', top(server, "--metrics"))}


def together(server, count, *steps, **env):
    """So many programs, which all have a lane from before the first goes on until the last has done all. What each has said, and its log."""
    go, end = Path(f"{server.path}.go"), Path(f"{server.path}.end")
    ready = [Path(f"{server.path}.{i}") for i in range(count)]
    programs = [begin(server, "dgemm:64:1", f"await:{go}", *steps, f"write:{path}", f"await:{end}", **LOG, **env) for path in ready]
    wait_for(lambda: server.lanes() == count)
    go.touch()
    wait_for(lambda: all(path.exists() for path in ready) or any(program.poll() is not None for program in programs))
    end.touch()
    done = [program.communicate(timeout=300) for program in programs]
    assert [program.returncode for program in programs] == count * [0], done
    return [(stdout, parse_log(stderr)) for stdout, stderr in done]


# ---- Who computes where ----

def test_eight_processes_spread(serve):
    """Four on each, whose results are right."""
    server = serve()
    done = together(server, 8, "dgemm:400:5", "dsyrk:300:3", "solve:300:3", "dgemm:1000:3", ACCEL_RESIDENT="hash")
    homes = Counter()
    for stdout, lines in done:
        assert stdout.count(" 0 wrong") == 5
        # Where the machine has much else to do, a client may not copy in time: busy.
        assert {f["why"] for f in lines} <= {"forced", "busy"}
        wheres = {f["ran"] for f in lines} - {"cpu"}
        assert len(wheres) == 1
        homes.update(wheres)
    assert homes == {"gpu0": 4, "gpu1": 4}


def test_inputs_are_kept_on_each(serve):
    """Those of one process are of no use on the other one's device, and do no harm there."""
    wheres = set()
    for stdout, lines in together(serve(), 2, "dgemm:1000:4", ACCEL_RESIDENT="hash"):
        assert " 0 wrong" in stdout
        assert [(f["up_mb"], f.get("kept_mb")) for f in lines[-4:]] == [("16", None)] + 3 * [("0", "16")]
        wheres.add(lines[-1]["ran"])
    assert wheres == {"gpu0", "gpu1"}


def test_each_device_is_seen(serve):
    server = serve()
    programs = [begin(server, "dgemm:300:3", f"await:{server.path}.go") for _ in range(2)]
    wait_for(lambda: server.metric("calls_total") == 6)
    lines = top(server).splitlines()
    assert lines[0] == f"accel serve, pid {server.process.pid}: 2 x Test GPU, 2 lanes, 1 users"
    for i in range(2):
        assert re.fullmatch(rf"gpu{i}: 0 calls run, of 1 processes; device memory: [1-9]\d*\.\d MB, with 0\.0 MB of kept inputs", lines[2 + i])
    assert of_devices(server, "processes") == {"gpu0": 1, "gpu1": 1}
    assert of_devices(server, "up") == {"gpu0": 1, "gpu1": 1}
    assert sum(of_devices(server, "device_bytes").values()) == server.metric("device_bytes")
    Path(f"{server.path}.go").touch()
    for program in programs:
        assert program.communicate(timeout=60)[0].count(" 0 wrong") == 1
    wait_for(lambda: server.lanes() == 0)
    assert of_devices(server, "processes") == {"gpu0": 0, "gpu1": 0}


def test_it_says_how_many_there_are(serve):
    server = serve()
    done = start("steps", "dgemm:100:1", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    line, = re.findall("(?m)^.* event=gpu .*", done.stderr)
    assert " chosen=server devices=2 " in line
    done = start(str(ACCEL), "doctor", env=server.client(CUDA_HOME="/nowhere"))
    assert re.search(rf"(?m)^OK +server +{server.path}: Test GPU, 2 of them; it is of this build, ", done.stdout), done.stdout
    assert re.search(r"(?m)^OK +a call +dgemm of order 256 ran on gpu[01] of the server$", done.stdout), done.stdout


@pytest.mark.parametrize("devices, indices", (({"ACCEL_DEVICES": "1"}, {"gpu1"}), ({"ACCEL_DEVICES": "1,0"}, {"gpu0", "gpu1"}),
                                              ({"ACCEL_DEVICES": "all"}, {"gpu0", "gpu1"}), ({"CUDA_VISIBLE_DEVICES": "1"}, {"gpu0"}),
                                              ({"TESTGPU_MODES": "prohibited,default"}, {"gpu1"})), ids=str)
def test_its_environment_says_which(serve, devices, indices):
    assert of_devices(serve(**devices), "up").keys() == indices


def test_one_that_cannot_be_had_is_one_line(serve):
    server = serve(TESTGPU_MODES="default,failing")
    assert of_devices(server, "up") == {"gpu0": 1}
    assert re.fullmatch(r"accel serve: no further GPU is used: gpu1: .+\n", server.end())


@pytest.mark.parametrize("kinds, line", (({"TESTGPU_NAME": "Test GPU,Other GPU"}, "gpu1 is left out: Other GPU with 0.9 GB, and gpu0 is Test GPU with 0.9 GB"),
                                         ({"TESTGPU_MEMORY": "1G,2G"}, "gpu1 is left out: Test GPU with 1.7 GB, and gpu0 is Test GPU with 0.9 GB")), ids=str)
def test_those_of_another_kind_are_left_out(serve, kinds, line):
    """What clients decide by is the same for all of them."""
    server = serve(TESTGPU_DEVICES="3" if "TESTGPU_NAME" in kinds else "2", **kinds)
    done = start("steps", "dgemm:100:3", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert outcomes(lines_for(done)) == 3 * [("gpu0", "forced")]
    assert of_devices(server, "up").keys() == {"gpu0"}
    assert server.end().splitlines()[0] == f"accel serve: {line}"


def test_a_program_with_many_threads_has_both(serve):
    """Where its device has no place, another one has."""
    server = serve(TESTGPU_DELAY_US="3000")
    done = start("steps", "threads:24:400:20", env=server.client(**LOG, ACCEL_POLICY="gpu"), timeout=300)
    assert done.returncode == 0
    ran = Counter(f["ran"] for f in lines_for(done, sym="dgemm_"))
    assert ran.keys() == {"gpu0", "gpu1"}
    assert min(ran.values()) > 0.2 * sum(ran.values())
    # What a lane has pinned by one of them, the other one's copies are from, too.
    assert server.end() == ""


# ---- One that fails ----

# A copy or kernel, of whichever device runs it: that one is of no use any more.
FAILS = {"TESTGPU_FAIL": "async:300"}


@pytest.mark.parametrize("options", ((), ("--chunked=0",)), ids=("before", "under way"))
def test_one_that_fails_is_left_out(serve, options):
    """The call in which it does is its program's CPU's, all others go on with the other device."""
    server = serve(*options, **FAILS)
    done = together(server, 8, "dgemm:300:40", "solve:200:20", "dgemm:300:10")
    after, failed = Counter(), 0
    for stdout, lines in done:
        assert stdout.count(" 0 wrong") == 4
        failed += sum((f["ran"], f["why"]) == ("cpu", "error") for f in lines)
        assert {(f["ran"], f["why"]) for f in lines} <= {("gpu0", "forced"), ("gpu1", "forced"), ("cpu", "error")}
        after.update(f["ran"] for f in lines[-10:])
    assert 1 <= failed <= 16
    left, = after
    assert left in ("gpu0", "gpu1")
    gone = {"gpu0": "gpu1", "gpu1": "gpu0"}[left]
    assert of_devices(server, "up") == {left: 1, gone: 0}
    assert f"\n{gone} has failed: 0 calls run, of 0 processes; " in top(server)
    # A program that comes later finds the one that is left.
    late = start("steps", "dgemm:300:3", env=server.client(**LOG, ACCEL_POLICY="gpu"))
    assert outcomes(lines_for(late)) == 3 * [(left, "forced")]
    assert re.fullmatch(rf"accel serve: {gone} has failed, the others go on: .+\n", server.end())


def test_when_all_have_failed_it_ends(serve):
    server = serve(TESTGPU_FAIL="async:200,async:900")
    done = together(server, 4, "dgemm:300:80", "dgemm:100:3")
    for stdout, lines in done:
        assert stdout.count(" 0 wrong") == 3
    assert sum(outcomes(lines).count(("cpu", "error")) for _, lines in done) >= 2 # a call for each device
    assert server.process.wait(60) == 1
    one, other = server.process.stderr.read().splitlines()
    assert re.fullmatch(r"accel serve: gpu[01] has failed, the others go on: .+", one)
    assert re.fullmatch(r"accel serve: the GPU has failed: .+", other)


def test_another_one_of_the_kind_takes_over(serve):
    """A program whose server comes again with another device of the same kind goes on there, and not with one of another."""
    server = serve(CUDA_VISIBLE_DEVICES="0")
    steps = [step for i in range(3) for step in ("dgemm:300:2", f"await:{server.path}.go{i}")]
    client = begin(server, *steps, **LOG)
    for i, env in enumerate(({"CUDA_VISIBLE_DEVICES": "1"}, {"TESTGPU_NAME": "Other GPU"})):
        wait_for(lambda: server.metric("calls_total") == 2)
        server.kill()
        server.env.update(env)
        if i == 0:
            server.begin()
        else:
            other = subprocess.Popen([ACCEL, "serve", f"--socket={server.path}"], env=server.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            assert other.stdout.readline().startswith("accel serve: Other GPU")
        Path(f"{server.path}.go{i}").touch()
        time.sleep(0.2)
    Path(f"{server.path}.go2").touch()
    stdout, stderr = client.communicate(timeout=60)
    other.kill()
    other.communicate()
    assert stdout.count(" 0 wrong") == 3
    assert outcomes(parse_log(stderr))[:4] == 4 * [("gpu0", "forced")]
    assert {where for where in outcomes(parse_log(stderr))[4:]} == {("cpu", "error")}


# ---- Ends at any moment ----

def test_killed_clients_leave_nothing_on_either(serve, tmp_path):
    report, moments = tmp_path / "report", random.Random(3)
    server = serve(TESTGPU_REPORT=str(report))
    for _ in range(30 if LONG else 8):
        clients = [begin(server, "threads:3:500:1000") for _ in range(3)]
        time.sleep(moments.uniform(0.05, 0.4))
        for client in clients:
            client.kill()
            client.communicate()
    wait_for(lambda: server.lanes() == 0)
    assert of_devices(server, "processes") == of_devices(server, "running") == {"gpu0": 0, "gpu1": 0}
    for stdout, lines in together(server, 2, "dgemm:300:3"):
        assert stdout.count(" 0 wrong") == 2
    assert server.end() == ""
    text = report.read_text()
    assert "testgpu fault " not in text
    assert re.search(r"testgpu leaked .*device_allocations=0 ", text), text[-500:]


def test_a_server_that_is_killed_under_programs_on_both(serve):
    server, moments = serve(), random.Random(4)
    clients = [begin(server, f"during:{8000 if LONG else 3000}:{n}") for n in (40, 150, 300, 500)]
    while any(client.poll() is None for client in clients):
        time.sleep(moments.uniform(0.1, 0.6))
        server.kill()
        server.begin()
    for client in clients:
        stdout, stderr = client.communicate()
        assert client.returncode == 0, stdout + stderr[-500:]
        assert " 0 wrong" in stdout
