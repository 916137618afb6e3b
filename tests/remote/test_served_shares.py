#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Who waits for a server's device: users have shares of it by their weights, and so have processes, whatever number of threads
each has; no call waits for ever; each user's calls have so much of its memory. tests/tool/test_fair_order.c has the order itself."""

import os
import re
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from lib import served
from lib.log import lines_for, outcomes, parse_log
from lib.programs import BUILD, LOG, SHIM, clean_env, start

TOOL = str(BUILD / "accel")
wait_for = partial(served.wait_for, seconds=60)
ALICE, BOB = 64002, 64003
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of several users")


class Place:
    """A server whose device is slow, and programs that want it all the time."""

    def __init__(self, folder):
        self.socket, self.started = folder / "serve", []

    def serve(self, *words, delay_us=3000, devices=1):
        env = {**clean_env("/tmp"), "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": str(delay_us), "TESTGPU_DEVICES": str(devices)}
        self.server = subprocess.Popen([TOOL, "serve", f"--socket={self.socket}", "--idle=0", *words], env=env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(self.server)
        said = "accel serve: " + (f"{devices} x " if devices > 1 else "") + "Test GPU, at "
        assert self.server.stdout.readline().startswith(said), self.server.stderr.read()

    def env(self, **more):
        return {**SHIM, "ACCEL_POLICY": "gpu", "ACCEL_CUDA_DIR": "/nowhere", "ACCEL_SERVER": str(self.socket), "OPENBLAS_NUM_THREADS": "1", **more}

    def begin(self, *steps, user=0, **env):
        program = subprocess.Popen([BUILD / "tests/steps", *steps], env={**clean_env("/tmp"), **self.env(**env)}, user=user, group=user, extra_groups=[],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(program)
        return program

    def top(self):
        return subprocess.run([TOOL, "top", "--once", f"--socket={self.socket}"], env=clean_env("/tmp"), stdout=subprocess.PIPE, text=True).stdout

    def calls(self):
        """pid -> calls that are done, of all its lanes."""
        done = {}
        for pid, rest in re.findall(r"(?m)^ *(\d+) +(?:\S+) +(\d+ +\d+) ", self.top()):
            done[int(pid)] = done.get(int(pid), 0) + int(rest.split()[1])
        return done

    def metrics(self):
        text = subprocess.run([TOOL, "top", "--metrics", f"--socket={self.socket}"], env=clean_env("/tmp"), stdout=subprocess.PIPE, text=True).stdout
        return {name: float(value) for name, value in re.findall(r"(?m)^accel_serve_(\w+) (\S+)$", text)}


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="accel-shares-") as folder:
        os.chmod(folder, 0o755)
        made = Place(Path(folder))
        yield made
        for process in reversed(made.started):
            process.kill()
            process.communicate()


def calls_meanwhile(place, programs, count=150):
    """How many calls of each are done in a time in which all together do so many, once each has done some."""
    wait_for(lambda: all(place.calls().get(p.pid, 0) > 3 for p in programs))
    before = place.calls()
    wait_for(lambda: sum(place.calls().values()) - sum(before.values()) >= count)
    after = place.calls()
    assert all(p.poll() is None for p in programs)
    return [after[p.pid] - before[p.pid] for p in programs]


def test_a_process_with_many_threads_has_no_more_than_one_with_few(place):
    place.serve()
    many, few = calls_meanwhile(place, [place.begin("threads:24:400:100000"), place.begin("threads:6:400:100000")])
    # Four times as many where each waits in one line.
    assert 0.5 < many / few < 2, (many, few)


@root
def test_users_have_shares_by_their_weights(place):
    """Alice has four processes, Bob one of three times the weight."""
    place.serve("--mode=666", f"--weight={ALICE}=1,{BOB}=3")
    *alice, bob = calls_meanwhile(place, [place.begin("threads:6:400:100000", user=user) for user in 4 * [ALICE] + [BOB]], 300)
    assert 1.7 < bob / sum(alice) < 5, (alice, bob) # 0.25 in one line, and 1 without weights
    assert max(alice) < 2.5 * min(alice)


@root
def test_users_have_equal_shares_of_several_devices(place):
    """Of all of them together, wherever their processes are."""
    place.serve("--mode=666", devices=2)
    *alice, bob = calls_meanwhile(place, [place.begin(f"threads:{16 if user == BOB else 6}:400:100000", user=user) for user in 4 * [ALICE] + [BOB]], 400)
    assert 0.6 < bob / sum(alice) < 1.7, (alice, bob) # a third where each device has an order of its own
    assert max(alice) < 2.5 * min(alice)


def test_who_waits_is_seen(place):
    place.serve()
    program = place.begin("threads:12:700:100000")
    seen = []
    wait_for(lambda: seen.append(place.metrics()) or any(m["waiting_large"] > 0 and m["running"] > 0 for m in seen))
    wait_for(lambda: place.metrics()["wait_seconds_total"] > 0)
    assert max(m["running"] for m in seen) <= 6
    assert {m["users"] for m in seen} == {1}
    wait_for(lambda: place.metrics()["device_bytes"] > 3 * 8 * 700 * 700)
    assert place.metrics()["kept_bytes"] <= place.metrics()["device_bytes"]
    wait_for(lambda: re.search(r"(?m) [.]steps$", place.top()))
    program.kill()
    wait_for(lambda: place.metrics()["running"] == 0)
    assert place.metrics()["waiting_large"] == 0


def test_kept_inputs_are_counted(place):
    place.serve(delay_us=0)
    program = place.begin("dgemm:1000:5", f"await:{place.socket}.go", ACCEL_RESIDENT="hash")
    wait_for(lambda: place.metrics()["kept_bytes"] >= 2 * 8_000_000)
    Path(f"{place.socket}.go").touch()
    assert program.wait(60) == 0


def test_a_client_that_sleeps_holds_nothing_of_the_device(place):
    """Kept inputs stay for ten seconds."""
    place.serve(delay_us=0)
    program = place.begin("dgemm:1000:5", f"await:{place.socket}.go", "dgemm:1000:2", ACCEL_RESIDENT="hash")
    wait_for(lambda: place.metrics()["kept_bytes"] > 0)
    wait_for(lambda: place.metrics()["device_bytes"] == 0)
    assert (place.metrics()["lanes"], place.metrics()["running"]) == (1, 0)
    Path(f"{place.socket}.go").touch()
    assert program.communicate(timeout=60)[0].count(" 0 wrong") == 2


def test_no_call_waits_for_ever(place):
    """One that gets no place in time is its program's CPU's."""
    place.serve("--wait=0")
    done = start("steps", "threads:12:500:20", env=place.env(**LOG))
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    ran = outcomes(lines_for(done, sym="dgemm_"))
    assert set(ran) == {("gpu0", "forced"), ("cpu", "busy")}


def test_calls_that_wait_when_it_ends_are_right(place):
    place.serve(delay_us=20000)
    with tempfile.NamedTemporaryFile("r") as log:
        program = place.begin("threads:16:400:12", **LOG, ACCEL_LOG_FILE=log.name)
        wait_for(lambda: place.metrics()["waiting_large"] > 4)
        place.server.terminate()
        stdout, _ = program.communicate(timeout=120)
        assert place.server.wait(60) == 0
        assert program.returncode == 0, stdout
        assert " 0 wrong" in stdout
        ran = set(outcomes(parse_log(log.read())))
        assert ("cpu", "busy") in ran
        assert ("gpu0", "forced") in ran


def test_calls_of_a_user_have_so_much_memory(place):
    """What does not fit is computed in parts, or on the CPU."""
    place.serve("--memory=2", delay_us=0)
    done = start("steps", "dgemm:200:3", "dgemm:900:3", "solve:900:2", "threads:4:300:10", env=place.env(**LOG))
    assert done.returncode == 0
    assert done.stdout.count(" 0 wrong") == 7
    assert set(outcomes(lines_for(done))) <= {("gpu0", "forced"), ("cpu", "no_memory"), ("cpu", "unsupported")}
    # With what calls have left idle. Without --memory, a product of order 900 alone has 19 MB.
    assert place.metrics()["device_bytes"] < 8 << 20


def test_calls_of_a_user_have_so_much_memory_of_each_device(place):
    place.serve("--memory=2", delay_us=0, devices=2)
    programs = [place.begin("dgemm:900:5", "threads:3:300:60", **LOG) for _ in range(2)]
    held = {"gpu0": 0, "gpu1": 0}
    while any(program.poll() is None for program in programs):
        text = subprocess.run([TOOL, "top", "--metrics", f"--socket={place.socket}"], env=clean_env("/tmp"), stdout=subprocess.PIPE, text=True).stdout
        for gpu, bytes in re.findall(r'(?m)^accel_serve_gpu_device_bytes{gpu="(gpu[01])"} (\S+)$', text):
            held[gpu] = max(held[gpu], float(bytes))
    for program in programs:
        stdout, stderr = program.communicate(timeout=120)
        assert stdout.count(" 0 wrong") == 4
        # Where the machine has much else to do, a client may not copy in time.
        assert set(outcomes(parse_log(stderr))) <= {("gpu0", "forced"), ("gpu1", "forced"), ("cpu", "no_memory"), ("cpu", "busy")}
    assert [0 < most < 8 << 20 for most in held.values()] == 2 * [True], held


@pytest.mark.parametrize("words, line", [
    ("--weight=root", "--weight=root: root is not a user and a number from 1 to 1000"),
    ("--weight=root=2,no such=1", "--weight=root=2,no such=1: no such=1 is not a user and a number from 1 to 1000"),
    ("--weight=root=0", "--weight=root=0: root=0 is not a user and a number from 1 to 1000"),
    ("--weight=root=1001", "--weight=root=1001: root=1001 is not a user and a number from 1 to 1000"),
    ("--weight=root=2,", "--weight=root=2,: nothing is not a user and a number from 1 to 1000"),
    ("--wait=-1", "--wait=-1: a number of SECONDS is expected, 0 at least")])
def test_a_wrong_option_is_one_line(words, line):
    done = start(TOOL, "serve", words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"accel serve: {line}\n")
