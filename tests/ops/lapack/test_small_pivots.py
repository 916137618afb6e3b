#!/usr/bin/python3 -B
"""LU factorisations with pivots whose inverses are no numbers: LAPACK divides by these. The factors are finite, with the matrix as a whole on the device, in panels there,
above its memory, and on two devices, because such calls are the CPU's; other calls run there. See small_pivots.c."""

import tempfile

from lib.calibrated import calibrate_in_core
from lib.log import lines_for, said
from lib.programs import LOG, REFERENCE, TEST_GPU, start
from lib.split import several
from lib.tap import Tap

tap = Tap()
# The reference library: OpenBLAS multiplies by inverses.
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
folder = tempfile.TemporaryDirectory()
model = f"{folder.name}/model"
calibrate_in_core(model, folder.name, QUICK)
WHOLE = {**TEST_GPU, **LOG, **QUICK}
WAYS = {
    "as a whole": ((8, 33), WHOLE, "gpu0"),
    "in panels": ((120,), {**WHOLE, "ACCEL_LOG": "2", "ACCEL_MODEL": model}, "gpu0"),
    "above the memory": ((120,), {**WHOLE, "ACCEL_MEMORY": "100K"}, "gpu0"),
    "on two devices": ((120,), {**several(2), **QUICK, "ACCEL_MEMORY": "100K"}, "gpu0+gpu1"),
}
plain = start("small_pivots", 8, 33, 120, env=REFERENCE)
tap.ok(plain.returncode == 0, "right without libaccel", plain.stdout[-600:])
for way, (orders, env, where) in WAYS.items():
    done = start("small_pivots", *orders, env={**env, **REFERENCE})
    complaints = [line for line in said(done) if "has nothing for [cpu" not in line]
    tap.ok(done.returncode == 0 and not complaints, f"{way}: right", done.stdout[-600:], *complaints)
    for name in ("dgesv",) if "ACCEL_MEMORY" in env else ("sgesv", "dgesv", "cgesv", "zgesv"):
        lines = lines_for(done, sym=f"{name}_")
        on_device = [f for f in lines if f["ran"] == where]
        refused = [f for f in lines if f["ran"] == "cpu" and f["why"] == "unsupported"]
        tap.ok(len(on_device) == 2 * len(orders) and len(refused) == 3 * len(orders), f"{way}, {name}: those alone are the CPU's", *lines)
tap.done()
