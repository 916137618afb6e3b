#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""ACCEL_METRICS_DIR: a file that Prometheus's own parser reads, with all calls of a process and its children, while it
runs and at its end."""

import math
import os
import shutil
import subprocess
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lib.programs import BUILD, DEBIAN_PYTHON, LONG, NO_GPU, TEST_GPU, clean_env, start

CALLS = "import numpy, os, sys, time\na = numpy.ones((64, 64))\ndef call(): a @ a\ncall(), call()\n"
LAPACK = "numpy.linalg.eigh(numpy.diag(numpy.arange(40.)))\n"
CHILDREN = "for i in range(3):\n    if os.fork() == 0: call(); os._exit(0)\n    os.wait()\n"
# The child's end of stderr is open until it ends.
OUTLIVES = "parent = os.getpid()\nif os.fork() == 0:\n    while os.getppid() == parent: time.sleep(0.01)\n    call()\n"
LISTENS = "print(flush=True); input(); call(); print(flush=True); input()"

# values: (name, routine, ran, why) -> value; processes: their names and numbers.
Metrics = namedtuple("Metrics", "path values processes")


@pytest.fixture(autouse=True, scope="module")
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def run(folder, program, gpu=TEST_GPU):
    return start(DEBIAN_PYTHON, "-c", program, env={**gpu, "ACCEL_METRICS_DIR": str(folder)})


def read(folder):
    """The only file."""
    [path] = Path(folder).glob("*.prom")  # beside it, the next one may be under way
    values, processes = {}, set()
    for family in text_string_to_metric_families(path.read_text()):
        assert family.type == "counter"
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, *(sample.labels.get(label) for label in ("routine", "ran", "why")))
            assert key not in values
            assert math.isfinite(sample.value)
            values[key] = sample.value
            processes.add((sample.labels["program"], sample.labels["pid"]))
    return Metrics(path, values, processes)


def calls(metrics):
    return sum(value for key, value in metrics.values.items() if key[0] == "accel_calls_total")


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """Those of a program."""
    folder = tmp_path_factory.mktemp("metrics")
    done = run(folder, CALLS + LAPACK)
    assert done.returncode == 0
    assert not done.stderr
    return read(folder)


def test_calls_seconds_and_bytes_by_routine_place_and_reason(metrics):
    dgemm = ("dgemm", "gpu0", "forced")
    assert metrics.values[("accel_calls_total", *dgemm)] == 2
    assert metrics.values[("accel_up_bytes_total", *dgemm)] == 4 * 64 * 64 * 8
    assert metrics.values[("accel_down_bytes_total", *dgemm)] == 2 * 64 * 64 * 8
    assert metrics.values[("accel_call_seconds_total", *dgemm)] > 0
    assert metrics.values[("accel_calls_total", "dsyevd", "gpu0", "forced")] == 1


def test_the_file_has_the_names_of_host_and_process(metrics):
    [(program, pid)] = metrics.processes
    assert metrics.path.name == f"accel.{os.uname().nodename}.{pid}.prom"
    assert program.startswith("python3")


def test_others_may_read_it(metrics):
    assert metrics.path.stat().st_mode & 0o777 == 0o644
    assert metrics.path.read_text().endswith("\n")


def test_promtool_accepts_it(metrics):
    tool = shutil.which("promtool", path=f"{BUILD}:{os.environ['PATH']}")
    if not tool:
        pytest.skip("it is not installed")
    done = subprocess.run([tool, "check", "metrics"], input=metrics.path.read_text(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0
    assert not done.stdout


def test_calls_inside_others_are_not_counted(tmp_path):
    run(tmp_path, "import numpy, os\na = numpy.arange(90000.).reshape(300, 300) % 7\nnumpy.linalg.svd(a)", NO_GPU)
    metrics = read(tmp_path)
    found = {key[1:]: value for key, value in metrics.values.items() if key[0] == "accel_calls_total"}
    assert found["dgesdd", "cpu", "no_gpu"] == 1
    assert len(found) > 3
    assert calls(metrics) == 2


@pytest.mark.parametrize("children, count", [pytest.param(CHILDREN, 5, id="forked children"),
                                             pytest.param(OUTLIVES, 3, id="a child that outlives its parent")])
def test_children_count_in_their_parent_s_file(tmp_path, children, count):
    run(tmp_path, CALLS + children)
    metrics = read(tmp_path)
    assert calls(metrics) == count
    assert len(metrics.processes) == 1


def seen(folder, count, seconds):
    """Whether the file has so many calls before the time is over."""
    end = time.monotonic() + seconds
    while not (there := list(folder.glob("*.prom")) and calls(read(folder)) == count) and time.monotonic() < end:
        time.sleep(0.1)
    return there


def test_while_the_program_runs(tmp_path):
    """The file is there a second after the first call; with TEST_LONG=1 it is written again fifteen seconds later. It
    stays when the program is killed."""
    env = {**clean_env(tempfile.gettempdir()), **TEST_GPU, "ACCEL_METRICS_DIR": str(tmp_path)}
    with subprocess.Popen([DEBIAN_PYTHON, "-c", CALLS + LISTENS], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            assert seen(tmp_path, 2, 60)
            print(file=process.stdin, flush=True)
            process.stdout.readline()
            assert not LONG or seen(tmp_path, 3, 90)
        finally:
            process.kill()
    assert seen(tmp_path, 3, 1) or not LONG and seen(tmp_path, 2, 1)


# ---- What cannot be written: one line, once, and the program goes on ----


@pytest.mark.parametrize("name, wrong", [("none", "No such file or directory"), ("plain", "Not a directory"),
                                         pytest.param("x" * 300, "File name too long", id="a long name")])
def test_what_cannot_be_written(tmp_path, name, wrong):
    (tmp_path / "plain").touch()
    done = run(tmp_path / name, CALLS + "print('goes on')")
    assert done.returncode == 0
    assert done.stdout == "goes on\n"
    assert done.stderr == f"accel: ACCEL_METRICS_DIR: {tmp_path}/{name} cannot be written ({wrong}); there will be " \
                          "no metrics\n"


def test_no_line_in_a_program_that_calls_nothing(tmp_path):
    (tmp_path / "plain").touch()
    assert not run(tmp_path / "plain", "pass").stderr


def test_a_device_in_place_of_a_folder():
    done = run("/dev/full", CALLS)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
