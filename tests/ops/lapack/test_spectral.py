#!/usr/bin/python3 -B
"""Eigenvalues of matrices that are larger than the device's memory: spectral divide and conquer, by calls of Level 3 and Cholesky factors on the GPU. Random
calls of all four types, with every kind of matrix, both triangles, ld above the rows, by columns and by rows: the same INFO as without libaccel,
every residual within the bound of LAPACK's own tests, nothing else touched. One device, and two that share the inner calls. What cannot be
done so is the CPU's, and so is what the CPU does faster. With TEST_LONG=1 each of these in all types, and more calls."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import parse_log, said
from lib.programs import LONG, LOG, PLAIN, TEST_GPU, start
from lib.split import several
from lib.tap import Tap

tap = Tap()
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
RANDOM = ["-f", "tyesmv"]  # what OpenBLAS 0.3.21 itself gets wrong: cases.h
SIZES = {"s": 4, "d": 8, "c": 8, "z": 16}
DIVIDED = "@(uniform|well|bad|singular|indefinite)"


def run(arguments, env, program="random_lapack"):
    """The finished process, its cases with their INFO, and its decisions on eigenvalues."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start(program, *RANDOM, "-o", report, *arguments, env={**QUICK, **env})
        cases = dict(line.split(" | ") for line in report.read_text().splitlines() if " | " in line)
    lines = [f for f in parse_log(done.stderr) if re.search("ev", f["sym"]) and f["why"] not in ("workspace_query", "bad_argument", "empty") and "depth" not in f]
    return done, {case: outcome.split()[0] for case, outcome in cases.items()}, lines


def same_as_native(name, arguments, env, program="random_lapack"):
    native, native_cases, _ = run(arguments, PLAIN, program)
    done, cases, lines = run(arguments, {**TEST_GPU, **LOG, **env}, program)
    wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    tap.ok(done.returncode == 0 and native.returncode == 0, f"{name}: right", done.returncode, done.stdout[-200:], *wrong[:5])
    other = [f"{case} | {native_cases.get(case)} | {info}" for case, info in cases.items() if native_cases.get(case) != info]
    tap.ok(cases and len(cases) == len(native_cases) and not other, f"{name}: INFO as without libaccel", *other[:5])
    tap.ok(not said(done), f"{name}: nothing to say", *said(done))
    return lines


def large(lines, memory):
    """Those of matrices that have more bytes than the memory."""
    return [f for f in lines if int(f["n"]) ** 2 * SIZES[f["sym"].replace("LAPACKE_", "")[0]] > 1024 * memory]


more = 4 if LONG else 1
# In the short form real and complex matrices on one device, in either precision, and one type each
# of the rest.
for dtype in "sdcz" if LONG else "dc":
    size = SIZES[dtype]
    memory = 20 * size
    routines = dtype + "@(syev|syevd|heev|heevd)"
    lines = same_as_native(f"one device, {dtype}", ["-n", 190, "-m", 140, "-c", 4 * more, "-k", DIVIDED, "-r", routines], {"ACCEL_MEMORY": f"{memory}K"})
    tap.ok(lines and {f["ran"] for f in lines} == {"gpu0"} and len(large(lines, memory)) > len(lines) / 2, f"one device, {dtype}: all on the GPU", Counter((f["ran"], f["why"]) for f in lines))
    tap.ok({f["args"] for f in lines} > {"V,L"} or {f["args"][0] for f in lines} == set("NV"), f"one device, {dtype}: values and vectors", {f["args"] for f in lines})
    if not LONG and dtype == "c":
        continue
    lines = same_as_native(f"every kind, {dtype}", ["-n", 190, "-s", 100, "-m", 140, "-c", 6 * more, "-r", routines], {"ACCEL_MEMORY": f"{memory}K"})
    tap.ok({(f["ran"], f["why"]) for f in lines} == {("gpu0", "forced"), ("cpu", "unsupported")}, f"every kind, {dtype}: on the GPU, or refused", Counter((f["ran"], f["why"]) for f in lines))
    lines = same_as_native(f"two devices, {dtype}", ["-n", 190, "-m", 140, "-c", 3 * more if LONG else 2, "-k", DIVIDED, "-r", routines], {**several(2), "ACCEL_MEMORY": f"{memory}K"})
    tap.ok(lines and {f["ran"] for f in lines} == {"gpu0+gpu1"}, f"two devices, {dtype}: shared", Counter((f["ran"], f["why"]) for f in lines))

lines = same_as_native("64-bit integers", ["-n", 190, "-m", 140, "-c", 3 * more if LONG else 1, "-k", DIVIDED, "-r", "[dz]@(syevd|heev)"], {"ACCEL_MEMORY": "160K"}, "random_lapack64")
tap.ok(lines and {f["ran"] for f in lines} == {"gpu0"}, "64-bit integers: all on the GPU", Counter((f["ran"], f["why"]) for f in lines))
# Copies and kernels in random order between the streams.
lines = same_as_native("delays", ["-n", 150, "-m", 140, "-c", 1, "-k", "well", "-r", "dsyevd"], {"ACCEL_MEMORY": "160K", "TESTGPU_DELAY_US": "100"})
tap.ok(lines and {f["ran"] for f in lines} == {"gpu0"}, "delays: on the GPU")
# Other precisions are for what the program calls, not for inner calls.
lines = same_as_native("TF32", ["-n", 190, "-m", 140, "-c", 2, "-k", "well", "-r", "ssyevd"], {"ACCEL_MEMORY": "80K", "ACCEL_PRECISION": "tf32"})
tap.ok(lines and {f["ran"] for f in lines} == {"gpu0"}, "TF32: on the GPU, within the bounds of single precision")
# 4 threads share the memory.
done, _, lines = run(["-n", 150, "-m", 140, "-c", 1, "-k", "well", "-r", "[dz]@(syevd|heevd)", 4], {**TEST_GPU, **LOG, "ACCEL_MEMORY": "400K"})
tap.ok(done.returncode == 0, "4 threads: right", done.stdout[-200:], *[line for line in done.stderr.splitlines() if line.startswith("wrong: ")][:5])
tap.ok(lines and {f["why"] for f in lines} <= {"forced", "no_memory"}, "4 threads: on the GPU, or no memory for it", Counter((f["ran"], f["why"]) for f in lines))

# Where the estimate decides: a matrix of this order is faster on the CPU, and that is the reason.
done, _, lines = run(["-n", 190, "-m", 140, "-c", 2, "-k", "well", "-r", "dsyevd"], {**TEST_GPU, **LOG, "ACCEL_MEMORY": "160K", "ACCEL_POLICY": "auto", "ACCEL_START": "wait"})
tap.ok(done.returncode == 0 and lines and {f["ran"] for f in lines} == {"cpu"} and {f["why"] for f in lines} <= {"slower", "small", "no_gpu"}, "small matrices: the CPU's", Counter((f["ran"], f["why"]) for f in lines))

# The log has one line for a call, with the bytes that the device has seen.
with tempfile.TemporaryDirectory() as folder:
    report = Path(folder, "report")
    done, _, lines = run(["-n", 150, "-m", 150, "-c", 1, "-k", "well", "-r", "dsyevd"], {**TEST_GPU, **LOG, "ACCEL_MEMORY": "160K", "TESTGPU_REPORT": str(report)})
    text = report.read_text()
copied = dict(re.findall(r"(h2d|d2h)_bytes=(\d+)", text))
line = lines[0] if len(lines) == 1 else {}
for direction, key in ("h2d", "up_mb"), ("d2h", "down_mb"):
    share = float(line.get(key, 0)) * 1e6 / int(copied.get(direction, 1))
    tap.ok(0.9 < share < 1.001, f"{key} is what the device has seen of inner calls", line.get(key), copied.get(direction))
tap.ok(not [f for f in parse_log(done.stderr) if f["sym"] not in ("dsyevd_",)], "inner calls have no line of their own")
faults = [line for line in text.splitlines() if line.startswith("testgpu fault ")]
tap.ok(not faults, "no misuse of the device", *faults[:3])
tap.done()
