#!/usr/bin/python3 -B
"""A second kind of device: the host, in a libaccel without gpu/cuda/. Random calls of BLAS and LAPACK run on it, and are right: so no
operation, executor or decision knows CUDA. See host_device.h."""

import re
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log, said
from lib.programs import BUILD, LONG, ROOT, RUNTIME, TESTS, start
from lib.table import routine_table
from lib.tap import Tap

LIBRARY = TESTS / "hostdevice/libaccel.so"
HOST = {"LD_PRELOAD": ":".join([*RUNTIME, str(LIBRARY)]), "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1", "OPENBLAS_NUM_THREADS": "1"}
# The host has no bfloat16; cuSOLVER has no gelsy.
NOT_THERE = re.compile(r"sbgemm|.gelsy")

tap = Tap()


def run(program, *arguments, env={}):
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        done = start(program, *arguments, env={**HOST, **env, "ACCEL_LOG_FILE": str(log)})
        return done, parse_log(log.read_text()) if log.exists() else []


def routine_of(line):
    return re.sub(r"^cblas_|_$", "", line["sym"])


def check(name, library, program, *arguments, env={}):
    """Every call is right, and the host computes all that it can."""
    done, lines = run(program, *arguments, env=env)
    tap.ok(done.returncode == 0 and re.search(r"(?m)[1-9]\d* calls, 0 wrong", done.stdout) and not said(done), f"{name}: right",
           done.returncode, done.stdout[-300:], *[line for line in done.stderr.splitlines() if line.startswith("wrong")][:8], *said(done))
    table = set(routine_table(library))
    of_library = [line for line in lines if routine_of(line) in table and line["why"] not in ("workspace_query", "empty", "bad_argument")]
    elsewhere = [line for line in of_library if line["ran"] != "gpu0" and line["why"] != "unsupported" and not NOT_THERE.fullmatch(routine_of(line))]
    tap.ok(of_library and not elsewhere, f"{name}: on the host's device", *elsewhere[:8])
    return {routine_of(line) for line in of_library if line["ran"] == "gpu0"}


symbols = subprocess.run(["nm", str(LIBRARY)], stdout=subprocess.PIPE, text=True, check=True).stdout
cuda = [line for line in symbols.splitlines() if re.search(r"\bcuda_|\bcublas|\bcusolver|own_image", line)]
tap.ok(symbols and not cuda, "the library has nothing of CUDA's", *cuda[:8])

ran = check("BLAS", "ROUTINE", "random_calls", "-f", "y", "-n", 70, "-c", 40 if LONG else 4)
ran |= check("BLAS, by rows", "ROUTINE", "random_calls", "-f", "y", "-i", "cblas-row", "-n", 70, "-c", 10 if LONG else 2)
ran |= check("BLAS, short of memory", "ROUTINE", "random_calls", "-f", "y", "-n", 90, "-c", 10 if LONG else 2, env={"ACCEL_MEMORY": "64K"})
lapack = check("LAPACK", "LAPACK", "random_lapack", "-f", "tyesmv", "-n", 40, "-c", 12 if LONG else 3)
tap.ok({f"{t}{r}" for t in "sdcz" for r in ("gemm", "trsm", "trmm")} <= ran and {"dsyrk", "zherk", "dsymm", "zhemm", "dgemv", "dger", "ztrsv"} <= ran,
       "routines of BLAS of each kind", *sorted(ran))
tap.ok({f"{t}{r}" for t in "sdcz" for r in ("getrf", "potrf", "geqrf", "gesvd")} <= lapack and {"dsyevd", "zheevd", "dsytrf", "dgels"} <= lapack,
       "routines of LAPACK of each kind", *sorted(lapack))

code = [line for path in (ROOT / "tests/hostdevice").glob("host_*.[ch]") for line in path.read_text().splitlines()
        if line.strip() and not line.strip().startswith(("/*", "*"))]
tap.ok(0 < len(code) <= 600, "a kind of device takes at most 600 lines", len(code))
tap.done()
