#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The rates at which two devices read each other's memory, under all settings of the test GPU, and with each CUDA call
failing in turn: no rate then, or the right one, and both devices compute as before."""

import re

import pytest

from lib.programs import BUILD, LONG, TESTS, start

# Without a rate of the test GPU's own, copies take the time of this machine's.
ENV = {"BUILD": str(BUILD), "TESTGPU_DEVICES": "2", "TESTGPU_PEER_GBPS": "0", "TESTGPU_DELAY_US": "0"}


def run(folder, until, **env):
    """(its rates, what the program says of each device, the test GPU's report)"""
    report = folder / "report"
    report.unlink(missing_ok=True)
    done = start(str(TESTS / "test_lent_memory"), until, env={**ENV, **env, "TESTGPU_REPORT": str(report)}, timeout=60)
    assert done.returncode == 0, (env, done)
    lines = done.stdout.splitlines()
    rates = [float(line.split()[1]) for line in lines if line.startswith("rate ")]
    return rates, [line for line in lines
                   if not line.startswith("rate ")], report.read_text() if report.exists() else ""


def attempt(folder, **env):
    """A run to the end, which has two rates and does not misuse CUDA: (rates, devices, report)"""
    rates, devices, report = run(folder, "end", **env)
    assert len(rates) == 2, env
    assert "testgpu faults n=0\n" in report, (env, re.findall(r"name=\w+ n=\d+ failed=[1-9]|testgpu fault .*", report))
    return rates, devices, report


@pytest.mark.parametrize("env, expected", [
    pytest.param({"TESTGPU_PEER_GBPS": "0.26"}, 0.25, id="a rate"),
    pytest.param({"TESTGPU_PEER_GBPS": "0.37"}, 0.353553, id="a rate between powers of 2"),
    pytest.param({"TESTGPU_PEER_GBPS": "1.04", "TESTGPU_DATA": "0"}, 1, id="without data"),
    pytest.param({"TESTGPU_PEER_GBPS": ""}, 0, id="no way between the devices"),
    pytest.param({"TESTGPU_ATTRIBUTES": "115=0"}, 0, id="no memory pools"),
    pytest.param({"TESTGPU_ATTRIBUTES": "115=1/0"}, 0, id="no memory pools on one"),
    pytest.param({"TESTGPU_MEMORY": "8M", "TESTGPU_TAKEN": "5M,5M"}, 0, id="full devices")])
def test_rates(env, expected, tmp_path):
    rates, devices, report = attempt(tmp_path, **env)
    for rate in rates:  # a step less where the machine is slow
        assert any(abs(rate - expected * part) <= 1e-5 * expected for part in (1, 0.5 ** 0.5))
    # Products compute nothing, or have no memory.
    assert devices == (["wrong", "wrong"] if "TESTGPU_DATA" in env or "TESTGPU_TAKEN" in env else ["well", "well"])
    # Nothing is left, nor changed for the program.
    assert "cuCtxEnablePeerAccess" not in report
    assert re.search(r"leaked device_bytes=0 .*contexts=0 .*pools=0\n", report)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The calls that are made to fail: those between what a start takes and what the rates take."""

    def total(report):
        return sum(int(n) for n in re.findall(r"call name=\S+ n=(\d+)", report))

    folder = tmp_path_factory.mktemp("calls")
    first = total(run(folder, "start")[2]) + 1
    rates, _, report = run(folder, "rates")
    assert all(rate > 0 for rate in rates)
    assert total(report) - first > 60
    return range(first, total(report) + 1)


def test_each_call_fails_once(calls, tmp_path):
    without = 0
    for number in calls[::1 if LONG else 3]:
        rates, devices, report = attempt(tmp_path, TESTGPU_FAIL=f"*:{number}")
        without += 0 in rates
        assert devices == ["well", "well"], number
        assert " fired=1" in report, number
    assert without > 10


def test_all_calls_fail_from_one_on(calls, tmp_path):
    for number in calls[::3 if LONG else 11]:
        assert len(attempt(tmp_path, TESTGPU_FAIL=f"*:{number}+")[1]) == 2, number


def test_what_runs_on_a_device_breaks_it_and_the_other_one_is_well(tmp_path):
    """Copies and fills, of which there are at least three for each attempt."""
    for number in range(1, 30, 1 if LONG else 4):
        rates, devices, _ = attempt(tmp_path, TESTGPU_FAIL=f"async:{number}=CUDA_ERROR_ECC_UNCORRECTABLE")
        assert rates[1] == 0, number
        assert "well" in devices, number
        assert len(set(devices)) == 2, number
