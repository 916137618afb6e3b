#!/usr/bin/python3 -B
"""The reference LAPACK test programs, unchanged, under libaccel: on the test GPU, without a GPU and with ACCEL=0, with
OpenBLAS's LAPACK in double precision, symmetric and Hermitian linear equations also in complex numbers, and with TEST_LONG=1 in all types and with the reference one, too, as the original. Without arguments, sizes and paths are fewer than in the stock
inputs; with --all, every stock input is run as it is (an hour). Further arguments choose: OpenBLAS d svd."""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from inputs import INPUTS, OTHERS, PROGRAMS, data
from lib.log import summaries
from lib.programs import BUILD, LONG, NO_GPU, SHIM, TEST_GPU, clean_env
from lib.table import routine_table
from lib.tap import Tap
from outputs import complete, reports, value_less, verdicts

ALL = "--all" in sys.argv[1:]
CHOSEN = set(sys.argv[1:]) - {"--all"}
LIBRARIES = {"OpenBLAS": ("openblas-pthread",), **({"reference": ("lapack", "blas")} if LONG or len(sys.argv) > 1 else {})}
# Millions of calls: a table at the end in place of their lines.
MODES = {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"},
         "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0", "ACCEL_SUMMARY": "json", "ACCEL_LOG_FILE": "log"}}
TESTING = BUILD / "lapack/TESTING"
WHOLE = LONG or len(sys.argv) > 1

# cuSOLVER has no QR factorisation with column pivoting.
CPU_ONLY = r"gelsy$"
# No test program calls these with bad arguments.
NEVER_WRONG = r"(lauum|laswp|lacpy|(sy|he)g(v[dx]?|st))$"
tap = Tap()
rows = set(routine_table("LAPACK"))


def run(library, letter, name, env):
    """Exit status and output of a test program, and libaccel's table of what ran where."""
    program = TESTING / PROGRAMS.get(name, "EIG/xeigtst")
    path = ":".join(f"/usr/lib/x86_64-linux-gnu/{folder}" for folder in LIBRARIES[library])
    with tempfile.TemporaryDirectory() as folder:
        full = {**clean_env(folder), **env, "LD_LIBRARY_PATH": path, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([f"{program}{letter}"], input=data(TESTING, name, letter, ALL, not WHOLE), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=folder, env=full, text=True, errors="replace", timeout=3600)
        log = Path(folder, "log")
        table = log.read_text() if log.exists() else ""
    return done.returncode, re.sub(r"(?m)^.*Total time used.*\n", "", done.stdout), table


def unequal(output):
    """Of the tests of ?geev, those that want the same bits with and without vectors: with left ones it is the CPU's."""
    part = output.partition("EV -- ")[2].partition("EV: ")[0]
    return [value_less(line) for line in part.splitlines() if re.search(r"test\( [567]\)=", line)]


def uncounted(output):
    """Of the tests of balancing, which count nothing: all but the example with the largest error."""
    return [line for line in output.splitlines() if "largest" not in line]


def worst(output):
    """The largest error, in units of the precision."""
    found = re.search(r"largest test error += +(\S+)", output)
    return float(found[1].replace("D", "E")) if found else float("inf")


def parse(table):
    """(routine, ran, why) of the table at the end of a run."""
    return {(row["routine"], row["ran"], row["why"]) for s in summaries(table) for row in s["rows"]}


def check(job):
    library, letter, name = job
    native = run(library, letter, name, {})
    # The test GPU computes with OpenBLAS: what fails natively with that one may fail there.
    kernels = native if library == "OpenBLAS" else run("OpenBLAS", letter, name, {})
    return job, native, kernels, {m: run(library, letter, name, e) for m, e in MODES.items()}


seen = {library: set() for library in LIBRARIES}
jobs = [(library, letter, name) for library in LIBRARIES for letter in "sdcz" for name in INPUTS + OTHERS * ALL
        if CHOSEN <= {library, letter, name} and (WHOLE or letter == "d" or (letter, name) == ("c", "?test"))]
with ThreadPoolExecutor(2) as pool:
    for (library, letter, name), (code, native, _), (_, kernels, _), results in pool.map(check, jobs):
        label = f"{library}, {letter}, {name.replace('?', letter)}"
        passed, known = verdicts(native), verdicts(kernels)
        tap.ok(code == 0 and complete(native), f"{label}: runs without libaccel", native[-600:])
        for what, word in passed:
            if word == "failed":
                tap.note(f"{what}: {passed[what, word]} of {passed[what, 'run']} tests fail without libaccel")
        for mode in ("no GPU", "ACCEL=0"):
            tap.ok(results[mode][:2] == (code, native), f"{label}, {mode}: the same output", results[mode][1][-600:])
        code, output, table = results["test GPU"]
        tap.ok(code == 0 and complete(output), f"{label}, test GPU: runs", code, output[-600:])
        new = reports(output) - (reports(native) | reports(kernels))
        got = verdicts(output)
        if name == "?ed":
            new -= Counter(unequal(output))
            for counts, text in ((passed, native), (known, kernels), (got, output)):
                counts.subtract({(f"{letter.upper()}EV", word): len(unequal(text)) for word in ("failed", "run")})
        worse = [f"{' '.join(key)}: {got[key]}, not {passed[key]}" for key in passed | got
                 if got[key] > max(passed[key], known[key]) or key[1] == "run" and got[key] != passed[key]]
        if not passed and (uncounted(output) != uncounted(native) or worst(output) > max(1, 2 * worst(native))):
            worse = [output]
        tap.ok(not worse and not new, f"{label}, test GPU: no further failure", *worse, *new)
        decisions = parse(table)
        other = [d for d in decisions if d[1:] != ("gpu0", "forced")
                 and d[2] not in ("empty", "bad_argument", "workspace_query", "unsupported")]
        tap.ok(not other, f"{label}, test GPU: nothing failed on the GPU", *other)
        seen[library] |= {(symbol, why) for symbol, _, why in decisions}
for library in LIBRARIES if not CHOSEN else []:
    for why, exceptions in (("forced", CPU_ONLY), ("bad_argument", NEVER_WRONG)):
        missing = {r for r in rows if (WHOLE or r[0] == "d") and (r, why) not in seen[library] and not re.search(exceptions, r)}
        tap.ok(not missing, f"{library}: every routine in the log, why={why}", *sorted(missing))
tap.done()
