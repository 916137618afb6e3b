#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A product that goes through the device in tiles, which fails on the way: what has come down by then stays as it is,
the program's BLAS is asked for the rest alone, each element once, and the log says so."""

import re

import pytest

from faults.faults import GPU, Fault, Outcome, check, judge, run, sweep, uses
from lib.log import parse_log

M, N, K = 500, 460, 130
ENV = {**GPU, "ACCEL_MEMORY": "300K"}
COUNTS = re.compile(r"elements=(\d+) by_cpu=(\d+) twice=(\d+) wrong=(\d+)")


def look(done):
    found = COUNTS.search(done.stdout)
    return [int(n) for n in found.groups()] if found else [0, 0, 0, -1]


@pytest.fixture(scope="module")
def baseline():
    """The report without a fault: several tiles, and nothing by the CPU."""
    done, report = run("parts", [M, N, K], ENV)
    assert look(done) == [M * N, 0, 0, 0], done.stderr
    assert [line["ran"] for line in parse_log(done.stderr)] == ["gpu0"]
    assert report.calls["cublasDgemm_v2_64"] >= 8
    return report


def test_what_has_come_down_is_kept(baseline):
    faults = [
        Fault(kind, f"{function}:{n}{code}", function, True)
        for function in ("cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cublasDgemm_v2_64")
        for n in uses(baseline.calls[function], 12)
        for kind, code in (("once", ""), ("for good", "+"), ("sticky", "=CUDA_ERROR_LAUNCH_FAILED"))
        if not (kind == "sticky" and function.startswith("cublas"))
    ]
    faults += [Fault("lost", f"async:{n}=CUDA_ERROR_{code}", "async", True) for n in uses(baseline.operations(), 40)
               for code in ("LAUNCH_FAILED", "ECC_UNCORRECTABLE")]
    kept = {}

    def attempt(fault):
        done, report = run("parts", [M, N, K], {**ENV, "TESTGPU_FAIL": fault.plant})
        outcome = judge(fault, done, report, baseline, done.stdout.strip() if done.returncode == 0 else "")
        elements, by_cpu, twice, wrong = look(done)
        lines = parse_log(done.stderr)
        if outcome.what == "wrong" or outcome.what == "missed":
            return outcome
        if wrong or twice or len(lines) != 1:
            return Outcome(fault, "wrong", f"{fault.plant}: {done.stdout} {done.stderr}", 0)
        down = round(float(lines[0].get("down_mb", 0)) * 1e6 / 8)
        begun = lines[0]["ran"] == "gpu0+cpu"
        # What has come down in whole tiles is logged; of one more tile, some columns may be there.
        good = {"gpu0": by_cpu == 0, "cpu": by_cpu == elements,
                "gpu0+cpu": 0 < by_cpu < elements and by_cpu <= elements - down + 5000}
        if not good.get(lines[0]["ran"]):
            return Outcome(fault, "wrong", f"{fault.plant}: by_cpu={by_cpu} down={down} {lines[0]}", 0)
        kept[fault.plant] = elements - by_cpu
        return outcome._replace(kept=int(begun))

    check("a product in tiles", sweep(faults, attempt))
    shares = sorted({round(100 * n / (M * N)) for n in kept.values() if n})  # of the result, in percent
    assert len(shares) >= 8
    assert shares[0] < 20
    assert shares[-1] > 80
