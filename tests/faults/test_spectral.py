#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Eigenvalues of a matrix above the device's memory, by calls of Level 3 and Cholesky factors, on one device and on
two that share these: each call of CUDA, cuBLAS and cuSOLVER made to fail, at its first, second, … use: once, for
good, with an error after which that device fails; without memory; a device lost at each copy and kernel. The results
are right, whoever computes them, the call has one line, and what has failed is left alone."""

import re

import pytest

from faults.faults import GPU, QUICK, Fault, Outcome, amiss, check, plan, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import LONG
from lib.split import several

MOST = 4 if LONG else 2
CALLS = ["-f", "tyesmv", "-m", 100, "-n", 110, "-s", 5, "-k", "well", "-c", 1, "-r"]
GOOD = {"gpu0", "gpu1", "gpu0+gpu1", "gpu0+cpu", "gpu1+cpu", "gpu0+gpu1+cpu", "cpu"}
DEVICES = {
    "one device": (GPU, "@(dsyevd|cheev)", 2, {"gpu0"}), "two devices": ({**several(2),
                                                                          **QUICK}, "dsyevd", 1, {"gpu0+gpu1"})
}


def decisions(done):
    return [
        line for line in parse_log(done.stderr) if re.search("ev", line["sym"]) and line["why"] != "workspace_query"
    ]


def judge(fault, done, report, calls):
    lines, spoken = decisions(done), said(done)
    outcome = amiss(fault, done, report, lines, calls, GOOD, spoken)
    if outcome:
        return outcome
    elsewhere = sum(line["why"] in ("error", "no_memory", "no_gpu", "unsupported") for line in lines)
    return Outcome(fault, "recovered" if elsewhere or spoken else "absorbed", "",
                   sum("+cpu" in line["ran"] for line in lines))


@pytest.mark.parametrize("name", DEVICES)
def test_eigenvalues_above_the_memory(name):
    env, routines, calls, places = DEVICES[name]
    env = {**env, "ACCEL_MEMORY": "110K"}
    done, baseline = run("random_lapack", [*CALLS, routines], env)
    lines = decisions(done)
    assert done.returncode == 0, done.stdout[-400:]
    assert len(lines) == calls
    assert {line["ran"] for line in lines} == places
    assert not said(done)
    faults = list(plan(baseline, MOST))
    faults += [
        Fault("lost", f"async:{n}=CUDA_ERROR_{code}", "async", True)
        for n in uses(baseline.operations(), 40 if LONG else 6) for code in ("LAUNCH_FAILED", "ECC_UNCORRECTABLE")
    ]

    def attempt(fault):
        try:
            ended, report = run("random_lapack", [*CALLS, routines], {**env, "TESTGPU_FAIL": fault.plant})
        except Exception as error:  # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)
        return judge(fault, ended, report, calls)

    check("eigenvalues above the memory", sweep(faults, attempt))
