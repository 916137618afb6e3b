#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""?sytri and ?hetri from factors with a block whose inverse is no number of the matrix's type: such
calls are the CPU's, and the rest of the result stays numbers; others run on the GPU. See
small_blocks.c."""

import pytest

from lib.log import lines_for, outcomes, said
from lib.programs import LOG, REFERENCE, TEST_GPU, start


@pytest.fixture(scope="module")
def done():
    return start("small_blocks", env={**TEST_GPU, **LOG, **REFERENCE, "ACCEL_CPU": "blas:*", "TESTGPU_DELAY_US": "0"})


def test_the_same_as_without_libaccel(done):
    plain = start("small_blocks", env=REFERENCE)
    assert plain.stdout.count(": 0 ") == 40
    assert "inf" in plain.stdout
    assert done.stdout.replace("-nan", "nan") == plain.stdout.replace("-nan", "nan")
    assert not said(done)


@pytest.mark.parametrize("name", ["ssytri", "csytri", "chetri", "dsytri", "zhetri"])
def test_those_with_such_a_block_are_the_cpus(done, name):
    assert outcomes(lines_for(done, sym=f"{name}_")) == 4 * [("cpu", "unsupported")] + 4 * [("gpu0", "forced")]
