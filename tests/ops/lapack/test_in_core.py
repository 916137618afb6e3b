#!/usr/bin/python3 -B
"""LAPACK on matrices that fit on the device, behind a link so slow that their panels come up while those before them are factored. Random calls,
with every flag, all four types, both integer widths, every kind of matrix, with NaN and Inf: the same INFO as without libaccel, every residual
within the bound of LAPACK's own tests, nothing else touched. Kernels run before all has come up, nothing comes down before the last one, and
each byte moves once. What stays on the device for a later call changes no bit. With TEST_LONG=1 in all types, and more calls."""

import re
import tempfile
from pathlib import Path

from lib.calibrated import calibrate_in_core
from lib.log import complaints, parse_log, said
from lib.programs import LONG, LOG, PLAIN, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
# What OpenBLAS 0.3.21 itself gets wrong: cases.h.
RANDOM = ["-f", "tyesmv"]
ROUTINES = "potrf posv getrf gesv geqrf gels".split()
folder = tempfile.TemporaryDirectory()
model = f"{folder.name}/model"
calibrate_in_core(model, folder.name, QUICK)
IN_CORE = {**TEST_GPU, **LOG, **QUICK, "ACCEL_LOG": "2", "ACCEL_MODEL": model}


def run(program, arguments, env):
    """The finished process, its cases with their INFO, and its lines of log."""
    with tempfile.TemporaryDirectory() as own:
        report = Path(own, "report")
        done = start(program, *RANDOM, "-o", report, *arguments, env={**QUICK, **env})
        cases = dict(line.split(" | ") for line in report.read_text().splitlines() if " | " in line)
    return done, {case: outcome.split()[0] for case, outcome in cases.items()}, parse_log(done.stderr)


def in_panels(done):
    """Routine -> the most panels in which a matrix has come up: those lines that the call's own line ends."""
    most, since = {}, 0
    for line in done.stderr.splitlines():
        if " event=h2d operand=a " in line:
            since += 1
        elif " ran=" in line:
            routine = re.search(r" sym=(\w+?)_? ", line)[1]
            most[routine] = max(most.get(routine, 0), since)
            since = 0
    return most


def same_as_native(name, program, arguments, extra={}):
    native, native_cases, _ = run(program, arguments, PLAIN)
    done, cases, _ = run(program, arguments, {**IN_CORE, **extra})
    wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    tap.ok(done.returncode == 0 and native.returncode == 0, f"{name}: right", done.returncode, done.stdout[-200:], *wrong[:5])
    other = [f"{case} | {native_cases.get(case)} | {info}" for case, info in cases.items() if native_cases.get(case) != info]
    tap.ok(cases and len(cases) == len(native_cases) and not other, f"{name}: INFO as without libaccel", *other[:5])
    tap.ok(not complaints(done), f"{name}: nothing to say", *said(done))
    return in_panels(done)


more = 6 if LONG else 1
# In the short form a real type and, by 64-bit integers, a complex one.
for program, dtypes in ("random_lapack", "sdcz" if LONG else "d"), ("random_lapack64", "sdcz" if LONG else "c"):
    for dtype in dtypes:
        routines = f"{dtype}@({'|'.join(ROUTINES)})"
        most = same_as_native(f"{program}, {dtype}", program, ["-m", 120, "-n", 200, "-c", 2 * more, "-r", routines, "-k", "@(uniform|well)"])
        few = [routine for routine in ROUTINES if most.get(dtype + routine, 0) < 3]
        tap.ok(not few, f"{program}, {dtype}: each routine's matrix came up in several panels", *few, most)
        same_as_native(f"{program}, {dtype}, every kind", program, ["-m", 80, "-n", 160, "-c", 2 * more, "-s", 100, "-r", routines])
same_as_native("delays", "random_lapack", ["-m", 120, "-n", 180, "-c", 1, "-r", "[sz]@(potrf|getrf|geqrf)"], {"TESTGPU_DELAY_US": "100"})
same_as_native("8 threads", "random_lapack", ["-m", 120, "-n", 160, "-c", 1, "-r", "d@(potrf|gesv|gels)", "-k", "well", 8])

# The order, and the bytes, as the device sees them.
for routine, kernel, share in ("dgetrf", "Xgetrf", (1, 1)), ("dgeqrf", "Xgeqrf", (1, 1)), ("dpotrf", "Xpotrf", (0.5, 0.75)):
    with tempfile.TemporaryDirectory() as own:
        trace = Path(own, "trace")
        done, cases, lines = run("random_lapack", ["-m", 190, "-n", 200, "-c", 1, "-k", "well", "-r", routine], {**IN_CORE, "TESTGPU_TRACE": str(trace)})
        text = trace.read_text()
    (line,) = [f for f in lines if f["sym"] == routine + "_" and f["ran"] == "gpu0"] or [{}]
    calls = [(match[1], int(match[2] or 0)) for match in re.finditer(r"(?m) (cuMemcpyHtoDAsync|cuMemcpyDtoHAsync|cusolverDn\w+|cublas[SDCZ]\w+)(?:_v2\([^)]*bytes=(\d+))?", text)]
    first, last = (next((i for i in order if kernel in calls[i][0] and "buffer" not in calls[i][0]), 0) for order in (range(len(calls)), range(len(calls) - 1, -1, -1)))
    ups, downs = ([(i, bytes) for i, (name, bytes) in enumerate(calls) if name == f"cuMemcpy{way}Async"] for way in ("HtoD", "DtoH"))
    up = sum(bytes for _, bytes in ups)
    before = sum(bytes for i, bytes in ups if i < first)
    tap.ok(done.returncode == 0 and first < last and before < 0.5 * up, f"{routine}: a panel is factored when {before} of {up} bytes have been sent for", line, *calls[:40])
    tap.ok(downs and min(downs)[0] > last, f"{routine}: nothing comes down before the last kernel", *calls[-20:])
    rows, cols = int(line.get("m", line.get("n", 0))), int(line.get("n", 0))
    tap.ok(share[0] * 8 * rows * cols <= float(line.get("up_mb", 0)) * 1e6 * 1.001 <= share[1] * 8 * rows * cols * 1.002,
           f"{routine}: each element comes up once", line)

# A matrix that comes the third time is there already; the kernels are those of the first time.
hashed, off = (start("again", "factors", 6, env={**IN_CORE, "ACCEL_RESIDENT": how}) for how in ("hash", "off"))
most, found = in_panels(off), [f for f in parse_log(hashed.stderr) if float(f.get("kept_mb", 0)) > 1]
tap.ok(hashed.returncode == off.returncode == 0 and min(most.get(f"d{name}", 0) for name in ("getrf", "potrf", "geqrf")) > 2, "matrices that come again: in panels", most, hashed.stderr[-300:])
tap.ok(hashed.stdout == off.stdout and {"dgetrf_", "dpotrf_", "dgeqrf_"} <= {f["sym"] for f in found}, "what is found on the device gives the same results, bit for bit", len(found))
tap.done()
