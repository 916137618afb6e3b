#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Calls whose devices lend each other tiles: each call of CUDA and cuBLAS made to fail, also those that measure the
way between devices and take memory for it, and a device lost at each copy and kernel, while others read its memory or
wait for its tiles. The results are complete, nobody waits for ever, and what has failed is left alone afterwards."""

import pytest

from faults.shared_calls import break_each
from lib.programs import LONG
from lib.split import behind_slow_links

# Products, whose factors come up in tiles; panels; a symmetric matrix, of which tiles are read
# twice; a triangle's grid.
WORKLOADS = {
    "products": (2, "steps", ["dgemm:512:3"]), "panels": (3, "columns", ["dtrsm-L"]),
    "grids": (3, "steps", ["dsyrk:384:3"])
}
if LONG:
    WORKLOADS |= {
        "products on three": (3, "steps", ["dgemm:700:2"]), "panels at the right": (2, "columns", ["dtrmm-R"]),
        "a symmetric matrix": (2, "columns", ["dsymm-L"])
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_lent_tiles(name, tmp_path):
    devices, program, arguments = WORKLOADS[name]
    lines = break_each(program, arguments, behind_slow_links(devices, str(tmp_path), TESTGPU_PEER_GBPS="0"), 1)
    assert all(float(line.get("peer_mb", 0)) > 0 for line in lines), lines
