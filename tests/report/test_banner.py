#!/usr/bin/python3 -B
"""The banner: what a log and a summary say once of a process and its machine, when it is known, and of nothing else."""

import os
import pty
import re
import subprocess
import tempfile
from pathlib import Path

from lib.calibrated import calibrate, keys
from lib.log import LINE, about, events, parse_json, parse_log, said, summaries, table_of
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, clean_env, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
VERSION = Path(ROOT, "VERSION").read_text().strip()
COMMIT = next((line.split()[1] for line in start(TOOL, "--version").stdout.splitlines() if line.startswith("commit ")), None)
FAST = {**TEST_GPU, "TESTGPU_DELAY_US": "0"}
BEGIN = "import numpy, os, sys\na = numpy.ones((64, 64))\ndef call(): a @ a\n"
SOLVE = "numpy.linalg.eigvalsh(a)\n"
TESTGPU = os.path.realpath(BUILD / "testgpu")
tap = Tap()


def python(program, env, **options):
    return start(DEBIAN_PYTHON, "-c", BEGIN + program, env=env, **options)


def kinds(text):
    """The lines of a log in text in their order: events by their names, decisions by their symbols."""
    return [(re.search(r" event=(\w+)", line) or re.search(r" sym=(\w+)", line))[1] for line in text.splitlines() if line.startswith("accel ")]


# ---- In text ----

done = python("call(), call()\n" + SOLVE, {**FAST, **LOG})
tap.ok(kinds(done.stderr) == ["start", "gpu", "cblas_dgemm", "cblas_dgemm", "dsyevd_", "solver", "dsyevd_"], "each part once, before the first decision after it is known", done.stderr)
tap.ok(all(LINE.fullmatch(line) for line in done.stderr.splitlines()) and len(parse_log(done.stderr)) == 4, "as lines of the log that are no decisions", done.stderr)
begin, gpu, solver = (events(done.stderr, name)[0] for name in ("start", "gpu", "solver"))
tap.ok(begin["version"] == VERSION and begin.get("commit") == COMMIT and begin["program"] == "python3" and begin["precision"] == "native", "libaccel, its commit, the program", begin)
tap.ok(os.path.realpath(begin["cpu_library"]) == begin["cpu_library"] and "blas" in begin["cpu_library"] and begin["cpu_threads"] == "2" and begin["figures"] == "nominal",
       "the CPU's library, without symbolic links, its threads and figures", begin)
tap.ok(begin["note"] == "results of a GPU differ from the CPU's in rounding", "that results differ in rounding", begin)
tap.ok(gpu["gpu"] == "Test GPU" and gpu["driver_library"] == f"{TESTGPU}/libcuda.so.1" and gpu["cublas_library"].startswith(f"{TESTGPU}/libcublas.so.")
       and gpu["cublas"].isdigit() and gpu["cuda"].isdigit() and gpu["figures"] == "nominal", "the GPU, its driver and cuBLAS", gpu)
tap.ok(solver["cusolver"].isdigit() and solver["cusolver_library"].startswith(f"{TESTGPU}/libcusolver.so."), "cuSOLVER", solver)

done = python("call()", {**FAST, **LOG, "ACCEL_PRECISION": "emulated,tf32"})
begin = events(done.stderr, "start")[0]
tap.ok(begin["precision"] == "emulated,tf32" and begin["note"].endswith("; results are not native: ACCEL_PRECISION"), "a precision that is not native is told", begin)

# ---- No GPU ----

REASONS = {
    "no device": ({**NO_GPU, "ACCEL_POLICY": "gpu"}, None),
    "none was asked for": ({**TEST_GPU, "ACCEL_DEVICES": "none"}, "ACCEL_DEVICES=none"),
    "the policy": ({**TEST_GPU, "ACCEL_POLICY": "cpu"}, "ACCEL_POLICY=cpu"),
}
for name, (env, reason) in REASONS.items():
    done = python("call(), call()", {**env, **LOG})
    messages = [line.removeprefix("accel: no GPU is used: ") for line in said(done)]
    tap.ok(len(messages) == (reason is None) and [e["reason"] for e in events(done.stderr, "no_gpu")] == ([reason] if reason else []), f"no GPU, {name}: on stderr, the reason once", done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        done = python("call(), call()", {**env, **LOG, "ACCEL_LOG_FILE": f"{folder}/log"})
        text = Path(folder, "log").read_text()
        reason = reason or messages[0]
        tap.ok([e["reason"] for e in events(text, "no_gpu")] == [reason] and kinds(text)[:2] == ["start", "no_gpu"], "in a file of its own, too", text)
    done = python("call()", {**env, "ACCEL_LOG": "json"})
    tap.ok([o["reason"] for o in parse_json(done.stderr) if o.get("event") == "no_gpu"] == [reason], "and in JSON", done.stderr)
    done = python("call()", {**env, "ACCEL_SUMMARY": "1"})
    tap.ok([line for line in about(done.stderr) if line.startswith("accel: no GPU ")] == [f"accel: no GPU    {reason}"], "and in the summary", done.stderr)

# ---- Once a process, where there is a decision ----

for program in ("pass", "import json"):
    done = python(program, {**FAST, **LOG, "ACCEL_SUMMARY": "1"})
    tap.ok(done.stderr == "", "a program without a call has none", done.stderr)
done = start("/bin/sh", "-c", f"{DEBIAN_PYTHON} -c '{BEGIN}call()'; exit 0", env={**FAST, **LOG})
tap.ok(kinds(done.stderr).count("start") == 1, "nor has the shell that starts it", done.stderr)
done = python("call()\nif os.fork() == 0: call(); call(); os._exit(0)\nos.wait(); call()", {**FAST, **LOG})
by_pid = {}
for line in done.stderr.splitlines():
    by_pid.setdefault(re.search(r"pid=(\d+)", line)[1], []).append(line)
told = {tuple(kinds("\n".join(lines))) for lines in by_pid.values()}
tap.ok(told == {("start", "gpu", *["cblas_dgemm"] * 2), ("start", "no_gpu", *["cblas_dgemm"] * 2)} and "does not survive a fork" in events(done.stderr, "no_gpu")[0]["reason"],
       "the child of a fork has its own, with its reason", done.stderr)
done = python("if os.fork() == 0: call(); os._exit(0)\nos.wait(); call()", {**FAST, **LOG})
tap.ok(kinds(done.stderr) == ["start", "gpu", "cblas_dgemm"] * 2, "before the GPU was used, the child has a GPU", done.stderr)
done = python("call(), call()", {**FAST, **LOG, "ACCEL_LOG_MIN_MS": "100000"})
tap.ok(done.stderr == "", "none without a line", done.stderr)
done = python("call()", {**FAST, "ACCEL_LOG": "2"})
tap.ok(kinds(done.stderr)[:2] == ["start", "gpu"] and "h2d" in kinds(done.stderr), "before what moves", done.stderr)

# A terminal gets what a pipe gets.
main, side = pty.openpty()
with subprocess.Popen([DEBIAN_PYTHON, "-c", BEGIN + "call()"], env={**clean_env(tempfile.gettempdir()), **FAST, **LOG}, stderr=side) as process:
    os.close(side)
    seen = b""
    try:
        while chunk := os.read(main, 4096):
            seen += chunk
    except OSError:  # the other side is closed
        pass
tap.ok(kinds(seen.decode()) == ["start", "gpu", "cblas_dgemm"], "on a terminal", seen.decode())

# ---- Values with blanks ----

with tempfile.TemporaryDirectory() as folder:
    os.symlink(DEBIAN_PYTHON, f"{folder}/my \"program\"\n")
    done = start(f"{folder}/my \"program\"\n", "-c", BEGIN + "call()", env={**FAST, **LOG})
    tap.ok(all(LINE.fullmatch(line) for line in done.stderr.splitlines()) and events(done.stderr, "start")[0]["program"] == 'my "program"\n', "a name with blanks, quotes and a new line is quoted", done.stderr)

# ---- Calibrated figures ----

with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    calibrate(model, keys(folder), 1000, 1)
    os.utime(model, (951825600, 951825600))
    measured = {**FAST, "ACCEL_MODEL": model}
    done = start("steps", "dgemm:400:2", env={**measured, **LOG})
    told = {name: events(done.stderr, name)[0] for name in ("start", "gpu")}
    tap.ok(all((e["figures"], e["calibration"], e["calibrated"]) == ("measured", model, "2000-02-29") for e in told.values()), "a calibration, with its day", done.stderr)
    done = start("steps", "dgemm:400:2", env={**measured, "ACCEL_LOG": "json"})
    told = [o for o in parse_json(done.stderr) if o.get("event") in ("start", "gpu")]
    tap.ok(len(told) == 2 and all((e["figures"], e["calibration"], e["calibrated"]) == ("measured", model, "2000-02-29") for e in told), "in JSON", done.stderr)
    done = start("steps", "dgemm:400:2", env={**measured, "ACCEL_SUMMARY": "1"})
    tap.ok(sum(line.endswith(f"; figures of 2000-02-29, {model}") for line in about(done.stderr)) == 2, "in the summary", done.stderr)

# ---- In a summary ----

done = python("call()\n" + SOLVE, {**FAST, "ACCEL_SUMMARY": "1"})
first = [line.split()[1] for line in about(done.stderr)]
tap.ok(first == ["libaccel", "CPU", "GPU", "driver", "cuBLAS", "cuSOLVER"] and f" {VERSION}" in about(done.stderr)[0] and "differ from the CPU's in rounding" in about(done.stderr)[0],
       "a line for each part", done.stderr)
tap.ok(all(path in done.stderr for path in (f"{TESTGPU}/libcuda.so.1", f"{TESTGPU}/libcublas.so.", f"{TESTGPU}/libcusolver.so.")) and "2 threads; nominal figures" in done.stderr,
       "with paths, threads and figures", done.stderr)
tap.ok(table_of(done.stderr)[0].startswith("accel: summary of "), "behind the table", done.stderr)
done = python("call()", {**FAST, "ACCEL_SUMMARY": "1", "ACCEL_PRECISION": "emulated"})
tap.ok("accel: precision emulated: results are not native" in about(done.stderr), "a precision that is not native", done.stderr)
done = python("call()", {**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_SUMMARY": "1"})
tap.ok(about(done.stderr)[-1].startswith("accel: no GPU    none was started"), "a GPU that was not needed", done.stderr)
done = python("call()\n" + SOLVE, {**FAST, "ACCEL_SUMMARY": "json"})
found = summaries(done.stderr)[0]["about"]
tap.ok([part["event"] for part in found] == ["start", "gpu", "solver"] and found[0]["cpu_threads"] == 2 and found[1]["gpu"] == "Test GPU", "as JSON", *found)
done = python("call()", {**FAST, **LOG, "ACCEL_SUMMARY": "1"})
tap.ok(not about(done.stderr) and kinds(done.stderr).count("start") == 1, "a log has told it already", done.stderr)
CHILDREN = "import subprocess\ncall()\nfor i in range(2): subprocess.run([sys.executable, '-c', 'import numpy; a = numpy.ones((64, 64)); a @ a'])\nif os.fork() == 0: call(); os._exit(0)\nos.wait()"
done = start(TOOL, "run", "--summary", "--", DEBIAN_PYTHON, "-c", BEGIN + CHILDREN, env={k: v for k, v in FAST.items() if k not in SHIM})
tap.ok([line.split()[1] for line in about(done.stderr)] == ["libaccel", "CPU", "GPU", "driver", "cuBLAS"] and "4 processes made calls" in done.stderr, "one for all processes of a run", done.stderr)
tap.done()
