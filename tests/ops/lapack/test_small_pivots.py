#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""LU factorisations with pivots whose inverses are no numbers: LAPACK divides by these. The factors are finite, with
the matrix as a whole on the device, in panels there, above its memory, and on two devices, because such calls are the
CPU's; other calls run there. See small_pivots.c."""

import pytest

from lib.calibrated import calibrate_in_core
from lib.log import complaints, lines_for
from lib.programs import LOG, REFERENCE, TEST_GPU, start
from lib.split import several

# The reference library: OpenBLAS multiplies by inverses.
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
WHOLE = {**TEST_GPU, **LOG, **QUICK}
WAYS = {
    "as a whole": ((8, 33), WHOLE, "gpu0"),
    "in panels": ((120,), {**WHOLE, "ACCEL_LOG": "2"}, "gpu0"),
    "above the memory": ((120,), {**WHOLE, "ACCEL_MEMORY": "100K"}, "gpu0"),
    "on two devices": ((120,), {**several(2), **QUICK, "ACCEL_MEMORY": "100K"}, "gpu0+gpu1"),
}


def test_right_without_libaccel():
    assert start("small_pivots", 8, 33, 120, env=REFERENCE).returncode == 0


@pytest.mark.parametrize("way", WAYS)
def test_those_alone_are_the_cpus(way, tmp_path):
    orders, env, where = WAYS[way]
    if way == "in panels":
        calibrate_in_core(tmp_path / "model", tmp_path, QUICK)
        env = {**env, "ACCEL_MODEL": str(tmp_path / "model")}
    done = start("small_pivots", *orders, env={**env, **REFERENCE})
    assert done.returncode == 0, done.stdout[-600:]
    assert not complaints(done)
    for name in ("dgesv",) if "ACCEL_MEMORY" in env else ("sgesv", "dgesv", "cgesv", "zgesv"):
        assert len(lines_for(done, sym=f"{name}_", ran=where)) == len(orders), name
        factored = lines_for(done, sym=f"{name[0]}getrf_", ran=where)
        assert len([line for line in factored if line["m"] == line["n"]]) == len(orders), name
        assert len(lines_for(done, sym=f"{name}_", ran="cpu", why="unsupported")) == 3 * len(orders), name
