"""A device that a call keeps busy: waiting until it does, by the page on which processes tell each other."""

import struct
import subprocess
import tempfile
import time
from pathlib import Path

from lib.programs import ROOT, TESTS, clean_env

ENTRY = struct.Struct("<i4xq")  # a process, and when its call will have ended: microseconds of CLOCK_MONOTONIC


def background(steps, env):
    """A run of tests/fixtures/steps.c that goes on."""
    full = {**clean_env(tempfile.gettempdir()), **env}
    return subprocess.Popen([TESTS / "steps", *steps], env=full, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def await_call(process, folder):
    """Waits until a call of the process is on the device, or the process has ended; the folder is its XDG_RUNTIME_DIR."""
    while process.poll() is None:
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        for page in Path(folder).glob("accel-*-*"):
            if any(owner == process.pid and end > now for owner, end in ENTRY.iter_unpack(page.read_bytes())):
                return
        time.sleep(0.01)


def two_threads(steps, env):
    """After the steps, a product in one thread, and one in another thread as soon as that is on the device."""
    with tempfile.TemporaryDirectory() as folder:
        go = Path(folder, "go")
        with background([*steps, f"both:600:1:{go}"], env) as process:
            try:
                await_call(process, env["XDG_RUNTIME_DIR"])
            finally: # the program waits for it
                go.touch()
            stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
