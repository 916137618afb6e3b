#!/usr/bin/python3 -B
"""accel calibrate that is interrupted, or has no room for its file: the former calibration stays, byte for byte; if there was none, there is
none. A calibration without sections, which former versions left, is worth a line in the log alone."""

import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib.calibrated import AUTO, put
from lib.log import said
from lib.programs import BUILD, LOG, NO_GPU, ROOT, clean_env, start
from lib.tap import Tap

ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
MOMENTS = [0.02 * 1.5**i for i in range(12 if os.environ.get("TEST_LONG") == "1" else 5)]
EMPTY = "accel-model 1\nchecksum=4418f8158cd14929\n"
OTHER = {'[cpu "Other" threads=2 library="x 1"]': "dgemm 10x10x10:1\n" * 20}

tap = Tap()


def interrupt(folder, number, after):
    process = subprocess.Popen([ACCEL, "calibrate", "--seconds=30"], env={**clean_env(folder), **HIDDEN, "XDG_CACHE_HOME": folder}, cwd=ROOT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None)
    time.sleep(after)
    process.send_signal(number)
    said_by_it = process.communicate(timeout=300)
    return process.returncode == -number and said_by_it[0] == ""


def lines(done):
    """The number of messages, without that on a busy machine: other tests run beside this one."""
    return sum("the machine is busy" not in line for line in done.stderr.splitlines())


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "accel/model")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        ended = [interrupt(folder, number, after) for after in MOMENTS]
        left = sorted(p.name for p in path.parent.iterdir()) if path.parent.exists() else []
        tap.ok(all(ended) and not left, f"{number.name}: there is neither a calibration nor a draft", ended, *left)
        for name in left:
            Path(path.parent, name).unlink()
    put_before = f"{folder}/before"
    put(put_before, OTHER)
    before = Path(put_before).read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        ended = [interrupt(folder, number, after) for after in MOMENTS]
        tap.ok(all(ended) and path.read_bytes() == before and os.listdir(path.parent) == ["model"], f"{number.name}: the former calibration stays",
               ended, *os.listdir(path.parent))

    # No room at all; then room for the former file alone.
    for room in (0, len(before) + 100):
        done = start(ACCEL, "calibrate", "--seconds=1", "--library=libblas.so.3", env={**HIDDEN, "XDG_CACHE_HOME": folder},
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
        tap.ok(done.returncode == 1 and str(path) in done.stderr and lines(done) == 1 and not done.stdout,
               f"room for {room} bytes: one line, status 1", done.returncode, done.stderr, done.stdout)
        tap.ok(path.read_bytes() == before and os.listdir(path.parent) == ["model"], f"room for {room} bytes: the former calibration stays",
               *os.listdir(path.parent))
    with open("/dev/full", "w") as full:
        done = start(ACCEL, "calibrate", "--seconds=1", "--library=libblas.so.3", env={**HIDDEN, "XDG_CACHE_HOME": folder}, stdout=full)
    tap.ok(done.returncode == 1 and "report" in done.stderr and lines(done) == 1, "a report that cannot be written: one line, status 1",
           done.returncode, done.stderr)

    # Without a section.
    path.write_text(EMPTY)
    for env in ({"ACCEL_MODEL": str(path)}, {"XDG_CACHE_HOME": folder}):
        done = start("steps", "dgemm:500:3", env={**AUTO, "ACCEL_START": "wait", **env})
        tap.ok(done.returncode == 0 and done.stderr == "", f"a calibration without sections, by {next(iter(env))}: nothing is said", done.stderr)
        done = start("steps", "dgemm:500:3", env={**AUTO, **LOG, "ACCEL_START": "wait", **env})
        tap.ok(len(said(done)) == 1 and "is empty" in said(done)[0], f"a calibration without sections, by {next(iter(env))}: with a log, a line", done.stderr)
tap.done()
