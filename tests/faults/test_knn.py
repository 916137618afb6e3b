#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Nearest neighbours of R's packages class and FNN, when a CUDA call, an allocation of device memory, or one of host
memory fails, each in turn: to the last bit what the packages compute by themselves, and the same random numbers after
it. SIGINT in the midst of a call leads back to R's prompt, as without libaccel."""

import re
import signal
import subprocess
import tempfile
import time

import pytest

from faults.faults import GPU
from faults.training import Training, TrainingTests
from lib.log import parse_log
from lib.programs import NO_GPU, PLAIN, ROOT, clean_env

COMMAND = ["/usr/bin/Rscript", "--vanilla", ROOT / "tests/fixtures/knn/neighbours.R", "few"]


@pytest.fixture(scope="module")
def training():
    return Training("knn", COMMAND, lambda own, done, _: done.stdout == own.plain.stdout != "", most=2)


class TestNeighbours(TrainingTests):
    pass


# ---- R's prompt ----

# R looks at the signal when the package has returned: at the latest while it sleeps. Then the next
# line of its input comes.
SESSION = """suppressPackageStartupMessages({library(FNN); library(class)})
data <- matrix(sin(1:8000), 400)
classes <- factor(rep(1:4, 100))
VR_knn <- function() table(class::knn(data, data[1:90, ], classes, 5))
get_KNNX_brute <- function() get.knnx(data, data[1:90, ], 5, "brute")$nn.dist[90, ]
wait <- function(call) { cat("begins\\n"); call(); repeat Sys.sleep(0.1) }
wait(VR_knn)
wait(get_KNNX_brute)
VR_knn()
get_KNNX_brute()
"""


def wait_for(condition):
    ends = time.monotonic() + 120
    while not condition() and time.monotonic() < ends:
        time.sleep(0.01)


def interrupted(env, log=None):
    """R gets SIGINT in each of the first two calls: at their first copy to the GPU, if there is a log. Returns its
    output and status, and how often the call had begun, and not ended, by then."""
    process = subprocess.Popen(
        ["/usr/bin/env", "--default-signal", "/usr/bin/R", "--vanilla", "--quiet", "--interactive", "--no-readline"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**clean_env(tempfile.gettempdir()), **env}, text=True, bufsize=1)
    process.stdin.write(SESSION)
    process.stdin.flush()
    output, amid = "", 0
    for name in "VR_knn", "get_KNNX_brute":
        while output.splitlines()[-1:] != ["begins"] and (line := process.stdout.readline()):
            output += line
        if log:
            begun = lambda: log.exists() and f"sym={name} event=h2d" in log.read_text()
            wait_for(begun)
            amid += begun() and f"sym={name} train=" not in log.read_text()
        else:
            time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output += process.stdout.readline()
    # Not communicate(): that reads past what readline() has in its buffer.
    process.stdin.close()
    output += process.stdout.read()
    return output, process.wait(), amid


@pytest.fixture(scope="module")
def plain():
    """R by itself, which comes back to its prompt: its output and status."""
    output, status, _ = interrupted(PLAIN)
    assert status == 0
    assert len(re.findall(r"(?m)^begins\n.*\n", output)) == 2
    assert output.count("0.11133646") == 1
    return output, status


def test_prompt_without_a_gpu(plain):
    assert interrupted(NO_GPU)[:2] == plain


def test_prompt_after_sigint_in_the_midst_of_two_calls_on_the_gpu(plain, tmp_path):
    """The same prompt and messages, and the next calls' answers. All of the calls end on the GPU."""
    log = tmp_path / "log"
    # Each step takes long enough for the signal to come before the call's end.
    ended = interrupted({**GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": str(log), "TESTGPU_DELAY_US": "200000"}, log)
    calls = [(line["sym"], line["ran"]) for line in parse_log(log.read_text()) if "train" in line]
    assert ended == (*plain, 2)
    assert calls == [("VR_knn", "gpu0"), ("get_KNNX_brute", "gpu0")] * 2
