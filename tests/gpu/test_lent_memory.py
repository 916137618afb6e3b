#!/usr/bin/python3 -B
"""The rates at which two devices read each other's memory, under all settings of the test GPU, and with each CUDA call failing in turn: no rate
then, or the right one, and both devices compute as before."""

import re
import tempfile
from pathlib import Path

from lib.programs import BUILD, LONG, TESTS, start
from lib.tap import Tap

tap = Tap()
# Without a rate of the test GPU's own, copies take the time of this machine's.
ENV = {"BUILD": str(BUILD), "TESTGPU_DEVICES": "2", "TESTGPU_PEER_GBPS": "0", "TESTGPU_DELAY_US": "0"}


def run(until, **env):
    """(what the program did, its rates, what it says of each device, the test GPU's report)"""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        done = start(str(TESTS / "test_lent_memory"), until, env={**ENV, **env, "TESTGPU_REPORT": str(report)}, timeout=60)
        lines = done.stdout.splitlines()
        rates = [float(line.split()[1]) for line in lines if line.startswith("rate ")]
        return done, rates, [line for line in lines if not line.startswith("rate ")], report.read_text() if report.exists() else ""


def calls(text):
    return {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", text)}


for name, env, expected in (("a rate", {"TESTGPU_PEER_GBPS": "0.26"}, [0.25, 0.25]),
                            ("a rate between powers of 2", {"TESTGPU_PEER_GBPS": "0.37"}, [0.353553, 0.353553]),
                            ("without data", {"TESTGPU_PEER_GBPS": "1.04", "TESTGPU_DATA": "0"}, [1, 1]),
                            ("no way between the devices", {"TESTGPU_PEER_GBPS": ""}, [0, 0]),
                            ("no memory pools", {"TESTGPU_ATTRIBUTES": "115=0"}, [0, 0]),
                            ("no memory pools on one", {"TESTGPU_ATTRIBUTES": "115=1/0"}, [0, 0]),
                            ("full devices", {"TESTGPU_MEMORY": "8M", "TESTGPU_TAKEN": "5M,5M"}, [0, 0])):
    done, rates, devices, report = run("end", **env)
    # Products compute nothing, or have no memory.
    well = devices == ["wrong", "wrong"] if "TESTGPU_DATA" in env or "TESTGPU_TAKEN" in env else devices == ["well", "well"]
    # A step less where the machine is slow.
    right = len(rates) == 2 and all(any(abs(rate - want * part) <= 1e-5 * want for part in (1, 0.5 ** 0.5)) for rate, want in zip(rates, expected))
    tap.ok(done.returncode == 0 and right and well and "testgpu faults n=0\n" in report, f"{name}: {expected}", done, report[-600:])
    tap.ok("cuCtxEnablePeerAccess" not in report and re.search(r"leaked device_bytes=0 .*contexts=0 .*pools=0\n", report), f"{name}: nothing is left, nor changed for the program", report)

# Between what a start takes and what the rates take are the calls that are made to fail.
first = sum(calls(run("start")[3]).values()) + 1
_, rates, _, report = run("rates")
last = sum(calls(report).values())
tap.ok(all(rate > 0 for rate in rates) and last - first > 60, f"calls {first} to {last} are the rates'", report)
bad, without = [], 0
for number in range(first, last + 1, 1 if LONG else 3):
    done, rates, devices, report = run("end", TESTGPU_FAIL=f"*:{number}")
    without += 0 in rates
    if done.returncode != 0 or len(rates) != 2 or devices != ["well", "well"] or " fired=1" not in report or "testgpu faults n=0\n" not in report:
        bad.append(f"{number}: {done.returncode} {rates} {devices} " + " ".join(re.findall(r"name=\w+ n=\d+ failed=[1-9]|testgpu fault .*", report)))
tap.ok(without > 10 and not bad, "each fails once: both devices are well", *bad)
bad = []
for number in range(first, last + 1, 3 if LONG else 11):
    done, rates, devices, report = run("end", TESTGPU_FAIL=f"*:{number}+")
    if done.returncode != 0 or len(rates) != 2 or len(devices) != 2 or "testgpu faults n=0\n" not in report:
        bad.append(f"{number}: {done.returncode} {rates} {devices} {done.stderr[-200:]}")
tap.ok(not bad, "all fail from one on: the program goes on", *bad)

# Copies and fills, of which there are at least three for each attempt.
bad = []
for number in range(1, 30, 1 if LONG else 4):
    done, rates, devices, report = run("end", TESTGPU_FAIL=f"async:{number}=CUDA_ERROR_ECC_UNCORRECTABLE")
    if done.returncode != 0 or len(rates) != 2 or rates[1] != 0 or "well" not in devices or len(set(devices)) != 2 or "testgpu faults n=0\n" not in report:
        bad.append(f"{number}: {done.returncode} {rates} {devices} {done.stderr[-200:]}")
tap.ok(not bad, "what runs on a device breaks it: the other one is well", *bad)
tap.done()
