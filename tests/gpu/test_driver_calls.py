#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What a call costs in calls of the driver, in waits for the device and in memory that it takes, in the steady state."""

import re
from collections import namedtuple

import pytest

from lib.counts import per_call
from lib.programs import TEST_GPU, TESTS, start

# The most driver calls and waits of each, of order 64, beside cuBLAS's and cuSOLVER's own.
MOST = {"gemm": (12, 1), "syrk": (10, 1), "trsm": (11, 1), "gemv": (11, 1), "getrf": (14, 3)}
NAMES = {"gemm": "dgemm, host memory", "syrk": "dsyrk, host memory", "trsm": "dtrsm, host memory",
         "gemv": "dgemv, device memory", "getrf": "dgetrf, host memory"}

# About those of an H100 (docs/measurements): the report has the sums.
COSTS = {"TESTGPU_MEMORY_US": "100", "TESTGPU_PIN_MS": "62", "TESTGPU_INFO_US": "10"}
COST = re.compile(r"^testgpu cost memory_us=(\d+) pinning_us=(\d+) info_us=\d+$", re.M)

Costs = namedtuple("Costs", "name driver waits reports")


@pytest.fixture(scope="module", params=MOST, ids=NAMES.get)
def costs(request, tmp_path_factory):
    """Of one routine: driver calls and waits of one call, and the test GPU's reports of one run and of a longer one."""
    reports = []

    def run(count):
        report = tmp_path_factory.mktemp("report") / "report"
        done = start(str(TESTS / "repeated"), request.param, count,
                     env={**TEST_GPU, **COSTS, "TESTGPU_DELAY_US": "0", "TESTGPU_REPORT": str(report)})
        assert done.returncode == 0, done.stderr
        reports.append(report.read_text())
        ran = rf"^testgpu call name=(cublasD|cusolverDnXgetrf|cusolverDnDgetrf)\w* n={count} failed=0"
        assert re.search(ran, reports[-1], re.M)
        return reports[-1]

    return Costs(request.param, *per_call(run), reports)


def test_cuda_is_not_misused(costs):
    assert not [report for report in costs.reports if "testgpu fault " in report]


def test_driver_calls(costs):
    assert 0 < round(costs.driver) <= MOST[costs.name][0]


def test_waits(costs):
    assert 0 < round(costs.waits) <= MOST[costs.name][1]


def test_later_calls_neither_take_nor_pin_memory(costs):
    once, twice = (COST.search(report) for report in costs.reports)
    assert int(once[1]) > 0
    assert once.groups() == twice.groups()
