#!/usr/bin/python3 -B
"""ACCEL_C2C, on a test GPU that uses the host's page tables: what each policy copies, reads in place and moves; right results also where the device
fails; decisions by the calibration's rate; ranks decide alike; other devices copy, and say so."""

import re
import tempfile
from pathlib import Path

from lib.calibrated import AUTO, gpu_lines, keys, lines, put
from lib.log import lines_for, said
from lib.programs import LOG, LONG, TEST_GPU, TESTS, start
from lib.tap import Tap

TABLES = {"TESTGPU_ATTRIBUTES": "100=1"}  # cuda.h: PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
GRACE = {**TEST_GPU, **TABLES, "TESTGPU_DELAY_US": "0"}
LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]
POLICIES = ("auto", "place", "copy", "migrate")

tap = Tap()


def run(program, *arguments, env):
    """The finished process, and the test GPU's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start(program, *arguments, env={**env, "TESTGPU_REPORT": str(report)}, timeout=600)
        return done, report.read_text() if report.exists() else ""


def moved(report):
    """The report's bytes up, down and migrated."""
    return [int(found[1]) if (found := re.search(what, report)) else 0 for what in (r"h2d_bytes=(\d+)", r"d2h_bytes=(\d+)", r"migrated bytes=(\d+)")]


def events(done, kind):
    return re.findall(rf"event={kind} operand=(\w)", done.stderr)


# ---- A product: bytes, events ----

N = 320  # whole lines of 64 bytes: copies have no gaps
WHOLE = 8 * N * N
for c2c in POLICIES:
    done, report = run("steps", f"dgemm:{N}:2", env={**GRACE, "ACCEL_LOG": "2", "ACCEL_C2C": c2c})
    up, down, pages = moved(report)
    copies = c2c == "copy"
    tap.ok(done.returncode == 0 and "2 calls, 0 wrong" in done.stdout and not said(done) and "faults n=0" in report, f"{c2c}: right, without misuse of CUDA",
           done.stdout, done.stderr[-500:], report[-500:])
    tap.ok(up == (4 * WHOLE if copies else 0) and down == 2 * WHOLE, f"{c2c}: {up} bytes up, {down} down", report[-500:])
    tap.ok([f["up_mb"] for f in lines_for(done)] == ([f"{2e-6 * WHOLE:.4g}"] * 2 if copies else ["0"] * 2), f"{c2c}: the log's lines say so", *lines_for(done))
    tap.ok(events(done, "in_place") == ([] if copies else ["a", "b"] * 2) and events(done, "h2d") == (["a", "b"] * 2 if copies else []),
           f"{c2c}: the log's second level says what is read in place", done.stderr)
    # Whole pages alone: at both ends of each operand, less than a page stays.
    tap.ok(4 * (WHOLE - 8192) <= pages <= 4 * WHOLE and events(done, "migrate") == ["a", "b"] * 2 if c2c == "migrate"
           else pages == 0 and not events(done, "migrate"), f"{c2c}: {pages} bytes are moved to the device", done.stderr)

# ---- Results ----

for c2c in POLICIES:
    seed = 100 * POLICIES.index(c2c)
    for what, arguments, extra in (("every routine", ["-c", 5 if LONG else 1, "-s", seed], {}),
                                   ("in blocks, strips and loads", ["-c", 3 if LONG else 1, "-n", 150, "-s", seed + 1], {"ACCEL_MEMORY": "60K"})):
        done, report = run("random_calls", *LACKING, *arguments, env={**GRACE, **extra, "ACCEL_C2C": c2c})
        tap.ok(done.returncode == 0 and ", 0 wrong" in done.stdout and not said(done) and "faults n=0" in report, f"{c2c}: {what}, right", done.stdout[-300:],
               done.stderr[-500:], *re.findall("testgpu fault .*", report)[:5])

# ---- A device that fails: results are those of the CPU, never half written ----

FAULTY = ["-c", 4, "-n", 120, "-s", 7, "-r", "d@(gemm|syrk|trsm|gemv|ger)"]
for c2c in ("place", "migrate"):
    env = {**GRACE, "ACCEL_C2C": c2c, "ACCEL_MEMORY": "60K"}
    _, report = run("random_calls", *FAULTY, env=env)
    functions = {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", report)}
    operations = sum(n for name, n in functions.items() if name.startswith(("cublasD", "cuMemcpy")))
    faults = [f"async:{n}=CUDA_ERROR_ILLEGAL_ADDRESS" for n in range(1, operations + 1, 1 if LONG else 4)]
    faults += [f"{name}:{n}" for name in functions if name.startswith(("cuMemPrefetch", "cublasD", "cuMemcpyDtoH", "cuMemAlloc"))
               for n in range(1, functions[name] + 1, 1 if LONG else 4)]
    bad = []
    for fault in faults:
        done = start("random_calls", *FAULTY, env={**env, "TESTGPU_FAIL": fault})
        if done.returncode != 0 or ", 0 wrong" not in done.stdout or len(said(done)) > 1:
            bad.append(f"{fault}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
    tap.ok(operations > 20 and len(faults) > 8 and not bad, f"{c2c}: {len(faults)} faults, every result right", *bad[:5])
# A driver that cannot move the pages leaves them, and the kernels read them there.
done, report = run("steps", f"dgemm:{N}:2", env={**GRACE, "ACCEL_LOG": "2", "ACCEL_C2C": "migrate", "TESTGPU_FAIL": "cuMemPrefetchAsync:1+=CUDA_ERROR_NOT_SUPPORTED"})
tap.ok(done.returncode == 0 and not said(done) and events(done, "in_place") == ["a", "b"] * 2 and not events(done, "migrate") and moved(report)[0] == 0,
       "migrate: pages that the driver does not move are read in place", done.stdout, done.stderr)

# ---- Which is faster ----

with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    known = keys(folder)
    for gbps, expected in ((1000, ["a", "b"]), (150, [])):
        # Copies at 100 GB/s; a product of order 320 reads its factors 320 / 128 times.
        put(model, {known["blas"]: lines(100), known["lapack"]: lines(100), known["gpu"]: f"place_gbps={gbps}\n" + gpu_lines(1)})
        done = start("steps", f"dgemm:{N}:1", env={**AUTO, **TABLES, "ACCEL_START": "wait", "ACCEL_LOG": "2", "ACCEL_MODEL": model})
        tap.ok([f["why"] for f in lines_for(done)] == ["faster"] and events(done, "in_place") == expected,
               f"auto: a calibration of {gbps} GB/s in place, {'in place' if expected else 'copied'}", done.stderr)
        # Ranks that must agree: decisions and results.
        ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        told = []
        for rank in "01":
            done = start("random_calls", "-c", 1, "-s", 3, "-r", "d*", env={
                **AUTO, **TABLES, "ACCEL_LOG": "2", "ACCEL_MODEL": model, **ranks, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank})
            told.append([re.sub(r" (pid|tid|ms|est_cpu_ms|est_gpu_ms)=\S+", "", line) for line in done.stderr.splitlines() if " sym=" in line and "allocate" not in line])
        tap.ok(told[0] and told[0] == told[1], f"auto, {gbps} GB/s: two ranks do the same", *[pair for pair in zip(*told) if pair[0] != pair[1]][:5])
    # A figure of a device that cannot do it counts for nothing.
    done = start("steps", f"dgemm:{N}:1", env={**AUTO, "ACCEL_START": "wait", "ACCEL_LOG": "2", "ACCEL_MODEL": model})
    tap.ok([f["ran"] for f in lines_for(done)] == ["gpu0"] and events(done, "h2d") == ["a", "b"], "a device without the host's page tables copies", done.stderr)

# One memory for both: nothing is copied that kernels can read.
done = start("steps", "dgemm:2500:1", env={**GRACE, "ACCEL_LOG": "2", "TESTGPU_DATA": "0", "TESTGPU_ATTRIBUTES": "100=1,18=1"})
tap.ok(events(done, "in_place") == ["a", "b"] and not events(done, "h2d"), "auto: an integrated GPU reads its own memory, however often", done.stderr[-500:])
done = start("steps", "dgemm:8200:1", env={**GRACE, "ACCEL_LOG": "2", "TESTGPU_DATA": "0", "TESTGPU_MEMORY": "4G"})
tap.ok(not events(done, "in_place") and events(done, "h2d"), "auto: by NVLink-C2C, what a large product reads 64 times is copied", done.stderr[-500:])

# Operands that stay on the device are worth their copy, unless they are to be read in place.
for c2c, expected in (("auto", []), ("place", ["a", "b"] * 3)):
    done = start("steps", "dgemm:500:3", env={**GRACE, "ACCEL_LOG": "2", "ACCEL_RESIDENT": "hash", "ACCEL_C2C": c2c})
    tap.ok(events(done, "in_place") == expected and ("event=kept" in done.stderr) == (not expected), f"{c2c} with ACCEL_RESIDENT=hash", done.stderr)

# LAPACK works on copies.
done, report = run("steps", "solve:200:1", env={**GRACE, **LOG, "ACCEL_C2C": "place"})
tap.ok(done.returncode == 0 and [f["ran"] for f in lines_for(done)] == ["gpu0"] and moved(report)[0] > 8 * 200 * 200, "LAPACK's operands are copied", done.stderr)

# ---- Devices and settings that cannot ----

for c2c in POLICIES:
    done, report = run("steps", f"dgemm:{N}:1", env={**TEST_GPU, "ACCEL_C2C": c2c})
    expected = [] if c2c in ("auto", "copy") else [f"ACCEL_C2C={c2c}: gpu0 does not use the host's page tables: operands are copied"]
    tap.ok(done.returncode == 0 and [line.removeprefix("accel: ") for line in said(done)] == expected and moved(report)[0] == 2 * WHOLE,
           f"{c2c} without the attribute: copies{', and one line' if expected else ''}", done.stderr)
hmm = start("steps", f"dgemm:{N}:1", env={**TEST_GPU, "ACCEL_C2C": "place", "TESTGPU_ATTRIBUTES": "88=1"})
tap.ok(len(said(hmm)) == 1, "access to pageable memory by page tables of the device's own (HMM) does not count", hmm.stderr)
done = start("steps", f"dgemm:{N}:1", env={**GRACE, "ACCEL_C2C": "here"})
tap.ok(len(said(done)) == 1 and "ACCEL_C2C=here" in said(done)[0] and "auto,place,copy,migrate" in said(done)[0], "a value that is not understood is named, with those allowed",
       done.stderr)
tap.done()
