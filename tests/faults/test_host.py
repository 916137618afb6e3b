#!/usr/bin/python3 -B
"""What libaccel asks of the C library fails: memory at its n-th use and from then on, pages, the thread that starts CUDA. Every result
is right, and no more is left behind than otherwise."""

import re
import tempfile
from pathlib import Path

from faults import GPU, QUICK, Fault, Outcome, ended_well, report_on, run, sweep, uses
from lib.log import parse_log, said
from lib.split import several
from lib.programs import BUILD, TEST_GPU, TESTS
from lib.tap import Tap

PRELOAD = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}"}
LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK = ["-f", "tyesmv", "-k", "@(uniform|well)"]
WORKLOADS = {
    "Level 3 and 2": ("random_calls", [*LACKING, "-c", 1, "-n", 40, "-s", 3, "-r", "d*"], {}, "malloc"),
    "the same in parts": ("random_calls", [*LACKING, "-c", 1, "-n", 150, "-s", 4, "-r", "z*"], {"ACCEL_MEMORY": "100K"}, "malloc"),
    "on several devices": ("random_calls", [*LACKING, "-c", 2, "-n", 60, "-s", 21, "-r", "d@(gemm|syrk|symm|trsm|gemm_batch_strided)"], {**several(2), **PRELOAD}, "malloc"),
    "without a GPU": ("random_calls", [*LACKING, "-c", 1, "-n", 40, "-s", 3, "-r", "d*"], {"CUDA_VISIBLE_DEVICES": "-1"}, "malloc"),
    "operands in device memory": ("cuda_program", [*LACKING, "-c", 1, "-n", 20, "-r", "d@(gemm|trsm|syrk|symv|ger|gemm_batch)"], {}, "malloc"),
    "LAPACK": ("random_lapack", [*LAPACK, "-c", 1, "-n", 20, "-s", 5, "-r", "d*"], {}, "malloc"),
    "LAPACK in panels": ("random_lapack", [*LAPACK, "-c", 1, "-m", 105, "-n", 125, "-s", 5, "-r", "d@(potrf|posv|gesv|getrs)"], {"ACCEL_MEMORY": "76K", "ACCEL_CPU": "blas2:*,blas3:*"}, "malloc"),
    "LAPACK in device memory": ("device_lapack", [], {}, "malloc"),
    "figures": ("steps", ["dgemm:300:4", "solve:300:2"], {"ACCEL_POLICY": "auto", "ACCEL_START": "wait"}, "mmap"),
    "figures, memory": ("steps", ["dgemm:300:4", "solve:300:2"], {"ACCEL_POLICY": "auto", "ACCEL_START": "wait"}, "malloc"),
}

# What could not be remembered is looked up again, and both stay.
TWICE = 8

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-plant-")
HOME = {"XDG_CACHE_HOME": folder.name, "XDG_RUNTIME_DIR": folder.name}


def planted(program, arguments, env, plant=""):
    """The finished process, the test GPU's report, and what the C library was asked: {name: (calls, failed)}, blocks left."""
    path = Path(folder.name, re.sub(r"\W", "_", f"{program}{arguments}{plant}")[-200:])
    done, report = run(program, arguments, {**GPU, **PRELOAD, **HOME, **env, "PLANT": plant, "PLANT_REPORT": str(path)})
    text = path.read_text() if path.exists() else ""
    calls = {name: (int(n), int(failed)) for name, n, failed in re.findall(r"(\w+) calls=(\d+) failed=(\d+)", text)}
    left = re.search(r"left=(\d+)", text)
    return done, report, calls, int(left[1]) if left else -1


def is_right(done):
    return ended_well(done, "") or done.returncode == 0 and "\n0 wrong" in done.stdout and "\n1 wrong" not in done.stdout


for name, (program, arguments, env, function) in WORKLOADS.items():
    done, baseline, calls, usual = planted(program, arguments, env)
    count = calls.get(function, (0, 0))[0]
    if not tap.ok(is_right(done) and count > 1, f"{name}: {count} calls of {function} by libaccel, {usual} blocks are its own at the end",
                  done.stdout, done.stderr[-300:], calls):
        continue
    faults = [Fault("host memory", f"{function}:{n}{more}", function, bool(more)) for n in uses(count, 40) for more in ("", "+")]

    def attempt(fault):
        done, report, calls, left = planted(program, arguments, env, fault.plant)
        stopped = done.returncode == -6 and "cannot be made right" in done.stderr
        if stopped and program in ("cuda_program", "device_lapack"):  # the CPU needs memory to see the device's
            return Outcome(fault, "stopped", [line for line in done.stderr.splitlines() if "cannot be made right" in line][0], 0)
        if not is_right(done) or report.misuse:
            return Outcome(fault, "wrong", f"{fault.plant}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]} {report.misuse[:2]}", 0)
        if left > usual + TWICE:
            return Outcome(fault, "wrong", f"{fault.plant}: {left} blocks are left, not {usual}", 0)
        elsewhere = [f for f in parse_log(done.stderr) if f["why"] in ("no_memory", "unsupported", "error")]
        return Outcome(fault, "missed" if calls[function][1] == 0 else "recovered" if elsewhere or said(done) else "absorbed", "", 0)

    report_on(tap, name, "host memory", sweep(faults, attempt), least=2 if function == "mmap" else 10)

# A process that may have no more threads: what would have waited for CUDA goes on with the CPU, and
# the log says why.
env = {**TEST_GPU, **QUICK, **PRELOAD, **HOME, "ACCEL_POLICY": "auto", "ACCEL_LOG": "1"}
done, _ = run("steps", ["dgemm:400:100", "started", "dgemm:400:2"], {**env, "ACCEL_GPU": ""})
fault = Fault("threads", "pthread_create:1", "pthread_create", True)
none, _ = run("steps", ["during:1500:400"], {**env, "PLANT": fault.plant})
lines = parse_log(none.stderr)
tap.ok("gpu0" in {f["ran"] for f in parse_log(done.stderr)}, "with a thread, CUDA starts beside the program", said(done), done.stdout)
good = tap.ok(none.returncode == 0 and " 0 wrong" in none.stdout and {f["ran"] for f in lines} == {"cpu"}, "without one, the CPU computes", none.stdout)
good = tap.ok(len(said(none)) == 1 and "thread" in said(none)[0], "and one line says so", *said(none)) and good
report_on(tap, "no thread", "host memory", [Outcome(fault, "recovered" if good else "wrong", "", 0)], least=1)
tap.done()
