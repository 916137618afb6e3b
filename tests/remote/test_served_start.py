#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A server that systemd starts answers while CUDA starts: programs compute on the CPU meanwhile, wait where they must have the GPU,
and have the server's as soon as it is there. A log has a line when a server goes away or does not answer."""

import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from lib import served
from lib.log import check_json, outcomes, parse_log
from lib.programs import BUILD, LOG, SHIM, clean_env, start

TOOL = str(BUILD / "accel")
wait_for = partial(served.wait_for, seconds=60)
GPU = ("gpu0", "faster")
WARMING = ("cpu", "warming")
# As systemd hands over a socket.
HAND_OVER = """
import os, socket, sys
path, *command = sys.argv[1:]
made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
made.bind(path)
made.listen()
if made.fileno() == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(made.fileno(), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(command[0], command)
"""


class Place:
    """A server whose CUDA starts when it may."""

    def __init__(self, folder):
        self.folder, self.socket, self.may_start, self.go, self.started = folder, folder / "serve", folder / "start", folder / "go", []

    def serve(self, *words, handed=True, **env):
        command = [sys.executable, "-c", HAND_OVER, str(self.socket), TOOL, "serve"] if handed else [TOOL, "serve", f"--socket={self.socket}"]
        full = {**clean_env(str(self.folder)), "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0", **env}
        if handed:
            full["TESTGPU_START_FILE"] = str(self.may_start)
        self.server = self.keep(subprocess.Popen([*command, *words], env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.server

    def keep(self, process):
        self.started.append(process)
        return process

    def env(self, **more):
        return {**SHIM, **LOG, "ACCEL_CUDA_DIR": "/nowhere", "ACCEL_SERVER": str(self.socket), "OPENBLAS_NUM_THREADS": "1", **more}

    def begin(self, *steps, **env):
        return self.keep(subprocess.Popen([BUILD / "tests/steps", *steps], env={**clean_env("/tmp"), **self.env(**env)}, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True))

    def top(self):
        return subprocess.run([TOOL, "top", "--once", f"--socket={self.socket}"], env=clean_env("/tmp"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="accel-start-") as folder:
        made = Place(Path(folder))
        yield made
        for process in reversed(made.started):
            process.kill()
            process.communicate()


# ---- While CUDA starts ----

def test_programs_compute_on_the_cpu_meanwhile(place):
    place.serve()
    wait_for(place.socket.exists)
    client = place.begin("dgemm:1000:3", f"await:{place.go}", "dgemm:1000:3")
    wait_for(lambda: ": the GPU is starting, 0 lanes" in place.top())
    line = [client.stdout.readline(), place.may_start.touch(), place.server.stdout.readline()]
    assert line == ["dgemm 1000: 3 calls, 0 wrong\n", None, f"accel serve: Test GPU, at {place.socket}\n"]
    time.sleep(0.3) # it asks again after 0.2 s
    place.go.touch()
    stdout, stderr = client.communicate(timeout=60)
    assert stdout.count(" 0 wrong") == 1
    assert outcomes(parse_log(stderr)) == 3 * [WARMING] + 3 * [GPU]
    assert "calls do not go there" not in stderr


def test_a_call_that_must_have_the_gpu_waits(place):
    place.serve()
    wait_for(place.socket.exists)
    client = place.begin("dgemm:100:3", ACCEL_POLICY="gpu")
    wait_for(lambda: ": the GPU is starting" in place.top())
    time.sleep(0.5)
    assert client.poll() is None
    place.may_start.touch()
    stdout, stderr = client.communicate(timeout=60)
    assert stdout == "dgemm 100: 3 calls, 0 wrong\n"
    assert outcomes(parse_log(stderr)) == 3 * [("gpu0", "forced")]


def test_where_it_cannot_start_programs_go_their_own_way(place):
    server = place.serve(CUDA_VISIBLE_DEVICES="-1")
    assert server.wait(60) == 1
    assert re.fullmatch(r"accel serve: no GPU: .*\n", server.stderr.read())
    done = start("steps", "dgemm:1000:2", env=place.env(ACCEL_CUDA_DIR=str(BUILD / "testgpu"), ACCEL_POLICY="gpu"))
    assert outcomes(parse_log(done.stderr)) == 2 * [("gpu0", "forced")]
    assert " chosen=only " in done.stderr


def test_it_ends_by_a_signal_meanwhile(place):
    server = place.serve()
    wait_for(lambda: ": the GPU is starting" in place.top())
    server.terminate()
    time.sleep(0.2)
    place.may_start.touch() # what CUDA has begun, the end waits for
    assert server.wait(60) == 0
    assert server.stderr.read() == "" # nor does the test GPU find it in the middle of a start


def test_doctor_says_that_it_is_starting(place):
    place.serve()
    wait_for(place.socket.exists)
    done = start(TOOL, "doctor", env={"ACCEL_SERVER": str(place.socket), "CUDA_HOME": "/nowhere", "ACCEL_CUDA_DIR": str(BUILD / "testgpu")})
    assert re.search(rf"(?m)^OK +server +{place.socket}: its GPU is starting; calls run on the CPU until it has$", done.stdout), done.stdout


# ---- When it goes away ----

@pytest.mark.parametrize("log", ("1", "2", "json"))
def test_a_log_says_once_that_it_has_gone(place, log):
    """And again, when another one has computed, and goes, too."""
    path = place.folder / "log"
    steps = [step for i in range(5) for step in ("dgemm:300:3", f"await:{place.go}{i}")]
    server = place.serve(handed=False)
    assert server.stdout.readline()
    client = place.begin(*steps, ACCEL_POLICY="gpu", ACCEL_LOG=log, ACCEL_LOG_FILE=str(path))
    for i, dies in enumerate((True, False, True, False)):
        wait_for(lambda: len(re.findall(r"\bdgemm_", path.read_text() if path.exists() else "")) >= 3 * (i + 1))
        if dies:
            server.kill()
            server.wait()
        else:
            server = place.serve(handed=False)
            assert server.stdout.readline()
            time.sleep(1.2) # it is not looked for for a second
        Path(f"{place.go}{i}").touch()
    Path(f"{place.go}4").touch()
    stdout, _ = client.communicate(timeout=60)
    assert stdout.count(" 0 wrong") == 5
    text = path.read_text()
    check_json(text)
    assert text.count("server_lost") == 2, text
    assert text.count('"server_lost", "reason": "the server has ended"}' if log == "json" else 'event=server_lost reason="the server has ended"\n') == 2
