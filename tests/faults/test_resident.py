#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Products with matrices that stay on the GPU, and change now and then; every CUDA and cuBLAS call made to fail at
its first, second, … n-th use. A copy that has not arrived, or that a failure has left behind, is never taken for the
matrix. So does each call by which the kernel is asked who has written to it: then digests know it, or it goes up."""

from pathlib import Path

import pytest

from faults.faults import GPU, check, judge, plan, run, sweep, uses
from lib.calibrated import calibrate_slow_copies
from lib.log import events, parse_log, said
from lib.programs import LONG, TESTS, start

ENV = {**GPU, "ACCEL_RESIDENT": "hash"}
OVER_16_MB = "LAPACK's triangles over 16 MB"  # a program is stopped whose matrix is half overwritten
WORKLOADS = {
    "ample memory": (["many", 40], {}), "little memory": (["many", 40], {"ACCEL_MEMORY": "4M"}),
    "two threads": (["threads", 6], {}), "results": (["chain", 12], {}), "blocks": (["blocks", 2], {}),
    "triangles": (["triangles", 2], {}), "batches": (["batches", 4], {}), "LAPACK": (["factors", 3], {}),
    OVER_16_MB: (["cholesky", 2], {}), "vectors": (["vectors", 12], {"ACCEL_RESIDENT": "auto"}),
}


def check_again(arguments, env, least, most, may_stop=False):
    """So many calls find a matrix on the GPU, and no fault of a call makes a result wrong."""
    done, baseline = run("again", arguments, env)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert sum(float(f.get("kept_mb", 0)) > 0 for f in parse_log(done.stderr)) >= least

    def attempt(fault):
        done, report = run("again", arguments, {**env, "TESTGPU_FAIL": fault.plant})
        return judge(fault, done, report, baseline, "0 calls wrong", may_stop=may_stop)

    check("kept operands", sweep(list(plan(baseline, most)), attempt))


@pytest.mark.parametrize("name", WORKLOADS)
def test_matrix_that_stays_on_the_gpu(name):
    arguments, more = WORKLOADS[name]
    check_again(arguments, {**ENV, **more}, 5, 12 if LONG else 2 if name == OVER_16_MB else 4,
                may_stop=name == OVER_16_MB)


# ---- The kernel's record of writes ----

STORM = ["mix", 12, 5, "fresh"]
NOW = {"ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}  # calls with a vector bring their matrix


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The environment in which matrices are watched."""
    folder = str(tmp_path_factory.mktemp("resident"))
    calibrate_slow_copies(f"{folder}/model", folder, {"OPENBLAS_NUM_THREADS": "1"})
    return {**GPU, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": f"{folder}/model",
            "LD_PRELOAD": f"{TESTS / 'libtracking_fails.so'}:{GPU['LD_PRELOAD']}"}


@pytest.fixture(scope="module")
def counts(watched, tmp_path_factory):
    """How often each call of it is used in a storm of writers."""
    path = tmp_path_factory.mktemp("tracking") / "counts"
    done = start("storm", *STORM, env={**watched, "TRACKING_COUNTS": str(path)})
    for event in events(done.stderr, "untracked"):
        pytest.skip(event["reason"])
    found = {name: int(count) for name, count in (line.split() for line in Path(path).read_text().splitlines())}
    assert done.returncode == 0, done.stdout + done.stderr[-300:]
    assert all(found.values()), found
    return found


def test_matrix_that_is_brought(watched, counts):
    """By a call whose first one waits for the GPU."""
    check_again(["vectors", 12], {**watched, "ACCEL_POLICY": "auto", "ACCEL_GPU": "dgemm"}, 8, 12 if LONG else 4)


def test_failures_of_the_record_make_no_result_wrong(watched, counts):
    plants = [(f"{name}:{n}{more}", way) for name, count in counts.items() for n in uses(count, 24 if LONG else 6)
              for more in ("", "+") for way in ((), ("vector", ), ("vector", NOW))]

    def fail(planted):
        plant, way = planted
        done = start("storm", *STORM, *way[:1], env={**watched, "TRACKING_FAILS": plant, **(way[1] if way[1:] else {})})
        why = [line["reason"] for line in events(done.stderr, "untracked")]
        right = done.returncode == 0 and done.stdout.endswith(" 0 wrong\n") and not said(done) and len(why) <= 1
        return None if right else f"{plant}: status {done.returncode} {done.stdout[-100:]} {why} {done.stderr[-200:]}"

    assert list(filter(None, sweep(plants, fail))) == []
    assert len(plants) > 20
