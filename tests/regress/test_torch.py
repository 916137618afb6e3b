#!/usr/bin/python3 -B
"""PyTorch's operations on the CPU, of the Python that TORCH_PYTHON names, which has PyPI's torch: its wheel and those of CUDA are too
large to be fetched for a test. Without libaccel, with it and no GPU, and with the test GPU."""

import os
import subprocess
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, ROOT, TEST_GPU, VENV_PYTHON, start
from lib.regress import record
from lib.tap import Tap

tap = Tap()
PYTHON = os.environ.get("TORCH_PYTHON", VENV_PYTHON)
PROGRAM = ROOT / "tests/regress/torch_operations.py"
STAND_INS = str(BUILD / "testgpu")
ROUTINES = "gemm_ syevd_ heevd_ gesdd_ getrf_ getrs_ potrf_ potrs_ geqrf_ orgqr_ ungqr_ gels_ gelsd_ geev_".split()
# ?gelsy is the CPU's; a question for workspace is the original's.
CPU = {"workspace_query"}


def read(done):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()}


def is_right(values):
    return [name for name, value in values.items() if not value <= (0 if name.endswith("wrong") else 30)]


if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
    tap.skip("PyTorch", "TORCH_PYTHON names no Python that has it (pip install torch: several GB)")
    tap.done()

plain = start(PYTHON, PROGRAM, timeout=600)
native = read(plain)
tap.ok(plain.returncode == 0 and len(native) > 50 and not is_right(native), "without libaccel", *is_right(native), plain.stderr[-500:])

failed = tap.failed
done = start(PYTHON, PROGRAM, env={**NO_GPU, **LOG}, timeout=600)
lines = lines_for(done)
tap.ok(done.stdout == plain.stdout, "no GPU: every byte alike", done.stdout, done.stderr[-500:])
tap.ok(lines and not [f for f in lines if f["why"] == "unsupported"], "no GPU: each call is known", *lines[:3])
record(tap, "PyTorch", "no GPU", failed, lines, len(native), 0.0, None, 0.0)

failed = tap.failed
done = start(PYTHON, PROGRAM, STAND_INS, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}, timeout=600)
values, lines = read(done), lines_for(done)
tap.ok(done.returncode == 0 and values.keys() == native.keys() and not is_right(values), "test GPU: within the bounds", *is_right(values), done.stderr[-500:])
elsewhere = [f for f in lines if f["ran"] != "gpu0" and f["why"] not in CPU]
tap.ok(lines and not elsewhere, "test GPU: each call runs there", *elsewhere[:5])
called = {f["sym"] for f in lines if f["ran"] == "gpu0"}
lacking = [name for name in ROUTINES if not [sym for sym in called if sym[1:] == name]] + [
    t + "gemm_batch" for t in "sdcz" if f"cblas_{t}gemm_batch" not in called]
tap.ok(not lacking and all("n" in f or "m" in f for f in lines), "test GPU: these are in the log, with their sizes", *lacking)
worst = lambda of: max(value for name, value in of.items() if not name.endswith("wrong"))
record(tap, "PyTorch", "test GPU", failed, lines, len(values), worst(values), worst(native), 30.0)
tap.done()
