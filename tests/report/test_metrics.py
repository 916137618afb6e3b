#!/usr/bin/python3 -B
"""ACCEL_METRICS_DIR: a file that Prometheus's own parser reads, with all calls of a process and its children, while it runs and at its end."""

import math
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from lib.programs import BUILD, DEBIAN_PYTHON, LONG, NO_GPU, TEST_GPU, clean_env, start
from lib.tap import Tap

CALLS = "import numpy, os, sys, time\na = numpy.ones((64, 64))\ndef call(): a @ a\ncall(), call()\n"
LAPACK = "numpy.linalg.eigh(numpy.diag(numpy.arange(40.)))\n"
tap = Tap()


def run(folder, program, gpu=TEST_GPU):
    return start(DEBIAN_PYTHON, "-c", program, env={**gpu, "ACCEL_METRICS_DIR": str(folder)})


def read(folder):
    """(name, routine, ran, why) -> value of the only file; the labels of the process."""
    [path] = Path(folder).glob("*.prom")  # beside it, the next one may be under way
    values, processes = {}, set()
    for family in text_string_to_metric_families(path.read_text()):
        if family.type != "counter" or not family.documentation:
            raise ValueError(family)
        for sample in family.samples:
            key = (sample.name, *(sample.labels.get(label) for label in ("routine", "ran", "why")))
            if key in values or not math.isfinite(sample.value):
                raise ValueError(f"twice: {sample}")
            values[key] = sample.value
            processes.add((sample.labels["program"], sample.labels["pid"]))
    return path, values, processes


def calls(values):
    return sum(value for key, value in values.items() if key[0] == "accel_calls_total")


os.umask(0o022)
with tempfile.TemporaryDirectory() as folder:
    done = run(folder, CALLS + LAPACK)
    path, values, processes = read(folder)
    dgemm = ("dgemm", "gpu0", "forced")
    tap.ok(done.returncode == 0 and not done.stderr and values[("accel_calls_total", *dgemm)] == 2 and values[("accel_up_bytes_total", *dgemm)] == 4 * 64 * 64 * 8
           and values[("accel_down_bytes_total", *dgemm)] == 2 * 64 * 64 * 8 and values[("accel_call_seconds_total", *dgemm)] > 0
           and values[("accel_calls_total", "dsyevd", "gpu0", "forced")] == 1, "calls, seconds and bytes, by routine, place and reason", done.stderr, *values.items())
    [(program, pid)] = processes
    tap.ok(path.name == f"accel.{os.uname().nodename}.{pid}.prom" and program.startswith("python3"), "the file has the names of host and process", path, processes)
    text = path.read_text()
    tap.ok(path.stat().st_mode & 0o777 == 0o644 and text.endswith("\n"), "and others may read it", oct(path.stat().st_mode))
    tool = shutil.which("promtool", path=f"{BUILD}:{os.environ['PATH']}")
    if tool:
        done = subprocess.run([tool, "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.ok(done.returncode == 0 and not done.stdout, "promtool accepts it", done.stdout)
    else:
        tap.skip("promtool accepts it", "it is not installed")

with tempfile.TemporaryDirectory() as folder:
    done = run(folder, "import numpy, os\na = numpy.arange(90000.).reshape(300, 300) % 7\nnumpy.linalg.svd(a)", NO_GPU)
    _, values, _ = read(folder)
    found = {key[1:]: value for key, value in values.items() if key[0] == "accel_calls_total"}
    tap.ok(found[("dgesdd", "cpu", "no_gpu")] == 1 and len(found) > 3 and calls(values) == 2, "calls inside others are not counted", *found.items())
with tempfile.TemporaryDirectory() as folder:
    done = run(folder, CALLS + "for i in range(3):\n    if os.fork() == 0: call(); os._exit(0)\n    os.wait()\n")
    path, values, processes = read(folder)
    tap.ok(calls(values) == 5 and len(processes) == 1, "forked children count in their parent's file", *values.items())
with tempfile.TemporaryDirectory() as folder:
    # The child's end of stderr is open until it ends.
    run(folder, CALLS + "parent = os.getpid()\nif os.fork() == 0:\n    while os.getppid() == parent: time.sleep(0.01)\n    call()\n")
    _, values, processes = read(folder)
    tap.ok(calls(values) == 3 and len(processes) == 1, "a child that outlives its parent goes on with its file", *values.items())

# While the program runs: a second after the first call, and with TEST_LONG=1 fifteen seconds later;
# a child takes the place of a parent that is killed.
with tempfile.TemporaryDirectory() as folder:
    env = {**clean_env(tempfile.gettempdir()), **TEST_GPU, "ACCEL_METRICS_DIR": folder}
    with subprocess.Popen([DEBIAN_PYTHON, "-c", CALLS + "print(flush=True); input(); call(); print(flush=True); input()"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()

        def seen(count, seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end and not (list(Path(folder).glob("*.prom")) and calls(read(folder)[1]) == count):
                time.sleep(0.1)
            return list(Path(folder).glob("*.prom")) and calls(read(folder)[1]) == count

        tap.ok(seen(2, 60), "the file is there while the program runs")
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        if LONG:
            tap.ok(seen(3, 90), "and is written again")
        process.kill()
    tap.ok(seen(3, 1) if LONG else seen(2, 1) or seen(3, 1), "it stays when the program is killed")

# What cannot be written: one line, once, and the program goes on.
with tempfile.TemporaryDirectory() as folder:
    plain = Path(folder, "plain")
    plain.write_text("")
    for name, wrong in (("none", "No such file or directory"), ("plain", "Not a directory"), ("x" * 300, "File name too long")):
        done = run(Path(folder, name), CALLS + "print('goes on')")
        tap.ok((done.returncode, done.stdout, done.stderr) == (0, "goes on\n", f"accel: ACCEL_METRICS_DIR: {folder}/{name} cannot be written ({wrong}); there will be no metrics\n"),
               f"{wrong}: one line", done.stderr)
    done = run(plain, "pass")
    tap.ok(not done.stderr, "and none in a program that calls nothing", done.stderr)
    done = run("/dev/full", CALLS)
    tap.ok(done.returncode == 0 and done.stderr.count("\n") == 1, "a device in place of a folder", done.stderr)
tap.done()
