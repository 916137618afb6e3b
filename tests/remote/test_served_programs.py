#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs whose workers are forked from a process that has used the GPU: with a server (`accel serve`) they use it, too,
and print what they print without libaccel."""

import shutil
import tempfile
from pathlib import Path

import pytest

from lib.log import parse_log
from lib.programs import DEBIAN_PYTHON, LOG, RUNTIME, VENV_PYTHON, start
from lib.served import Server

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

EIGH = """
import numpy
from multiprocessing import get_context
def f(seed):
    a = numpy.random.default_rng(seed).random((200, 200))
    a += a.T
    values, vectors = numpy.linalg.eigh(a)
    assert abs(a @ vectors - vectors * values).max() < 1e-9
    return values.round(8).tolist()
if __name__ == "__main__":
    print(sum(f(0)))
    with get_context("fork").Pool(8) as pool:
        print([round(sum(row), 6) for row in pool.map(f, range(16))])
"""

SEARCH = """
import numpy
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
x = numpy.random.default_rng(0).random((300, 5))
y = numpy.sin(4 * x[:, 0]) + x[:, 1]
if __name__ == "__main__":
    search = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [0.1, 1], "gamma": [0.1, 1]}, cv=3, n_jobs=2)
    print(search.fit(x, y).best_params_, round(search.best_score_, 6))
"""

MCLAPPLY = """
f <- function(i) { set.seed(i); a <- matrix(runif(40000), 200); round(sum(solve(a, a %*% rep(1, 200))), 6) }
invisible(f(0))
print(unlist(parallel::mclapply(1:8, f, mc.cores = 4)))
"""

PREFORK = """
import http.server, os, sys, urllib.request
import numpy
def f(seed):
    a = numpy.random.default_rng(seed).random((200, 200)) + 200 * numpy.eye(200)
    return round(float(numpy.linalg.solve(a, a @ numpy.ones(200)).sum()), 6)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{f(int(self.path[1:]))}".encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
f(0)  # as an application does that is loaded before the workers
workers = []
for _ in range(2):
    worker = os.fork()
    if worker == 0:
        server.serve_forever()
    workers.append(worker)
print([urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{i}").read().decode() for i in range(8)])
for worker in workers:
    os.kill(worker, 15)
    os.waitpid(worker, 0)
"""

# name -> command before the script, script, least processes whose calls run there.
PROGRAMS = {"multiprocessing, Pool(8)": ([DEBIAN_PYTHON], EIGH, 3), "scikit-learn, loky": ([VENV_PYTHON], SEARCH, 2),
            "R, mclapply": (["Rscript", "--vanilla"], MCLAPPLY, 3), "a pre-fork server": ([DEBIAN_PYTHON], PREFORK, 2)}


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        server = Server(Path(folder))
        yield server
        assert server.end() == ""


@pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is not made for a child that is forked beside other threads")
@pytest.mark.parametrize("name", PROGRAMS)
def test_workers_use_the_gpu(server, tmp_path, name):
    command, text, least = PROGRAMS[name]
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    script = tmp_path / "program"
    script.write_text(text)
    plain = start(shutil.which(command[0]), *command[1:], script, env=ONE_THREAD)
    done = start(shutil.which(command[0]), *command[1:], script,
                 env={**ONE_THREAD, **server.client(**LOG, ACCEL_POLICY="gpu", ACCEL_LOG_FILE=f"{tmp_path}/log.%p")})
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert plain.returncode == 0
    ran = [f for path in tmp_path.glob("log.*") for f in parse_log(path.read_text()) if f["why"] not in ("small", "empty", "workspace_query", "unsupported")]
    assert {f["ran"] for f in ran} == {"gpu0"}, [f for f in ran if f["ran"] != "gpu0"][:3]
    assert len({f["pid"] for f in ran}) >= least
