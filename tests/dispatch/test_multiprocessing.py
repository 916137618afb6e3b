#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Workers of Python's multiprocessing: those that are spawned, and those of its fork server, use the GPU, also after
their parent has. The fork server itself starts no CUDA, whatever it computes while it imports modules."""

import pytest

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, TEST_GPU, start

PYTHON = "/usr/bin/python3"
MODULE = """
import numpy
a = numpy.full((300, 300), 2.0)
b = a @ a
def call(i):
    return float((a @ b)[0, 0])
"""
# The fork server imports what is preloaded: since Python 3.14, the main module, too.
PROGRAM = """
import multiprocessing, sys
import preloaded
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "forkserver":
        context.set_forkserver_preload(["preloaded"])
    with context.Pool(2) as pool:
        print(pool.map(preloaded.call, range(4), 1))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    (folder / "preloaded.py").write_text(MODULE)
    (folder / "program.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    def run(method, **env):
        done = start(PYTHON, folder / "program.py", method,
                     env={**TEST_GPU, **LOG, "PYTHONPATH": str(folder), "TESTGPU_DELAY_US": "0", **env})
        assert done.returncode == 0, done.stderr[-600:]
        assert done.stdout == "[720000.0, 720000.0, 720000.0, 720000.0]\n"
        return done

    return run


def outcomes_by_process(done):
    found = {}
    for line in lines_for(done, sym="cblas_dgemm"):
        found.setdefault(line["pid"], set()).add((line["ran"], line["why"]))
    return list(found.values())


ON_GPU = {("gpu0", "forced")}


def test_spawned_workers_use_the_gpu_like_their_parent(run):
    found = outcomes_by_process(run("spawn"))
    assert len(found) >= 2
    assert found == len(found) * [ON_GPU]


@pytest.mark.parametrize("env", [{}, {"ACCEL_REQUIRE": "gpu"}, {"ACCEL_START": "wait"}], ids=lambda env: next(iter(env), "default"))
def test_the_fork_server_leaves_the_gpu_to_its_workers(run, env):
    done = run("forkserver", **env)
    found = outcomes_by_process(done)
    assert found.count({("cpu", "no_gpu")}) == 1
    assert found.count(ON_GPU) == len(found) - 1 >= 2
    assert said(done) == ["accel: no GPU is used: this process forks Python's workers, which start CUDA themselves"]


def test_accel_doctor_does_not_say_that_the_fork_server_has_loaded_cuda(folder):
    done = start(str(BUILD / "accel"), "doctor", "--", PYTHON, folder / "program.py", "forkserver",
                 env={**TEST_GPU, "PYTHONPATH": str(folder)})
    assert "cblas_dgemm" in done.stdout
    assert "CUDA" not in {line.split()[1] for line in done.stdout.splitlines() if line.startswith(("OK ", "WARN "))}


def test_a_daemon_of_pyspark_s_name_is_one(run, tmp_path):
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").touch()
    (tmp_path / "pyspark/daemon.py").write_text(MODULE + """
import os
if os.fork() == 0:
    call(0)
    os._exit(0)
os.wait()
""")
    done = start(PYTHON, "-m", "pyspark.daemon", "pyspark.worker", env={**TEST_GPU, **LOG, "PYTHONPATH": str(tmp_path)})
    assert outcomes_by_process(done) == [{("cpu", "no_gpu")}, ON_GPU]
