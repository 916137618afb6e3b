#!/usr/bin/python3 -B
"""A cuSOLVER whose INFO is 0 though the last pivot of a Cholesky factorisation fails, of some orders: INFO is LAPACK's all the same, whichever pivot fails, of potrf, posv, sygvd, hegv and hegvx: with the matrix as a whole on the device, in panels there, above its memory, and on two
devices. See last_pivot.c."""

import tempfile

from lib.calibrated import calibrate_in_core
from lib.log import complaints, lines_for, said
from lib.programs import LOG, LONG, TEST_GPU, start
from lib.split import several
from lib.tap import Tap

tap = Tap()
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
folder = tempfile.TemporaryDirectory()
model = f"{folder.name}/model"
calibrate_in_core(model, folder.name, QUICK)
WHOLE = {**TEST_GPU, **LOG, **QUICK}
ORDERS = 33, 32, 64
# Of larger orders, some diagonal blocks of panels are of such an order, too. Each pivot fails in
# turn.
WAYS = {
    "as a whole": (ORDERS, WHOLE, "gpu0"),
    "in panels": ((128, 192), {**WHOLE, "ACCEL_LOG": "2", "ACCEL_MODEL": model}, "gpu0"),
    "above the memory": ((128, 192), {**WHOLE, "ACCEL_MEMORY": "100K"}, "gpu0"),
    "on two devices": ((128, 192), {**several(2), **QUICK, "ACCEL_MEMORY": "100K"}, "gpu0+gpu1"),
}
plain = start("last_pivot", *ORDERS)
tap.ok(plain.returncode == 0, "right without libaccel", plain.stdout[-600:])
for way, (orders, env, where) in WAYS.items():
    for missed, routines in (0, "none"), (1, "potrf"), (2, "potrf and sygvd"), (3, "potrf, and sygvd except for its pivot"):
        if missed != 1 and orders != ORDERS and not (LONG and missed == 0):
            continue
        done = start("last_pivot", *orders, env={**env, "TESTGPU_LAST_PIVOT": str(missed)})
        tap.ok(done.returncode == 0 and not complaints(done), f"{way}, a last pivot that is missed by {routines}: right", done.stdout[-600:], *said(done))
        ran = {line["sym"] for line in lines_for(done, ran=where)}
        tap.ok(ran >= {"dpotrf_", "zpotrf_", "zposv_"} and (orders != ORDERS or ran >= {"zhegv_", "dsygvd_", "zhegvx_"}),
               f"{way}, {routines}: those that succeed ran there", ran)
tap.done()
