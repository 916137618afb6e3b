#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""How busy a server's device is counts where a program decides: a call that would gain on an idle one, and not behind those of
others, has the CPU (why=busy). tests/tool/test_recent_calls.c has the estimates themselves."""

import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest

from lib import served
from lib.log import lines_for, outcomes
from lib.programs import BUILD, LOG, clean_env, start
from lib.served import ACCEL, Server

wait_for = partial(served.wait_for, seconds=60)
IDLE, BUSY = ("gpu0", "faster"), ("cpu", "busy")
PROGRAM = ("steps", "dgemm:400:8")
# From its third call on, one that takes longer than the CPU would is the CPU's for that alone.
TWO = ("steps", "dgemm:400:2")


@pytest.fixture
def server():
    """Its device takes a while for each copy and kernel."""
    with tempfile.TemporaryDirectory(prefix="accel-load-") as folder:
        server = Server(Path(folder), TESTGPU_DELAY_US="10000")
        yield server
        server.kill()


@pytest.fixture
def crowd(server):
    """Programs that have more calls than there are places, all the time."""
    programs = []

    def come():
        for _ in range(6):
            programs.append(subprocess.Popen([BUILD / "tests/steps", "threads:2:400:100000"], stdout=subprocess.DEVNULL,
                                             env={**clean_env("/tmp"), **server.client(ACCEL_POLICY="gpu")}))
        wait_for(lambda: server.metric("waiting_large") >= 5 and server.metric("calls_total") > 30)

    def go():
        for program in programs:
            program.kill()
            program.wait()
        programs.clear()
        wait_for(lambda: server.lanes() == 0)

    come.go = go
    yield come
    go()


def test_a_call_that_would_wait_has_the_cpu(server, crowd, tmp_path):
    """Nor is that so any more when the others have gone. The summary of a log says so."""
    assert outcomes(lines_for(start(*TWO, env=server.client(**LOG)), sym="dgemm_")) == 2 * [IDLE]
    crowd()
    log = tmp_path / "log"
    done = start(*PROGRAM, env=server.client(**LOG, ACCEL_LOG_FILE=str(log)))
    assert " 0 wrong" in done.stdout
    lines = [line for line in log.read_text().splitlines() if " sym=dgemm_ " in line]
    assert len(lines) == 8
    assert all(" ran=cpu why=busy " in line for line in lines), lines
    for line in lines:
        cpu, gpu = (float(re.search(rf" {name}=(\S+)", line)[1]) for name in ("est_cpu_ms", "est_gpu_ms"))
        assert gpu >= cpu
    explained = start(str(ACCEL), "explain", str(log))
    assert re.search(r"(?m)^ *dgemm +400 +8 cpu +busy ", explained.stdout), explained.stdout
    crowd.go()
    assert outcomes(lines_for(start(*TWO, env=server.client(**LOG)), sym="dgemm_")) == 2 * [IDLE]


def test_decisions_that_must_be_the_same_in_each_run_do_not_depend_on_it(server, crowd):
    def decisions():
        done = start(*PROGRAM, env=server.client(**LOG, ACCEL_START="wait"), timeout=120)
        return [(f["ran"], f["why"], f["est_cpu_ms"], f["est_gpu_ms"]) for f in lines_for(done, sym="dgemm_")]

    idle = decisions()
    crowd()
    assert decisions() == idle
    assert len(idle) == 8


@pytest.mark.parametrize("env, where", (({"ACCEL_POLICY": "gpu"}, ("gpu0", "forced")), ({"ACCEL_REQUIRE": "gpu"}, ("gpu0", "required"))), ids=str)
def test_what_the_user_has_decided_does_not_depend_on_it(server, crowd, env, where):
    crowd()
    done = start(*PROGRAM, env=server.client(**LOG, **env), timeout=120)
    assert outcomes(lines_for(done, sym="dgemm_")) == 8 * [where]


def test_what_a_large_call_gains_by_more_than_it_waits(server, crowd):
    """It goes there, and waits."""
    crowd()
    done = start("steps", "dgemm:3000:1", env=server.client(**LOG), timeout=120)
    assert outcomes(lines_for(done, sym="dgemm_")) == [IDLE]
