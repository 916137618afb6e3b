#!/usr/bin/python3 -B
"""NaN and infinities beside zeros, and diagonals whose inverse is no number (docs/limits.md): one element may be another by the reference BLAS than by
OpenBLAS and on the test GPU; all that it has no part in is exact, nothing else is written, and ACCEL_VERIFY judges that."""

import re

from lib.log import parse_log, said
from lib.programs import LONG, REFERENCE, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
OPENBLAS = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-pthread"}
GPU = {**TEST_GPU, **REFERENCE, "TESTGPU_DELAY_US": "0", "ACCEL_LOG": "1"}
VERIFIED = {**GPU, "ACCEL_VERIFY": "all"}

SKIPPED = {"trsm x=0", "trsm A=0", "trmm B=0", "trmm A=0", "trsv x=0", "trmv x=0", "ger y=0", "syr2 x=y=0", "syrk A=0", "syr2k A=B=0"}
MULTIPLIED = {"gemm B=0", "symm B=0", "gemv x=0", "symv x=0"}
NOT_READ = {"gemm beta=0", "gemm alpha=0", "gemv beta=0", "trsm alpha=0", "trsm, the other triangle"}
DIAGONALS = {"trsm 1e-300 / 1e-310": ("number", "inf"), "trsm 0 / 1e-310": ("number", "nan"), "trsm 1 / 0": ("inf", "inf"), "trsm 0 / 0": ("number", "nan")}


def elements(done):
    """What each call's element is, by the call and by what is no number there."""
    return {(name, bad): kind for name, bad, kind in re.findall(r"(?m)^(.*), (nan|inf|number): (nan|inf|number), the rest", done.stdout)}


def expected(reference):
    """The same, as the reference BLAS has it, or all that a library may have."""
    of = {}
    for bad in ("nan", "inf"):
        of.update({(name, bad): ("number", "nan") for name in SKIPPED})
        of.update({(name, bad): ("nan",) for name in MULTIPLIED})
        of.update({(name, bad): ("number",) for name in NOT_READ})
    of.update({(name, "number"): kinds for name, kinds in DIAGONALS.items()})
    return {key: kinds[:1] for key, kinds in of.items()} if reference else of


for name, env, reference in (("reference BLAS", REFERENCE, True), ("OpenBLAS", OPENBLAS, False), ("test GPU", GPU, False), ("test GPU, verified", VERIFIED, False)):
    done = start("nonfinite", env=env)
    lines = done.stdout.splitlines()
    tap.ok(done.returncode == 0 and len(lines) == 44 and "WRONG" not in done.stdout and "MORE" not in done.stdout,
           f"{name}: all the rest is exact, and nothing else written", done.stdout, done.stderr[-500:])
    tap.ok([line for line in lines if line.startswith("syrk beta=0")] == [f"syrk beta=0, {bad}: number, the other triangle {bad}" for bad in ("nan", "inf")],
           f"{name}: with beta = 0 the old result is not read, and the other triangle stays", done.stdout)
    seen, known = elements(done), expected(reference)
    others = [f"{key}: {seen.get(key)}, not {known.get(key)}" for key in sorted({*seen, *known}) if seen.get(key) not in known.get(key, ())]
    tap.ok(not others, f"{name}: zeros are skipped" if reference else f"{name}: zeros are skipped at most where libraries differ", *others)
    if "GPU" in name:
        ran = [line for line in parse_log(done.stderr) if line["why"] != "empty"]
        tap.ok(len(ran) == 40 and {line["ran"] for line in ran} == {"gpu0"}, f"{name}: they ran there", *ran[:3])
lines = [line for line in parse_log(done.stderr) if "verify" in line]
judged = [line for line in lines if line["verify"] != "unknown"]
tap.ok(len(lines) == 40 and len(judged) >= 8 and all(float(line["verify"]) <= 1 for line in judged) and not said(done),
       "verification calls none of them wrong", *said(done), *judged)

# A wrong element where no NaN can be.
missed, found = [], 0
for nth in range(1, 37, 1 if LONG else 5):
    plain = start("nonfinite", env={**GPU, "TESTGPU_WRONG": str(nth)})
    done = start("nonfinite", env={**VERIFIED, "TESTGPU_WRONG": str(nth), "ACCEL_VERIFY_ACTION": "cpu"})
    wrong = [line for line in parse_log(done.stderr) if line["why"] == "verify_failed" and "verify" in line]
    found += "WRONG" in plain.stdout
    if "WRONG" in done.stdout or ("WRONG" in plain.stdout and not wrong):
        missed.append((nth, done.stdout, done.stderr[-500:]))
tap.ok(found > (30 if LONG else 5) and not missed, f"of {found} planted elements among the rest, all are found and computed anew", *missed[:3])
tap.done()
