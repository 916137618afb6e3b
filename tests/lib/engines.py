"""Engines from PyPI: the Python that has them, jobs that run on them, and what their processes have logged."""

import functools
import subprocess

import pytest

from lib.log import events, parse_log
from lib.programs import BUILD, RUNTIME, TEST_GPU, clean_env

PYTHON = str(BUILD / "engines/venv/bin/python")
ACCEL, LIBRARY = str(BUILD / "accel"), str(BUILD / "libaccel.so")
GPU = {"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu", "TESTGPU_DELAY_US": "0", "ACCEL_LOG": "1"}


@functools.cache
def has(module):
    try:
        return subprocess.run([PYTHON, "-c", f"import importlib.util as u; exit(u.find_spec({module!r}) is None)"]).returncode == 0
    except OSError:
        return False


def needs(module):
    """A mark: the tests of a file are left out, with a line, where the engine cannot be had."""
    return pytest.mark.skipif(bool(RUNTIME) or not has(module), reason=f"no {module}, which `make engines` fetches, or a sanitizer's runtime")


def run(folder, argv, env={}, timeout=1500):
    """A job in the folder, which is its home."""
    done = subprocess.run([str(word) for word in argv], cwd=folder, env={**clean_env(str(folder)), **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return done


class Logs:
    """The logs log.PID of a folder: of each process that has decided something, its program's name, its GPU and its decisions."""

    def __init__(self, folder):
        self.programs, self.gpus, self.calls = {}, {}, {}
        for path in folder.glob("log.*"):
            pid, text = int(path.name.split(".")[-1]), path.read_text()
            self.programs.update({pid: event["program"] for event in events(text, "start")})
            self.gpus.update({pid: (event["index"], event["chosen"]) for event in events(text, "gpu")})
            self.calls[pid] = [(line["sym"], line["ran"]) for line in parse_log(text)]

    def on_gpu(self, sym):
        """The processes that have made such a call on a GPU."""
        return {pid for pid, calls in self.calls.items() if any(name == sym and ran.startswith("gpu") for name, ran in calls)}
