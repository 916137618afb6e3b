#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A cuSOLVER whose INFO is 0 though the last pivot of a Cholesky factorisation fails, of some orders: INFO is LAPACK's
all the same, whichever pivot fails, of potrf, posv, sygvd, hegv and hegvx: with the matrix as a whole on the device, in
panels there, above its memory, and on two devices. See last_pivot.c."""

import pytest

from lib.calibrated import calibrate_in_core
from lib.log import complaints, lines_for
from lib.programs import LOG, LONG, TEST_GPU, start
from lib.split import several

QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
WHOLE = {**TEST_GPU, **LOG, **QUICK}
ORDERS = 33, 32, 64
# Of larger orders, some diagonal blocks of panels are of such an order, too. Each pivot fails in
# turn.
LARGER = 128, 192
WAYS = {
    "as a whole": (ORDERS, WHOLE, "gpu0"),
    "in panels": (LARGER, {**WHOLE, "ACCEL_LOG": "2"}, "gpu0"),
    "above the memory": (LARGER, {**WHOLE, "ACCEL_MEMORY": "100K"}, "gpu0"),
    "on two devices": (LARGER, {**several(2), **QUICK, "ACCEL_MEMORY": "100K"}, "gpu0+gpu1"),
}
MISSED = ("none", "potrf", "potrf and sygvd", "potrf, and sygvd except for its pivot")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    calibrate_in_core(folder / "model", folder, QUICK)
    return str(folder / "model")


def test_right_without_libaccel():
    assert start("last_pivot", *ORDERS).returncode == 0


@pytest.mark.parametrize("way, missed", [pytest.param(way, missed, id=f"{way}, missed by {MISSED[missed]}")
                                         for way in WAYS for missed in range(4)
                                         if missed == 1 or WAYS[way][0] == ORDERS or LONG and missed == 0])
def test_a_last_pivot_that_is_missed(way, missed, model):
    orders, env, where = WAYS[way]
    done = start("last_pivot", *orders, env={**env, **({"ACCEL_MODEL": model} if way == "in panels" else {}),
                                             "TESTGPU_LAST_PIVOT": str(missed)})
    assert done.returncode == 0, done.stdout[-600:]
    assert not complaints(done)
    ran = {line["sym"] for line in lines_for(done, ran=where)}  # those that succeed
    assert ran >= {"dpotrf_", "zpotrf_", "zposv_"}
    assert orders != ORDERS or ran >= {"zhegv_", "dsygvd_", "zhegvx_"}
