"""What a process that owns the GPU (`accel serve`) brings and costs a client, beside the device in the client's own process: both take
turns, in one run; with BENCH_BEFORE=FILE, that process has an earlier build's libaccel.so. The programs `steps` and
`served_times` compare their results."""

import os
import re
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from lib.calibrated import calibrate_slow_copies

# As long as CUDA took in a kept run on an H100 (docs/measurements: start_all), and its rates.
# Copies and kernels take that time and no CPU; the test GPU has no data then.
START_MS = "533"
RATES = {"TESTGPU_DATA": "0", "TESTGPU_UP_GBPS": "48.8", "TESTGPU_DOWN_GBPS": "53.3", "TESTGPU_GFLOPS": "58000", "TESTGPU_MEMORY": "4G"}
TURNS, FEW_TURNS = 11, 5
CLIENTS, SHARED, UPDATED, OFTEN = 8, 4000, 8192, 2000  # orders: 8192 is 512 MiB
WATCHED = 12  # products, of which the last ones do not read their inputs


class Served:
    """Runs of programs by a server, with the device in the process, and without libaccel."""

    def __init__(self, build, environment, socket, settings, model):
        self.build, self.environment, self.socket, self.settings, self.model = build, environment, socket, settings, model
        self.shim, self.steps = str(build / "libaccel.so"), str(build / "tests/steps")
        self.before = os.environ.get("BENCH_BEFORE", self.shim)

    def library(self, how):
        return self.before if how == "process" else self.shim

    def env(self, how, **extra):
        if how == "alone":
            return self.environment(extra)
        device = {"server": {"ACCEL_SERVER": self.socket, "ACCEL_CUDA_DIR": "/nowhere"},
                  "process": {"ACCEL_SERVER": "off", "ACCEL_CUDA_DIR": str(self.build / "testgpu"), "TESTGPU_DELAY_US": "0", "ACCEL_START": "wait", **self.settings}}[how]
        return self.environment({"ACCEL_POLICY": "gpu", **device, **extra})

    def times(self, how, *words, preload=True, **extra):
        """What served_times prints: milliseconds."""
        env = self.env(how, **({"LD_PRELOAD": self.library(how)} if preload else {}), **extra)
        return float(subprocess.run([self.build / "tests/served_times", *map(str, words)], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    check=True).stdout)

    def start_ms(self, how):
        """From exec to the end of a process of one product."""
        return self.times(how, "starts", 1, self.library(how), self.build / "tests/served_times", "zeros", 1000, 1, preload=False, TESTGPU_START_MS=START_MS)

    def awake_us(self, how):
        """The median of warm calls of order 64."""
        return 1e3 * self.times(how, "calls", 64, 400, 0)

    def asleep_us(self, how):
        """The same behind a pause, after which both sides sleep."""
        return 1e3 * self.times(how, "calls", 64, 60, 5)

    def update_ms(self, how):
        """512 MiB up and 512 MiB down."""
        return self.times(how, "updates", UPDATED, 5, ACCEL_RESIDENT="off")

    def together_ms(self, how):
        """Processes at a time, each with one product of the same matrix and 16 columns."""
        return self.times(how, "together", CLIENTS, self.library(how), self.build / "tests/served_times", "thin", SHARED, 1, preload=False, TESTGPU_START_MS=START_MS, ACCEL_RESIDENT="hash")

    def watched_ms(self, how):
        """A product of matrices to which nobody has written for some products."""
        return self.times(how, "zeros", OFTEN, WATCHED, ACCEL_RESIDENT="auto", ACCEL_MODEL=self.model)

    def sent(self):
        """The bytes that clients have sent up so far."""
        text = subprocess.run([self.build / "accel", "top", f"--socket={self.socket}", "--metrics"], capture_output=True, text=True, check=True).stdout
        return float(re.search(r"(?m)^accel_serve_upload_bytes_total (\S+)", text)[1])

    def sent_together(self):
        """How often their matrix has come up for all of them, beside the 16 columns of each."""
        before = self.sent()
        self.together_ms("server")
        return (self.sent() - before) / (8 * SHARED**2) - CLIENTS * 16 / SHARED

    def pss(self, how):
        """KiB of a process that has made some products."""
        preload = {} if how == "alone" else {"LD_PRELOAD": self.shim}
        with subprocess.Popen([self.steps, "dgemm:64:20", "sleep:3000"], env=self.env(how, **preload), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(1)
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            process.kill()
        return int(re.search(r"(?m)^Pss: +(\d+)", rollup)[1])


@contextmanager
def serving(build, environment, **settings):
    with tempfile.TemporaryDirectory(prefix="accel-bench-") as folder:
        path, model = f"{folder}/serve", f"{folder}/model"
        calibrate_slow_copies(model, folder, {"OPENBLAS_NUM_THREADS": "1"})  # so that inputs are kept
        env = environment({"ACCEL_CUDA_DIR": str(build / "testgpu"), "TESTGPU_DELAY_US": "0", **settings})
        with subprocess.Popen([build / "accel", "serve", f"--socket={path}", "--idle=0"], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            server.stdout.readline()
            try:
                yield Served(build, environment, path, settings, model)
            finally:
                server.terminate()


def in_turns(measure, *hows, turns=TURNS):
    """The values of each, taken in turns, after one that warms up."""
    for how in hows:
        measure(how)
    return [[measure(how) for how in hows] for _ in range(turns)]


def ratios(pairs):
    return [served / process for served, process in pairs]


def differences(pairs):
    return [served - other for served, other in pairs]


# label, mode, unit, digits, goal, and the values of it.
def rows(build, environment, quartiles):
    both, cpus = ("server", "process"), f"{len(os.sched_getaffinity(0))} CPUs, the test GPU's threads on them, too"
    rates = "at an H100's rates"
    with serving(build, environment, **RATES) as served:
        starts = in_turns(served.start_ms, *both)
        yield ("one product of order 1000, from exec to the end, by accel serve", rates, "ms", 1, 15, quartiles([by for by, _ in starts]))
        yield ("the same over that with the device in the process", "ACCEL_START=wait, 533 ms", "ratio", 4, 0.05, quartiles(ratios(starts)))
        yield ("512 MiB up and down by accel serve: time over that with the device in the process", rates, "ratio", 3, round(1 / 0.97, 3),
               quartiles(ratios(in_turns(served.update_ms, *both, turns=FEW_TURNS))))
        yield (f"{WATCHED} products of the same two watched matrices: time over that with the device in the process", f"order {OFTEN}; the last nine; {rates}",
               "ratio", 3, 1.03, quartiles(ratios(in_turns(served.watched_ms, *both, turns=FEW_TURNS))))
    with serving(build, environment) as served:
        yield ("memory that a client of accel serve adds (Pss)", "products of order 64", "KiB", 0, 2048,
               quartiles(differences(in_turns(served.pss, "server", "alone"))))
        yield ("added to a warm 64x64 call by accel serve", cpus, "us", 1, 15, quartiles(differences(in_turns(served.awake_us, *both))))
        yield ("the same from sleep", "behind 5 ms without a call", "us", 1, 40, quartiles(differences(in_turns(served.asleep_us, *both))))
        yield (f"{CLIENTS} processes, a product of the same matrix and 16 columns each: time over that with the device in each", f"order {SHARED}, 533 ms to start", "ratio", 3,
               0.5, quartiles(ratios(in_turns(served.together_ms, *both, turns=FEW_TURNS))))
        yield ("how often the matrix comes up for all of them", "ACCEL_RESIDENT=hash", "times", 2, 1.01, quartiles([served.sent_together() for _ in range(2)]))
