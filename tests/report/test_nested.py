#!/usr/bin/python3 -B
"""Calls inside calls: their depth in the log, wherever they come from and however the outer call is left; what each level of the log has of
them; and calls that are too short for it."""

from lib.log import parse_log
from lib.programs import NO_GPU, REFERENCE, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
# The reference LAPACK, which calls BLAS through the linker.
ON_CPU = {**NO_GPU, **REFERENCE}


def depths(lines, order):
    """The depths of the products of this order, in the order of the log."""
    return [line.get("depth", "0") for line in lines if line["sym"] == "dgemm_" and line["m"] == str(order)]


IN_BETWEEN = {"nothing": [], "deeper": [], "thread": ["0"], "fork": ["1"], "handler": ["1"], "alternate": ["1"], "below": ["1"], "leave": [],
              "leave-alternate": [], "exit": []}
for what, between in IN_BETWEEN.items():
    done = start("nested", what, env={**ON_CPU, "ACCEL_LOG": "2"})
    lines = parse_log(done.stderr)
    tap.ok(done.returncode == 0 and depths(lines, 9) == between, f"{what}: the depth of a product in between", done.returncode, done.stderr)
    tap.ok(depths(lines, 7) == ["0", "0"], f"{what}: products after it are the program's own", done.stderr)
    outer = [line for line in lines if line["sym"] == "dgetrf_" and line["m"] == "200"]
    if what.startswith("leave"):
        tap.ok(not outer, f"{what}: the call has not ended", *outer)
        continue
    inner = [line.get("depth") for line in lines if line["sym"] in ("dtrsm_", "dlaswp_")]
    tap.ok(len(outer) == 1 and "depth" not in outer[0], f"{what}: the call itself is the program's", done.stderr)
    tap.ok(set(inner) == ({"1", "2"} if what == "deeper" else {"1"}), f"{what}: those of LAPACK are inside", *inner)
    if what == "deeper":
        second = [line["depth"] for line in lines if line["sym"] == "dgetrf_" and line["m"] == "100"]
        tap.ok(second == ["1"] and inner == sorted(inner, reverse=True), "and those of the second one in that", done.stderr)

# Calls that are deeper than eight others count as inside eight.
done = start("nested", "deepest", env={**ON_CPU, "ACCEL_LOG": "2"})
lines = parse_log(done.stderr)
seen = [line.get("depth") for line in lines if line["sym"] == "dgetrf_" and line["m"] == "100"]
tap.ok(done.returncode == 0 and seen == ["8", "8", "8", "7", "6", "5", "4", "3", "2", "1"],
       "deepest: the depth of each factorisation", done.returncode, *seen)
tap.ok([line.get("depth") for line in lines if line["sym"] == "dgetrf_" and line["m"] == "200"] == [None]
       and depths(lines, 7) == ["0", "0"], "and the others are the program's own", done.stderr[-800:])

# ---- What a log has of them ----

done = start("nested", "nothing", env={**ON_CPU, "ACCEL_LOG": "1"})
lines = parse_log(done.stderr)
tap.ok([line["sym"] for line in lines] == ["dgetrf_", "dgemm_", "dgemm_"], "ACCEL_LOG=1 has the program's own calls alone", done.stderr)
ON_GPU = {**TEST_GPU, **REFERENCE, "ACCEL_CPU": "dgetrf"}
inner = [line for line in parse_log(start("nested", "deeper", env={**ON_GPU, "ACCEL_LOG": "2"}).stderr) if "depth" in line and line.get("ran") == "gpu0"]
done = start("nested", "deeper", env={**ON_GPU, "ACCEL_LOG": "1"})
lines = parse_log(done.stderr)
tap.ok([line["sym"] for line in lines] == ["dgetrf_", "dgemm_", "dgemm_"] and {"dgemm_", "dtrsm_"} <= {line["sym"] for line in inner} and
       [line.get("inner_gpu") for line in lines] == [str(len(inner)), None, None], "those inside one that the GPU got are a number of its line", len(inner), done.stderr)

# ---- A session of R with one svd and one eigen is told in a few lines ----

SESSION = "set.seed(1); a <- matrix(rnorm(300 * 300), 300); s <- svd(a); e <- eigen(crossprod(a)); stopifnot(s$d[1] > 0, e$values[1] > 0)"
for name, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU, "test GPU, by its cost": {**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait"},
                  "test GPU, calls inside others on it": {**TEST_GPU, "ACCEL_CPU": "dgesdd,dsyevr"},
                  "test GPU, ACCEL_POLICY=cpu": {**TEST_GPU, "ACCEL_POLICY": "cpu"}}.items():
    done = start("/usr/bin/Rscript", "-e", SESSION, env={**env, "ACCEL_LOG": "1", "TESTGPU_DELAY_US": "0"})
    lines = done.stderr.splitlines()
    told = {line["sym"] for line in parse_log(done.stderr)}
    tap.ok(done.returncode == 0 and len(lines) <= 20 and {"dgesdd_", "dsyevr_"} <= told, f"R, {name}: at most 20 lines", len(lines), *lines[:30])
done = start("/usr/bin/Rscript", "-e", SESSION, env={**NO_GPU, "ACCEL_LOG": "2"})
tap.ok(len(parse_log(done.stderr)) > 1000, "R, no GPU: ACCEL_LOG=2 has what was called inside", len(done.stderr.splitlines()))

# ---- Short calls ----

done = start("nested", "nothing", env={**ON_CPU, "ACCEL_LOG": "1", "ACCEL_LOG_MIN_MS": "60000"})
tap.ok(not parse_log(done.stderr), "ACCEL_LOG_MIN_MS leaves out calls that took less", done.stderr)
done = start("nested", "nothing", env={**ON_CPU, "ACCEL_LOG": "1", "ACCEL_LOG_MIN_MS": "60000", "ACCEL_SUMMARY": "1"})
tap.ok("dgemm " in done.stderr and not parse_log(done.stderr), "but not of the summary", done.stderr)
done = start("nested", "nothing", env={**ON_CPU, "ACCEL_LOG": "2", "ACCEL_LOG_MIN_MS": "0.000001"})
tap.ok(len(parse_log(done.stderr)) > 3, "and has those that took longer", done.stderr)
done = start("bad_arguments", env={**ON_CPU, "ACCEL_LOG": "1", "ACCEL_LOG_MIN_MS": "60000"})
lines = parse_log(done.stderr)
tap.ok(lines and all("ms" not in line for line in lines), "calls that were not timed may have been long", done.stderr)
tap.done()
