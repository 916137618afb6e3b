#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Servers whose workers are forked from a process that has computed (docs/serve.md): gunicorn of PyPI that loads its
application before it forks, and Spark with a daemon of one's own that has a model already. With `accel serve` the workers
use the GPU, and answer as without libaccel."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.engines import PYTHON, Logs, has, run
from lib.programs import RUNTIME, clean_env
from lib.served import Server, wait_for

pytestmark = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is not made for a child that is forked beside other threads")


def needs(module):
    return pytest.mark.skipif(not has(module), reason=f"no {module}, which `make engines` fetches")


@pytest.fixture
def served(tmp_path):
    """The environment of programs that a server computes for; their logs are in tmp_path."""
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        server = Server(Path(folder))
        yield server.client(ACCEL_POLICY="gpu", ACCEL_LOG="1", ACCEL_LOG_FILE=f"{tmp_path}/log.%p")
        assert server.end() == ""


def check_all_on_gpu(logs, least):
    """Each product and solution of so many processes ran there."""
    calls = [(name, ran) for calls in logs.calls.values() for name, ran in calls]
    assert {ran for _, ran in calls} == {"gpu0"}, [call for call in calls if call[1] != "gpu0"][:5]
    assert {chosen for _, chosen in logs.gpus.values()} == {"server"}
    assert len(logs.calls) >= least


# ---- gunicorn ----

APPLICATION = """
import os
import numpy
def solve(seed):
    a = numpy.random.default_rng(seed).random((200, 200)) + 200 * numpy.eye(200)
    return round(float(numpy.linalg.solve(a, a @ numpy.ones(200)).sum()), 6)
solve(0)  # before the workers are forked (--preload)
def application(environ, start_response):
    body = f"{os.getpid()} {solve(int(environ['PATH_INFO'][1:]))}".encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


class Connection(http.client.HTTPConnection):
    """At a socket of its own folder: no port is taken."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def answers(folder, env, count):
    """Of gunicorn with three workers: the answers, and how many processes have made them."""
    with tempfile.TemporaryDirectory(prefix="accel-gunicorn-") as short:
        path = Path(short, "socket")
        master = subprocess.Popen([PYTHON, "-m", "gunicorn", "--preload", "--workers=3", f"--bind=unix:{path}", "--no-control-socket", "application"], cwd=folder,
                                  env={**clean_env(str(folder)), "OPENBLAS_NUM_THREADS": "1", **env}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=(folder / "stderr").open("w"))

        def ask(seed):
            connection = Connection(path)
            connection.request("GET", f"/{seed}")
            pid, number = connection.getresponse().read().decode().split()
            connection.close()
            return pid, number

        try:
            wait_for(path.exists)
            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(ask, range(count)))
            master.terminate()
            assert master.wait(60) == 0
        finally:
            master.kill()
            master.wait()
    return [number for _, number in found], len({pid for pid, _ in found})


@needs("gunicorn")
def test_gunicorn_that_has_computed_before_it_forks(served, tmp_path):
    (tmp_path / "application.py").write_text(APPLICATION)
    plain, _ = answers(tmp_path, {}, 30)
    found, workers = answers(tmp_path, served, 30)
    assert found == plain, (tmp_path / "stderr").read_text()[-500:]
    assert workers > 1
    check_all_on_gpu(Logs(tmp_path), workers + 1)


# ---- Spark ----

DAEMON = """
import numpy
from pyspark import daemon
model = numpy.linalg.solve(numpy.eye(300) * 2, numpy.ones((300, 300)))  # before it forks workers
if __name__ == "__main__":
    daemon.manager()
"""
JOB = """
import json
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

@udf("double")
def total(n):
    import numpy, sys
    model = sys.modules["__main__"].model if hasattr(sys.modules["__main__"], "model") else None
    return float((model @ numpy.ones((300, 300))).sum()) + n

print("FOUND", json.dumps(sorted(row[0] for row in spark.range(4).repartition(2).select(total("id")).collect())))
spark.stop()
"""


@needs("pyspark")
@pytest.mark.skipif(not shutil.which("java"), reason="no java")
def test_spark_with_a_daemon_that_has_a_model(served, tmp_path):
    home = subprocess.run([PYTHON, "-c", "import pyspark; print(*pyspark.__path__)"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    (tmp_path / "model_daemon.py").write_text(DAEMON)
    (tmp_path / "job.py").write_text(JOB)
    env = {**served, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(tmp_path)}
    settings = {"spark.master": "local-cluster[1,2,1024]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
                "spark.sql.shuffle.partitions": "1", "spark.driver.bindAddress": "127.0.0.1", "spark.python.daemon.module": "model_daemon",
                **{f"spark.executorEnv.{name}": value for name, value in env.items()}}
    (tmp_path / "settings").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    done = run(tmp_path, [f"{home}/bin/spark-submit", "--properties-file", "settings", "job.py"], {
        "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": PYTHON, "PYSPARK_DRIVER_PYTHON": PYTHON})
    assert json.loads(re.search("(?m)^FOUND (.*)", done.stdout)[1]) == [13.5e6 + n for n in range(4)]
    check_all_on_gpu(Logs(tmp_path), 2)
