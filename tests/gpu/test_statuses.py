#!/usr/bin/python3 -B
"""What cuBLAS says of a product whose matrices are the program's own, in device memory. A status that proves that nothing ran leaves
the call to the original; after another one C may be half written, and the program is stopped."""

from lib.log import lines_for
from lib.programs import TEST_GPU, start
from lib.tap import Tap

ARGUMENTS = ["-c", 1, "-n", 20, "-r", "dgemm"]
# What the log says of a call that cuBLAS has refused so, twice where it is asked again.
NOTHING_RAN = {"INVALID_VALUE": "error", "NOT_INITIALIZED": "error", "ALLOC_FAILED": "no_memory", "NOT_SUPPORTED": "unsupported",
               "ARCH_MISMATCH": "unsupported"}
SOMETHING_RAN = ("EXECUTION_FAILED", "INTERNAL_ERROR", "MAPPING_ERROR")

tap = Tap()


def fail(number, status):
    plants = [f"cublasDgemm:{n}=CUBLAS_STATUS_{status}" for n in (number, number + 1)]
    return start("cuda_program", *ARGUMENTS, env={**TEST_GPU, "TESTGPU_DELAY_US": "0", "TESTGPU_FAIL": ",".join(plants), "ACCEL_LOG": "1"})


def is_stopped(done):
    return done.returncode == -6 and "cublasDgemm_v2" in done.stderr and "cannot be made right" in done.stderr


def is_right(done):
    return done.returncode == 0 and "0 calls wrong" in done.stdout


own = next((n for n in range(1, 40) if is_stopped(fail(n, "EXECUTION_FAILED"))), None)
if tap.ok(own, "a product in device memory that fails while it runs stops the program"):
    for status in SOMETHING_RAN:
        done = fail(own, status)
        tap.ok(is_stopped(done), f"{status}: the program is stopped", done.stdout, done.stderr[-300:])
    for status, why in NOTHING_RAN.items():
        done = fail(own, status)
        tap.ok(is_right(done) and lines_for(done, why=why), f"{status}: the original computes it, why={why}", done.stdout, done.stderr[-300:])
tap.done()
