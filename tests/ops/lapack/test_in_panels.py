#!/usr/bin/python3 -B
"""LAPACK on matrices that are larger than the device's memory: factorisations, solutions, inverses and products by factors run there in panels. Random calls, with
every flag, all four types, both integer widths, every kind of matrix from well-conditioned to singular, with NaN and Inf, m < n, m > n, ld
above the rows, by columns and by rows: the same INFO as without libaccel, every residual within the bound of LAPACK's own tests, nothing else
touched. The log has the bytes that went up and down. What cannot be had in panels, and what the host has no memory for, is the CPU's. With TEST_LONG=1 each in all types, and more calls."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import lines_for, parse_log, said
from lib.programs import LONG, LOG, PLAIN, TEST_GPU, start
from lib.split import several
from lib.tap import Tap

tap = Tap()
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
# What OpenBLAS 0.3.21 itself gets wrong: cases.h.
RANDOM = ["-f", "tyesmv"]
FACTORED = "potrf posv potrs getrf gesv getrs trtrs"
INVERTED = "potri trtri getri lauum"
REFLECTED = "geqrf orgqr ungqr ormqr unmqr gels gels-wide"  # their workspaces are larger
SIZES = {"s": 4, "d": 8, "c": 8, "z": 16}


def run(program, arguments, env):
    """The finished process, its cases with their INFO, and its decisions."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start(program, *RANDOM, "-o", report, *arguments, env={**QUICK, **env})
        cases = dict(line.split(" | ") for line in report.read_text().splitlines() if " | " in line)
    return done, {case: outcome.split()[0] for case, outcome in cases.items()}, parse_log(done.stderr)


def number(fields, name):
    return int(fields.get(name, 0))


def exceeds(fields, memory):
    """Whether the matrix alone is more than the memory, in KB: of a product by Q, that of its reflectors."""
    rows, cols = number(fields, "m") or number(fields, "n"), number(fields, "n")
    if "mqr" in fields["sym"]:
        rows, cols = rows if fields["args"][0] == "L" else cols, number(fields, "k")
    return rows * cols * SIZES[fields["sym"][0]] > 1024 * memory


def kind(fields):
    """The routine, without its type; wide matrices apart where they are factored in another way."""
    name = fields["sym"].rstrip("_")[1:]
    return name + "-wide" * (name == "gels" and number(fields, "m") < number(fields, "n"))


def any_of(kinds):
    return f"@({'|'.join(name for name in kinds.split() if '-' not in name)})"


def same_as_native(name, program, arguments, memory, extra={}, ran=("gpu0",)):
    native, native_cases, _ = run(program, arguments, PLAIN)
    done, cases, lines = run(program, arguments, {**TEST_GPU, **LOG, "ACCEL_MEMORY": f"{memory}K", **extra})
    wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    tap.ok(done.returncode == 0 and native.returncode == 0, f"{name}: right", done.returncode, done.stdout[-200:], *wrong[:5])
    other = [f"{case} | {native_cases.get(case)} | {info}" for case, info in cases.items() if native_cases.get(case) != info]
    tap.ok(cases and len(cases) == len(native_cases) and not other, f"{name}: INFO as without libaccel", *other[:5])
    tap.ok(not said(done), f"{name}: nothing to say", *said(done))
    return [f for f in lines if f["ran"] in ran and exceeds(f, memory)], lines


LARGE = "@(uniform|well)"
more = 6 if LONG else 1
# In the short form each routine in one type, or in a real and a complex one where their names or
# flags differ; all four types come up.
for name, program, memory, sizes, wanted, types in (
    ("factors", "random_lapack", 38, (105, 140), FACTORED, "dc"),
    ("factors, 64-bit integers", "random_lapack64", 38, (105, 140), FACTORED, "sz"),
    ("inverses", "random_lapack", 38, (105, 140), INVERTED, "s"),
    ("inverses, 64-bit integers", "random_lapack64", 38, (105, 140), INVERTED, "d"),
    ("reflectors", "random_lapack", 108, (170, 200), REFLECTED, "sz"),
):
    on_gpu, again = set(), 0
    for dtype in SIZES if LONG else types:
        kilobytes = memory * SIZES[dtype] // 4
        arguments = ["-n", sizes[1], "-r", dtype + any_of(wanted)]
        large, _ = same_as_native(f"{name}, {dtype}", program, [*arguments, "-m", sizes[0], "-c", more, "-k", LARGE], kilobytes)
        on_gpu |= {kind(f) for f in large}
        again += sum(float(f["up_mb"]) * 1e6 > 1300 * kilobytes and kind(f) not in ("trtrs", "trtri", "lauum") for f in large)
        large, _ = same_as_native(f"{name}, {dtype}, every kind", program, [*arguments, "-s", 100, "-c", 2 * more], kilobytes)
    tap.ok(on_gpu >= set(wanted.split()), f"{name}: each routine ran on the GPU with a matrix above its memory", *sorted(set(wanted.split()) - on_gpu))
    tap.ok(again, f"{name}: most of a matrix went up several times")

# With less memory for panels, another schedule is the fastest, whose workspaces are larger.
_, lines = same_as_native("workspaces that grow", "random_lapack", ["-m", 125, "-n", 125, "-c", 2, "-r", "z@(potrf)", "-k", LARGE], 232)
tap.ok(lines and {f["why"] for f in lines} == {"forced"}, "workspaces that grow: on the GPU", *lines[:4])

# A matrix that fits, but not its inverse beside it.
_, lines = same_as_native("an inverse that does not fit beside the matrix", "random_lapack", ["-m", 60, "-n", 64, "-c", 2 * more, "-r", "d@(getri)", "-k", LARGE], 45)
tap.ok([f for f in lines if f["sym"] == "dgetri_" and f["ran"] == "gpu0" and float(f["up_mb"]) * 1e6 > 1.5 * 8 * number(f, "n") ** 2],
       "an inverse that does not fit beside the matrix: in panels", *lines[:4])

# Copies and kernels in random order between the streams.
large, _ = same_as_native("delays", "random_lapack", ["-m", 95, "-n", 110, "-c", 1, "-r", "d@(potrf|getrf|gesv|getri|potri|lauum)", "-k", LARGE], 60, {"TESTGPU_DELAY_US": "100"})
tap.ok(large, "delays: on the GPU")
# 8 threads share the memory.
done, _, lines = run("random_lapack", ["-m", 60, "-n", 80, "-c", 1, "-r", "[dz]@(potrf|gesv)", "-k", LARGE, 8], {**TEST_GPU, **LOG, "ACCEL_MEMORY": "80K"})
tap.ok(done.returncode == 0, "8 threads: right", done.stdout[-200:], *[line for line in done.stderr.splitlines() if line.startswith("wrong: ")][:5])
tap.ok([f for f in lines if f["ran"] == "gpu0"] and {f["why"] for f in lines} <= {"forced", "no_memory"}, "8 threads: on the GPU, or no memory for it")

# Several devices share a factorisation, and what begins with one: two, and three of unequal speed.
for name, devices, attributes, types in (("two devices", 2, "16=1,13=1", "z"), ("three unequal devices", 3, "16=1,13=3/2/4", "d")):
    places, kinds = Counter(), set()
    for dtype in SIZES if LONG else types:
        kilobytes = 72 * SIZES[dtype] // 4
        for arguments in (["-m", 150, "-n", 200, "-c", more if LONG or devices == 3 else 3, "-k", LARGE], ["-n", 200, "-s", 100, "-c", 2 * more]):
            large, _ = same_as_native(f"{name}, {dtype}{' every kind' if '-s' in arguments else ''}", "random_lapack", ["-r", dtype + "@(potrf|posv|getrf|gesv)", *arguments], kilobytes,
                                      {**several(devices), "TESTGPU_ATTRIBUTES": attributes, "ACCEL_MEMORY": f"{kilobytes}K"}, ("gpu0+gpu1", "gpu0+gpu1+gpu2", "gpu0+gpu2", "gpu1+gpu2"))
            places += Counter(f["ran"] for f in large)
            kinds |= {(f["sym"].rstrip("_")[1:], f.get("args", "")) for f in large}
    tap.ok({name for name, _ in kinds} == {"potrf", "posv", "getrf", "gesv"} and ({"U", "L"} < {args for _, args in kinds} or devices == 3 and not LONG)
           and (devices == 2 or places["gpu0+gpu1+gpu2"]), f"{name}: each routine was shared, of both triangles", places, kinds)

# A range of eigenvalues, singular values and symmetric pivoting cannot be had in panels.
_, lines = same_as_native("what needs the whole matrix", "random_lapack", ["-n", 60, "-c", 2, "-r", "d@(syevr|gesdd|sytrf)", "-k", "well"], 8)
tap.ok({f["sym"] for f in lines if f["why"] == "no_memory"} == {"dsyevr_", "dgesdd_", "dsytrf_"} and not [f for f in lines if f["ran"] == "gpu0" and exceeds(f, 8)],
       "what needs the whole matrix: no_memory")

# The log has the bytes that the device has seen.
with tempfile.TemporaryDirectory() as folder:
    report = Path(folder, "report")
    done = start("write_back", "dpotrf", env={**TEST_GPU, **LOG, **QUICK, "ACCEL_MEMORY": "10M", "TESTGPU_REPORT": str(report)})
    (line,) = lines_for(done, sym="dpotrf_", ran="gpu0") or [{}]
    copied = dict(re.findall(r"(h2d|d2h)_bytes=(\d+)", report.read_text()))
    faults = [line for line in report.read_text().splitlines() if line.startswith("testgpu fault ")]
n = number(line, "n")
tap.ok(done.returncode == 0 and n * n * 8 > 16e6, "a matrix of 16 MB in 10 MB: right", done.stdout, done.stderr[-300:])
for direction, key in ("h2d", "up_mb"), ("d2h", "down_mb"):
    tap.ok(abs(float(line.get(key, 0)) * 1e6 / int(copied[direction]) - 1) < 1e-3, f"{key} is what the device has seen", line.get(key), copied[direction])
tap.ok(float(line.get("down_mb", 0)) * 1e6 < 0.65 * n * n * 8, "of a triangle's panels, what is above the diagonal does not come down", line.get("down_mb"))
tap.ok(not faults, "no misuse of the device", *faults[:3])

# With memory for all of it, little more than the triangle goes up, in panels, and comes down; with
# memory for little else, too, as one piece.
for memory, shares in ("400M", {"up_mb": (0.5, 0.7), "down_mb": (0.5, 0.52)}), ("24M", {"up_mb": (0.5, 0.52), "down_mb": (0.5, 0.52)}):
    done = start("write_back", "dpotrf", env={**TEST_GPU, **LOG, **QUICK, "ACCEL_MEMORY": memory})
    (line,) = lines_for(done, sym="dpotrf_", ran="gpu0") or [{}]
    for key, (least, most) in shares.items():
        share = float(line.get(key, 0)) * 1e6 / (8 * number(line, "n") ** 2 or 1)
        tap.ok(done.returncode == 0 and 0.999 * least < share < 1.001 * most, f"{memory}: {key} is {share:.3f} of the matrix", done.stderr[-300:])
tap.done()
