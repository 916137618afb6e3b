#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What cuBLAS says of a product whose matrices are the program's own, in device memory. A status that proves that
nothing ran leaves the call to the original; after another one C may be half written, and the program is stopped."""

import pytest

from lib.log import lines_for
from lib.programs import TEST_GPU, start

# What the log says of a call that cuBLAS has refused so, twice where it is asked again.
NOTHING_RAN = {"INVALID_VALUE": "error", "NOT_INITIALIZED": "error", "ALLOC_FAILED": "no_memory",
               "NOT_SUPPORTED": "unsupported",
               "ARCH_MISMATCH": "unsupported"}
SOMETHING_RAN = ("EXECUTION_FAILED", "INTERNAL_ERROR", "MAPPING_ERROR")


def fail(number, status):
    plants = ",".join(f"cublasDgemm:{n}=CUBLAS_STATUS_{status}" for n in (number, number + 1))
    return start("cuda_program", "-c", 1, "-n", 20, "-r", "dgemm",
                 env={**TEST_GPU, "TESTGPU_DELAY_US": "0", "TESTGPU_FAIL": plants, "ACCEL_LOG": "1"})


def is_stopped(done):
    return done.returncode == -6 and "cublasDgemm_v2" in done.stderr and "cannot be made right" in done.stderr


@pytest.fixture(scope="module")
def own():
    """The number of a product in device memory: one that fails while it runs stops the program."""
    number = next((n for n in range(1, 40) if is_stopped(fail(n, "EXECUTION_FAILED"))), None)
    assert number
    return number


@pytest.mark.parametrize("status", SOMETHING_RAN)
def test_the_program_is_stopped(own, status):
    assert is_stopped(fail(own, status))


@pytest.mark.parametrize("status, why", NOTHING_RAN.items())
def test_the_original_computes_it(own, status, why):
    done = fail(own, status)
    assert done.returncode == 0
    assert "0 calls wrong" in done.stdout
    assert lines_for(done, why=why)
