#!/usr/bin/python3 -B
"""ACCEL_VERIFY: right results pass, whatever the routine; a planted wrong element is found every time, and answered as
ACCEL_VERIFY_ACTION says. Every result is judged apart from libaccel by random_calls and random_lapack."""

import collections
import re
import signal

from lib.log import lines_for, parse_log, said
from lib.programs import LONG, TESTS, TEST_GPU, start
from lib.table import routine_table
from lib.tap import Tap

tap = Tap()
GPU = {**TEST_GPU, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
ALL = {**GPU, "ACCEL_VERIFY": "all", "ACCEL_LOG": "1"}
PROVIDER = ["-f", "y"]  # what OpenBLAS 0.3.21 itself gets wrong: calls.c
LACKING = ["-l", TESTS / "liblacking.so", *PROVIDER]
BLAS = [*LACKING, "-n", 90]
LAPACK = ["-f", "tyesmv", "-n", 40]

# What no test of this cost can judge.
MAY_BE_UNKNOWN = "laswp|gecon|pocon"
# OpenBLAS's chetf2 calls it, to which random_lapack leaves the matrices of extreme norms alone.
LEFT_TO_OTHERS = {"LAPACK": {f"{name}_" for name, op in routine_table("ROUTINE").items() if op == "her"}}


def verified(done):
    return [f for f in parse_log(done.stderr) if "verify" in f]


# ---- Right results ----

for name, program, arguments, count, short in (("BLAS", "random_calls", BLAS, 12, 6), ("BLAS, 8 threads", "random_calls", [*BLAS, 8], 3, 1),
                                               ("BLAS in tiles", "random_calls", BLAS, 4, 4), ("device memory", "cuda_program", [*LACKING, "-n", 40], 2, 1),
                                               ("LAPACK", "random_lapack", LAPACK, 12, 6), ("LAPACK, 8 threads", "random_lapack", [*LAPACK, 8], 3, 1)):
    extra = {"ACCEL_MEMORY": "100K"} if "tiles" in name else {}
    done = start(program, "-c", count if LONG else short, *arguments, env={**ALL, **extra})
    lines = verified(done)
    judged = [f for f in lines if f["verify"] != "unknown"]
    tap.ok(done.returncode == 0 and len(judged) > 100, f"{name}: {len(judged)} results judged", done.stdout[-300:], done.stderr[-300:])
    wrong = [f for f in judged if float(f["verify"]) > 1]
    tap.ok(not wrong and not said(done), f"{name}: none is called wrong", *wrong[:5], *said(done)[:3])
    worst = max((float(f["verify"]) for f in judged), default=0)
    tap.note(f"{name}: the worst is {worst:.2g} of the bound")
    ran = [f for f in parse_log(done.stderr) if f["ran"].startswith("gpu")]
    tap.ok(all("verify" in f for f in ran), f"{name}: all that ran on the GPU was verified",
           *[f for f in ran if "verify" not in f][:3])
    by_routine = collections.defaultdict(lambda: [0, 0])
    for f in lines:
        by_routine[f["sym"]][f["verify"] == "unknown"] += 1
    left = LEFT_TO_OTHERS.get(name.split(",")[0], set())
    never = [sym for sym, (known, unknown) in by_routine.items()
             if unknown > 8 and not known and not re.search(MAY_BE_UNKNOWN, sym) and sym not in left]
    tap.ok(not never, f"{name}: of every routine some are judged", *never)

# ---- Factors that grow ----

done = start("growth", 5, 20, 33, 50, 100, env=ALL)
lines = verified(done)
judged = [f for f in lines if f["verify"] != "unknown"]
tap.ok(done.returncode == 0 and len(lines) == 20 and len(judged) >= 18 and not said(done) and all(float(f["verify"]) <= 1 for f in judged),
       "Wilkinson's matrices, whose solutions are as inexact on the CPU: none is called wrong", *lines, *said(done)[:3])
missed = []
for nth in range(1, 9):
    done = start("growth", 8, env={**ALL, "TESTGPU_WRONG": str(nth)})
    if not any(f["verify"] != "unknown" and float(f["verify"]) > 1 for f in verified(done)):
        missed.append((nth, done.stderr[-600:]))
tap.ok(not missed, "but those with a wrong element are", *missed)

done = start("graded", 200, env=ALL)
lines = verified(done)
judged = [f for f in lines if f["verify"] != "unknown"]
tap.ok(done.returncode == 0 and len(lines) == 400 and len(judged) > 300 and not said(done) and all(float(f["verify"]) <= 1 for f in judged),
       "eigenvectors of graded matrices, which balancing moves: none is called wrong", *[f for f in judged if float(f["verify"]) > 1][:3], *said(done)[:3])

# ---- A planted element ----


def wrong_routines(done):
    """Routines whose results the program has found to be wrong."""
    return set(re.findall(r"(?m)^wrong: (?:\S+ )?([sdcz]\w+)[ :]", done.stderr))


def not_judged(done):
    """Routines of which a result was not judged, and those of whose results not everything is (docs/verify.md)."""
    unknown = {re.sub(r"^cblas_|_\w*$", "", f["sym"]) for f in verified(done) if f["verify"] == "unknown"}
    return unknown | {r for r in wrong_routines(done) if re.search(f"gels|{MAY_BE_UNKNOWN}", r)}


def wrong_results(done):
    found = re.search(r"(\d+)(?: calls)? wrong", done.stdout)
    return int(found[1]) if found else -1


for name, program, arguments, kernels in (("BLAS", "random_calls", [*BLAS, "-c", 1], range(1, 80, 2 if LONG else 5)),
                                          ("LAPACK", "random_lapack", [*LAPACK, "-c", 1], range(1, 1600, 31 if LONG else 83))):
    bad, caught, unknown = [], 0, 0
    for nth in kernels:
        plain = start(program, *arguments, env={**GPU, "TESTGPU_WRONG": str(nth)})
        if wrong_results(plain) == 0:
            continue  # where the routine does not look, or within what is allowed
        done = start(program, *arguments, env={**ALL, "ACCEL_VERIFY_ACTION": "cpu", "TESTGPU_WRONG": str(nth)})
        failed = lines_for(done, why="verify_failed")
        if wrong_routines(done) and wrong_routines(done) <= not_judged(done):
            unknown += 1
            continue
        caught += 1
        if wrong_results(done) != 0 or not failed or "verification: the GPU's result is wrong" not in done.stderr:
            bad.append(f"{nth}: {plain.stdout[-80:]} {plain.stderr[-300:]} then {done.stdout[-80:]} {done.stderr[-200:]}")
    tap.note(f"{name}: {unknown} were in results that cannot be judged")
    tap.ok(caught > (8 if LONG else 3) and caught > 3 * unknown and not bad, f"{name}: {caught} wrong results of {len(kernels)} planted elements, all found and computed anew",
           *bad[:4])

# ---- The actions ----

PRODUCTS = ["-c", 4, "-n", 60, "-r", "dgemm"]
for action, code in (("warn", 1), ("cpu", 0), ("abort", -signal.SIGABRT)):
    done = start("random_calls", *PRODUCTS, env={**ALL, "TESTGPU_WRONG": "2", "ACCEL_VERIFY_ACTION": action})
    tap.ok(done.returncode == code, f"{action}: exit status {code}", done.returncode, done.stdout, done.stderr[-500:])
    lines = said(done)
    tap.ok(len(lines) == 1 and re.search(r"dgemm\S*: verification: the GPU's result is wrong, [\d.]+ times what rounding may do", lines[0]),
           f"{action}: one line", *lines)
    behind = lines_for(done, why="verify_failed")
    if action == "cpu":
        tap.ok(behind and all(f["ran"] == "cpu" for f in behind) and parse_log(done.stderr)[-1]["why"] == "verify_failed",
               "cpu: that call and all further ones are the CPU's", *behind[:3])
    else:
        tap.ok(not behind, f"{action}: nothing is sent to the CPU")

done = start("random_calls", *PRODUCTS, env={**ALL, "TESTGPU_WRONG": "2", "ACCEL_VERIFY_ACTION": "cpu", "ACCEL_REQUIRE": "gpu"})
tap.ok(done.returncode == 1 and "why=verify_failed" in done.stderr, "with ACCEL_REQUIRE=gpu the program is ended", done.stderr[-400:])

# ---- Samples, and what is off ----

done = start("random_calls", "-c", 30, "-n", 60, "-r", "dgemm", env={**ALL, "ACCEL_VERIFY": "sample:5"})
ran = lines_for(done, ran="gpu0")
tap.ok(len(verified(done)) == len(ran) // 5 > 1, f"sample:5: {len(verified(done))} of {len(ran)}")
for value in ("off", ""):
    done = start("random_calls", *PRODUCTS, env={**ALL, "ACCEL_VERIFY": value})
    tap.ok(not verified(done) and lines_for(done, ran="gpu0"), f"ACCEL_VERIFY={value}: nothing is verified")
tap.done()
