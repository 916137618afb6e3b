#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel calibrate that is interrupted, or has no room for its file: the former calibration stays, byte for byte; if
there was none, there is none. A calibration without sections, which former versions left, is worth a line in the log
alone."""

import os
import resource
import signal
import subprocess
import time

import pytest

from lib.calibrated import AUTO, put
from lib.log import said
from lib.programs import BUILD, LOG, LONG, NO_GPU, ROOT, clean_env, start

ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
MOMENTS = [0.02 * 1.5**i for i in range(12 if LONG else 5)]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
EMPTY = "accel-model 1\nchecksum=4418f8158cd14929\n"
OTHER = {'[cpu "Other" threads=2 library="x 1"]': "dgemm 10x10x10:1\n" * 20}


@pytest.fixture
def path(tmp_path):
    """Where the calibration is, below the folder of caches."""
    return tmp_path / "accel/model"


@pytest.fixture
def former(path):
    """The bytes of a calibration that is there."""
    path.parent.mkdir()
    put(str(path), OTHER)
    return path.read_bytes()


def settings(path):
    return {**HIDDEN, "XDG_CACHE_HOME": str(path.parents[1])}


def interrupt(path, number, after):
    """Sends a calibration the signal after so many seconds, which ends it, without a report."""
    process = subprocess.Popen([ACCEL, "calibrate", "--seconds=30"],
                               env={**clean_env(str(path.parents[1])), **settings(path)}, cwd=ROOT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: number == signal.SIGKILL or signal.signal(number, signal.SIG_DFL))
    time.sleep(after)
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=300)
    assert process.returncode == -number
    assert stdout == ""


def lines(done):
    """The number of messages, without that on a busy machine: other tests run beside this one."""
    return sum("the machine is busy" not in line for line in done.stderr.splitlines())


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_there_is_neither_a_calibration_nor_a_draft(number, path):
    for after in MOMENTS:
        interrupt(path, number, after)
    assert not path.parent.exists() or os.listdir(path.parent) == []


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_the_former_calibration_stays(number, path, former):
    for after in MOMENTS:
        interrupt(path, number, after)
    assert path.read_bytes() == former
    assert os.listdir(path.parent) == ["model"]


@pytest.mark.parametrize("for_former", [False, True], ids=["no room at all", "room for the former file alone"])
def test_no_room(for_former, path, former):
    room = len(former) + 100 if for_former else 0
    done = start(ACCEL, "calibrate", "--seconds=1", "--library=libblas.so.3", env=settings(path),
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert lines(done) == 1
    assert not done.stdout
    assert path.read_bytes() == former
    assert os.listdir(path.parent) == ["model"]


def test_a_report_that_cannot_be_written(path):
    with open("/dev/full", "w") as full:
        done = start(ACCEL, "calibrate", "--seconds=1", "--library=libblas.so.3", env=settings(path), stdout=full)
    assert done.returncode == 1
    assert "report" in done.stderr
    assert lines(done) == 1


@pytest.mark.parametrize("name", ["ACCEL_MODEL", "XDG_CACHE_HOME"])
def test_a_calibration_without_sections(name, path):
    path.parent.mkdir()
    path.write_text(EMPTY)
    env = {**AUTO, "ACCEL_START": "wait", name: str(path if name == "ACCEL_MODEL" else path.parents[1])}
    done = start("steps", "dgemm:500:3", env=env)
    assert done.returncode == 0
    assert done.stderr == "", "nothing is said"
    logged = said(start("steps", "dgemm:500:3", env={**env, **LOG}))
    assert len(logged) == 1, "with a log, a line"
    assert "is empty" in logged[0]
