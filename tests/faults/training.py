"""What the fault tests of programs that train share: a CUDA call, an allocation of device memory, or one of host memory fails, each in turn; a
signal ends the program."""

import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from faults import GPU, Fault, Outcome, judge, plan, report_on, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import BUILD, TESTS, clean_env, start

PRELOAD = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}"}
OUTPUT = object()  # stands for the path of the file that a command writes

_folder = tempfile.TemporaryDirectory(prefix="accel-training-")
_number = iter(range(1 << 60))


def new_path():
    return Path(_folder.name, str(next(_number)))


def taken(path):
    """The file's bytes; the file is no longer there."""
    found = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    return found


class Training:
    """A command that trains. plain: what it prints, and its file's bytes, without libaccel; device: on the test GPU without a fault."""

    def __init__(self, name, row, command, is_same):
        """row: of the table; is_same(training, finished process, bytes): whether it is the answer of a run without a fault."""
        self.name, self.row, self.command, self.is_same = name, row, command, is_same
        program, *arguments = self.arguments(path := new_path())
        self.plain, self.plain_file = start(program, *arguments), taken(path)
        self.device, self.device_file, self.baseline = self.run({})

    def arguments(self, path):
        return [str(path if word is OUTPUT else word) for word in self.command]

    def run(self, env):
        """(finished process, the file's bytes, the test GPU's report)"""
        program, *arguments = self.arguments(path := new_path())
        done, report = run(program, arguments, {**GPU, **env})
        return done, taken(path), report

    def is_right(self, done, file):
        return done.returncode == 0 and self.is_same(self, done, file)

    def check(self, tap):
        """Whether it trains on the test GPU, as it does without."""
        return tap.ok(self.is_right(self.device, self.device_file) and {line["ran"] for line in parse_log(self.device.stderr)} == {"gpu0"}
                      and not self.baseline.misuse, f"{self.name}: on the GPU without a fault", self.device.stdout, self.device.stderr,
                      *self.baseline.misuse[:3])

    def wrong(self, fault, done, *more):
        return Outcome(fault, "wrong", f"{fault.plant}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]} {more}", 0)

    def device_faults(self, tap, most=4, start_up=False):
        def attempt(fault):
            done, file, report = self.run({"TESTGPU_FAIL": fault.plant})
            if not self.is_right(done, file):
                return self.wrong(fault, done)
            return judge(fault, done, report, self.baseline, done.stdout.splitlines()[-1])

        report_on(tap, self.name, self.row, sweep(list(plan(self.baseline, most, start_up)), attempt))

    def host_faults(self, tap, most=25, lost=None):
        """most: so many of the calls of malloc fail, each in turn. lost: the calls that one failure leaves to the program's library, at most."""
        def planted(plant=""):
            """The finished process, the report, whether the answer is right, and libaccel's calls of malloc."""
            path = new_path()
            done, file, report = self.run({**PRELOAD, "PLANT": plant, "PLANT_REPORT": str(path)})
            found = re.search(r"malloc calls=(\d+) failed=(\d+)", taken(path).decode())
            return done, report, self.is_right(done, file), [int(n) for n in found.groups()] if found else [0, 0]

        def attempt(fault):
            done, report, right, (_, failed) = planted(fault.plant)
            if not right or report.misuse:
                return self.wrong(fault, done, report.misuse[:2])
            elsewhere = [f for f in parse_log(done.stderr) if f["ran"] == "cpu"]
            if lost is not None and not fault.lasting and len(elsewhere) > lost:
                return self.wrong(fault, done, f"{len(elsewhere)} calls are not on the GPU")
            return Outcome(fault, "missed" if not failed else "recovered" if elsewhere or said(done) else "absorbed", "", 0)

        done, _, right, (calls, _) = planted()
        if tap.ok(right and calls > 20, f"{self.name}: {calls} calls of malloc by libaccel", done.stdout, done.stderr):
            faults = [Fault("host memory", f"malloc:{n}{more}", "malloc", bool(more)) for n in uses(calls, most) for more in ("", "+")]
            report_on(tap, f"{self.name}, host memory", "host memory", sweep(faults, attempt), least=10)

    def signals(self, tap):
        for ends in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
            # Each operation takes long enough for the signal to come in the midst of the training.
            # Who runs the tests may ignore SIGINT.
            process = subprocess.Popen(["/usr/bin/env", "--default-signal", *self.arguments(new_path())], env={**clean_env(_folder.name), **GPU, "TESTGPU_DELAY_US": "200000"},
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.5)
            running = process.poll() is None
            process.send_signal(ends)
            out, err = process.communicate(timeout=300)
            tap.ok(running and process.returncode == -ends and not out, f"{self.name}: {ends.name} in the midst of a training ends the program",
                   process.returncode, out, err)
