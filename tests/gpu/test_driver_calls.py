#!/usr/bin/python3 -B
"""What a call costs in calls of the driver, in waits for the device and in memory that it takes, in the steady state."""

import re
import tempfile
from pathlib import Path

from lib.counts import per_call
from lib.programs import TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()

# The most of each, of order 64. cuBLAS's and cuSOLVER's own calls are beside them.
MOST = {"gemm": (12, 1, "dgemm, host memory"), "syrk": (10, 1, "dsyrk, host memory"), "trsm": (11, 1, "dtrsm, host memory"),
        "gemv": (11, 1, "dgemv, device memory"), "getrf": (14, 3, "dgetrf, host memory")}

# About those of an H100 (docs/measurements): the report has the sums.
COSTS = {"TESTGPU_MEMORY_US": "100", "TESTGPU_PIN_MS": "62", "TESTGPU_INFO_US": "10"}
COST = re.compile(r"^testgpu cost memory_us=(\d+) pinning_us=(\d+) info_us=\d+$", re.M)

with tempfile.TemporaryDirectory() as folder:
    for name, (most_driver, most_waits, what) in MOST.items():

        reports = []

        def run(count):
            report = Path(folder, f"{name}.{count}")
            done = start(str(TESTS / "repeated"), name, count, env={**TEST_GPU, **COSTS, "TESTGPU_DELAY_US": "0", "TESTGPU_REPORT": str(report)})
            text = report.read_text() if report.exists() else ""
            reports.append(text)
            ran = re.search(rf"^testgpu call name=(cublasD|cusolverDnXgetrf|cusolverDnDgetrf)\w* n={count} failed=0", text, re.M)
            tap.ok(done.returncode == 0 and ran and "testgpu fault " not in text, f"{what}: {count} calls on the GPU", done.stderr, text)
            return text

        driver, waits = per_call(run)
        tap.ok(0 < round(driver) <= most_driver, f"{what}: at most {most_driver} driver calls", driver)
        tap.ok(0 < round(waits) <= most_waits, f"{what}: at most {most_waits} waits", waits)
        once, twice = (COST.search(text) for text in reports)
        tap.ok(once and twice and int(once[1]) > 0 and once[1] == twice[1] and once[2] == twice[2],
               f"{what}: later calls neither take, give back nor pin memory", once and once[0], twice and twice[0])
tap.done()
