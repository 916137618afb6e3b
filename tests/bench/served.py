"""What a process that owns the GPU (`accel serve`) brings and costs a client, beside the device in the client's own process."""

import os
import re
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

# As long as CUDA took in a kept run on an H100 (docs/measurements: start_all).
START_MS = "533"
TURNS, CALLS = 11, 400


class Served:
    """Runs of the program `steps`, by a server, in the process, and without libaccel."""

    def __init__(self, build, environment, socket):
        self.steps, self.shim, self.environment, self.socket = build / "tests/steps", build / "libaccel.so", environment, socket
        self.gpu = str(build / "testgpu")

    def env(self, how):
        if how == "alone":
            return self.environment({})
        device = {"server": {"ACCEL_SERVER": self.socket, "ACCEL_CUDA_DIR": "/nowhere"},
                  "process": {"ACCEL_SERVER": "off", "ACCEL_CUDA_DIR": self.gpu, "TESTGPU_DELAY_US": "0", "ACCEL_START": "wait"}}[how]
        return self.environment({"ACCEL_POLICY": "gpu", **device}, self.shim)

    def run(self, how, *steps, **extra):
        return subprocess.run([self.steps, *steps], env={**self.env(how), **extra}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)

    def seconds(self, how):
        """From exec to the end of a process of one product."""
        begun = time.monotonic()
        self.run(how, "dgemm:64:1", TESTGPU_START_MS=START_MS)
        return time.monotonic() - begun

    def microseconds(self, how):
        """The median of warm calls of order 64."""
        log = self.run(how, f"dgemm:64:{CALLS}", ACCEL_LOG="1").stderr
        return 1e3 * statistics.median([float(ms) for ms in re.findall(r" sym=dgemm_ .* ms=(\S+)", log)][CALLS // 4:])

    def pss(self, how):
        """KiB of a process that has made some products."""
        with subprocess.Popen([self.steps, "dgemm:64:20", "sleep:3000"], env=self.env(how), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(1)
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            process.kill()
        return int(re.search(r"(?m)^Pss: +(\d+)", rollup)[1])


@contextmanager
def serving(build, environment):
    with tempfile.TemporaryDirectory(prefix="accel-bench-") as folder:
        path = f"{folder}/serve"
        env = environment({"ACCEL_CUDA_DIR": str(build / "testgpu"), "TESTGPU_DELAY_US": "0"})
        with subprocess.Popen([build / "accel", "serve", f"--socket={path}", "--idle=0"], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            server.stdout.readline()
            try:
                yield Served(build, environment, path)
            finally:
                server.terminate()


def in_turns(measure, *hows):
    """The values of each, taken in turns, after one that warms up."""
    for how in hows:
        measure(how)
    return [[measure(how) for how in hows] for _ in range(TURNS)]


# label, mode, unit, digits, goal, and the values of it.
def rows(build, environment, quartiles):
    with serving(build, environment) as served:
        yield ("one product of order 64, from exec to the end: time over that with the device in the process", "ACCEL_START=wait, 533 ms", "ratio", 4, 0.05,
               quartiles([server / process for server, process in in_turns(served.seconds, "server", "process")]))
        yield ("memory that a client of accel serve adds (Pss)", "products of order 64", "KiB", 0, 2048,
               quartiles([server - alone for server, alone in in_turns(served.pss, "server", "alone")]))
        yield ("added to a warm 64x64 call by accel serve", f"{len(os.sched_getaffinity(0))} CPUs, the test GPU's threads on them, too", "us", 1, 40,
               quartiles([server - process for server, process in in_turns(served.microseconds, "server", "process")]))
