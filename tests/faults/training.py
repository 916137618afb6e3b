"""What the fault tests of programs that train share: a CUDA call, an allocation of device memory, or one of host
memory fails, each in turn; a signal ends the program."""

import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from faults.faults import GPU, Fault, Outcome, check, judge, plan, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import BUILD, TESTS, clean_env, start

PRELOAD = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}"}
OUTPUT = object()  # stands for the path of the file that a command writes
ENDING = signal.SIGTERM, signal.SIGINT, signal.SIGKILL


def words(command, folder):
    return [str(Path(folder, "output") if word is OUTPUT else word) for word in command]


def bytes_of(folder, name):
    path = Path(folder, name)
    return path.read_bytes() if path.exists() else b""


class Training:
    """A command that trains. plain: what it prints, and its file's bytes, without libaccel; device: on the test GPU
    without a fault, where it trains."""

    def __init__(self, row, command, is_same, start_up=False, most=4, host_most=25, lost=None):
        """row: of the table; is_same(training, finished process, bytes): whether it is the answer of a run without a
        fault. start_up: faults are planted while CUDA starts, too; most: of each function, so many uses fail;
        host_most: so many of the calls of malloc. lost: the calls that one of these failures leaves to the program's
        library, at most."""
        self.row, self.command, self.is_same = row, command, is_same
        self.start_up, self.most, self.host_most, self.lost = start_up, most, host_most, lost
        with tempfile.TemporaryDirectory(prefix="accel-training-") as folder:
            program, *arguments = words(command, folder)
            self.plain, self.plain_file = start(program, *arguments), bytes_of(folder, "output")
        self.device, self.device_file, self.baseline, _ = self.run({})
        assert self.is_right(self.device, self.device_file), self.device.stdout + self.device.stderr
        assert not self.baseline.misuse, self.baseline.misuse
        self.check_places({line["sym"]: line["ran"] for line in parse_log(self.device.stderr)})

    def check_places(self, places):
        assert set(places.values()) == {"gpu0"}, places

    def run(self, env):
        """(finished process, the file's bytes, the test GPU's report, what was planted in libc)"""
        with tempfile.TemporaryDirectory(prefix="accel-training-") as folder:
            program, *arguments = words(self.command, folder)
            done, report = run(program, arguments, {**GPU, **env, "PLANT_REPORT": f"{folder}/planted"})
            return done, bytes_of(folder, "output"), report, bytes_of(folder, "planted").decode()

    def is_right(self, done, file):
        return done.returncode == 0 and self.is_same(self, done, file)

    def wrong(self, fault, done, *more):
        return Outcome(fault, "wrong",
                       f"{fault.plant}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]} {more}", 0)

    def on_device_fault(self, fault):
        done, file, report, _ = self.run({"TESTGPU_FAIL": fault.plant})
        if not self.is_right(done, file):
            return self.wrong(fault, done)
        return judge(fault, done, report, self.baseline, done.stdout.splitlines()[-1])

    def planted(self, plant=""):
        """The finished process, the report, whether the answer is right, libaccel's calls of malloc, and those that
        failed."""
        done, file, report, text = self.run({**PRELOAD, "PLANT": plant})
        found = re.search(r"malloc calls=(\d+) failed=(\d+)", text)
        return done, report, self.is_right(done, file), *(int(n) for n in (found.groups() if found else (0, 0)))

    def on_host_fault(self, fault):
        done, report, right, _, failed = self.planted(fault.plant)
        if not right or report.misuse:
            return self.wrong(fault, done, report.misuse[:2])
        elsewhere = [f for f in parse_log(done.stderr) if f["ran"] == "cpu"]
        if self.lost is not None and not fault.lasting and len(elsewhere) > self.lost:
            return self.wrong(fault, done, f"{len(elsewhere)} calls are not on the GPU")
        return Outcome(fault, "missed" if not failed else "recovered" if elsewhere or said(done) else "absorbed", "", 0)


class TrainingTests:
    """The tests of a file that has `training`."""

    def test_device_faults(self, training):
        check(training.row,
              sweep(list(plan(training.baseline, training.most, training.start_up)), training.on_device_fault))

    def test_host_faults(self, training):
        done, _, right, calls, _ = training.planted()
        assert right, done.stdout + done.stderr
        assert calls > 20
        faults = [
            Fault("host memory", f"malloc:{n}{more}", "malloc", bool(more)) for n in uses(calls, training.host_most)
            for more in ("", "+")
        ]
        check("host memory", sweep(faults, training.on_host_fault), least=10)


def check_signal(command, number, folder):
    """It ends the program in the midst of a training."""
    # Each operation takes long enough for the signal to come in the midst of the training. Who runs
    # the tests may ignore SIGINT.
    process = subprocess.Popen(["/usr/bin/env", "--default-signal", *words(command, folder)],
                               env={**clean_env(str(folder)), **GPU, "TESTGPU_DELAY_US": "200000"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    running = process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert running, err
    assert (process.returncode, out) == (-number, b""), err
