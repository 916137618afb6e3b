#!/usr/bin/python3 -B
"""?sytri and ?hetri from factors with a block whose inverse is no number of the matrix's type: such
calls are the CPU's, and the rest of the result stays numbers; others run on the GPU. See
small_blocks.c."""

from lib.log import lines_for, said
from lib.programs import LOG, REFERENCE, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
QUICK = {**REFERENCE, "ACCEL_CPU": "blas:*", "TESTGPU_DELAY_US": "0"}
plain = start("small_blocks", env=REFERENCE)
tap.ok(plain.stdout.count(": 0 ") == 40 and "inf" in plain.stdout, "runs without libaccel", plain.stdout)
done = start("small_blocks", env={**TEST_GPU, **LOG, **QUICK})
tap.ok(done.stdout.replace("-nan", "nan") == plain.stdout.replace("-nan", "nan") and not said(done),
       "the same on the test GPU", plain.stdout, done.stdout, *said(done))
for name in "ssytri", "csytri", "chetri", "dsytri", "zhetri":
    seen = [(f["ran"], f["why"]) for f in lines_for(done, sym=f"{name}_")]
    tap.ok(seen == 4 * [("cpu", "unsupported")] + 4 * [("gpu0", "forced")],
           f"{name}: those with such a block are the CPU's", *seen)
tap.done()
