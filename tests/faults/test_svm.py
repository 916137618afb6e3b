#!/usr/bin/python3 -B
"""svm-train, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn: it prints and writes what libsvm alone
does, or an equal model; rand() is drawn as without libaccel. A signal that ends it ends it."""

import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from faults import GPU, Fault, Outcome, judge, plan, report_on, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import BUILD, TESTS, clean_env, start
from lib.tap import Tap

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
ROWS = 100
# What stands behind -b 1 depends on rand(): a training that was given up must leave it where it was.
CASES = {"svm-train": [], "svm-train -b 1": ["-b", "1"], "svm-train -v 3": ["-v", "3"], "svm-train -s 4": ["-s", "4"]}

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-svm-faults-")
data = Path(folder.name, "data")
data.write_text("".join(Path(HEART).read_text().splitlines(keepends=True)[:ROWS]))
number = iter(range(1 << 60))


def arguments(options):
    return [*options, data, Path(folder.name, str(next(number)))]


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[-+]\d+)?", text)]


def is_same(text, plain):
    """Whether the printed lines are those of libsvm, their numbers within its own tolerance."""
    words = [re.sub(r"(?m)^[.*]+$", "*", re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "N", each)) for each in (text, plain)]
    pairs = list(zip(numbers(text), numbers(plain)))
    return words[0] == words[1] and all(abs(a - b) <= 5e-3 * max(1, abs(b)) for a, b in pairs)


def outcome_of(fault, done, report, baseline, plain):
    if done.returncode != 0 or not is_same(done.stdout, plain):
        return Outcome(fault, "wrong", f"{fault.plant}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}", 0)
    return judge(fault, done, report, baseline, done.stdout.splitlines()[-1])


for name, options in CASES.items():
    plain = start("/usr/bin/svm-train", *arguments(options)).stdout
    done, baseline = run("/usr/bin/svm-train", arguments(options), GPU)
    good = tap.ok(is_same(done.stdout, plain) and {line["ran"] for line in parse_log(done.stderr)} == {"gpu0"} and not baseline.misuse,
                  f"{name}: on the GPU without a fault", done.stdout, done.stderr, *baseline.misuse[:3])
    if not good:
        continue

    def attempt(fault):
        done, report = run("/usr/bin/svm-train", arguments(options), {**GPU, "TESTGPU_FAIL": fault.plant})
        return outcome_of(fault, done, report, baseline, plain)

    report_on(tap, name, "libsvm", sweep(list(plan(baseline, 4, start_up=not options)), attempt))

# ---- Host memory ----

PRELOAD = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}"}


def planted(options, plant=""):
    """The finished process, and libaccel's calls of malloc."""
    path = Path(folder.name, f"report-{next(number)}")
    done, report = run("/usr/bin/svm-train", arguments(options), {**GPU, **PRELOAD, "PLANT": plant, "PLANT_REPORT": str(path)})
    found = re.search(r"malloc calls=(\d+) failed=(\d+)", path.read_text() if path.exists() else "")
    return done, report, [int(n) for n in found.groups()] if found else [0, 0]


for name, options in CASES.items():
    plain = start("/usr/bin/svm-train", *arguments(options)).stdout
    done, _, (calls, _) = planted(options)
    if not tap.ok(is_same(done.stdout, plain) and calls > 20, f"{name}: {calls} calls of malloc by libaccel", done.stdout, done.stderr):
        continue

    def attempt(fault):
        done, report, (_, failed) = planted(options, fault.plant)
        if done.returncode != 0 or not is_same(done.stdout, plain) or report.misuse:
            return Outcome(fault, "wrong", f"{fault.plant}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]} {report.misuse[:2]}", 0)
        elsewhere = [f for f in parse_log(done.stderr) if f["ran"] == "cpu"]
        return Outcome(fault, "missed" if not failed else "recovered" if elsewhere or said(done) else "absorbed", "", 0)

    faults = [Fault("host memory", f"malloc:{n}{more}", "malloc", bool(more)) for n in uses(calls, 25) for more in ("", "+")]
    report_on(tap, f"{name}, host memory", "host memory", sweep(faults, attempt), least=10)

# ---- A signal ----

for ends in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
    # Each operation takes long enough for the signal to come in the midst of the training.
    process = subprocess.Popen(["/usr/bin/svm-train", *map(str, arguments([]))], env={**clean_env(folder.name), **GPU, "TESTGPU_DELAY_US": "200000"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    running = process.poll() is None
    process.send_signal(ends)
    out, err = process.communicate(timeout=60)
    tap.ok(running and process.returncode == -ends and not out, f"{ends.name} in the midst of a training ends the program", process.returncode, out, err)
tap.done()
