#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A device that cannot be had is passed over for the next one of the list: exclusive and taken, prohibited, failing,
without memory."""

from collections import namedtuple

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, start

QUICK = {**TEST_GPU, "TESTGPU_DELAY_US": "0"}

# modes: of the devices. ran: gpuN, or cpu. words: of the message in the log. env: more of it.
Case = namedtuple("Case", "modes ran words env", defaults=((), {}))
CASES = {
    "none": Case("default,default", "gpu0"),
    "exclusive and taken": Case("taken,default", "gpu1", ["gpu1 is used", "gpu0: ", "CUDA_ERROR_DEVICE_UNAVAILABLE",
                                                          "compute mode is exclusive"]),
    "exclusive and free": Case("exclusive,default", "gpu0"),
    "prohibited": Case("prohibited,default", "gpu1", ["gpu1 is used", "gpu0: its compute mode is prohibited"]),
    "failing": Case("failing,default", "gpu1", ["gpu1 is used", "gpu0: ", "CUDA_ERROR_ECC_UNCORRECTABLE"]),
    "no memory for a context": Case("full,default", "gpu1", ["gpu1 is used", "gpu0: ", "out of memory"]),
    "nearly all memory taken": Case("default,default", "gpu1", ["gpu1 is used", "gpu0: ", "others have all but"],
                                    {"TESTGPU_TAKEN": "1000M"}),
    "several": Case("taken,prohibited,failing,default", "gpu3", ["gpu3 is used", "gpu0", "gpu1", "gpu2"]),
    "nearly all memory of both taken": Case("default,default", "gpu0", ["gpu0 is used", "gpu0: ", "gpu1: "],
                                            {"TESTGPU_TAKEN": "1000M,1000M"}),
    "all": Case("taken,prohibited,failing", "cpu",
                ["no GPU is used", "gpu0: ", "gpu1: ", "gpu2: ", "CUDA_ERROR_DEVICE_UNAVAILABLE", "prohibited", "ECC"]),
    "the only one": Case("taken", "cpu", ["no GPU is used", "CUDA_ERROR_DEVICE_UNAVAILABLE"]),
    "no memory for a context of both": Case("full,full", "cpu",
                                            ["no GPU is used", "gpu0: ", "gpu1: ", "out of memory"]),
    "in the order of the list": Case("default,default,taken", "gpu1", ["gpu1 is used", "gpu2: "],
                                     {"ACCEL_DEVICES": "2,1,0"}),
    "one of the list alone": Case("default,taken", "cpu", ["no GPU is used", "gpu1: "], {"ACCEL_DEVICES": "1"}),
    "one that is not there": Case("default,default", "gpu1", ["gpu1 is used", "gpu7: there is no device 7"],
                                  {"ACCEL_DEVICES": "7,1"}),
}
for function in ("cuDeviceTotalMem", "cuMemGetInfo", "cuCtxPushCurrent"):
    CASES[f"{function} fails"] = Case("default,default", "gpu1",
                                      ["gpu1 is used", f"gpu0: {function}: CUDA_ERROR_UNKNOWN"],
                                      {"TESTGPU_FAIL": f"{function}:1=CUDA_ERROR_UNKNOWN"})
    CASES[f"{function} fails, of one device"] = Case("default", "cpu",
                                                     ["no GPU is used", f"gpu0: {function}: CUDA_ERROR_UNKNOWN"],
                                                     {"TESTGPU_FAIL": f"{function}:1+=CUDA_ERROR_UNKNOWN"})


def product(modes, count=1, **env):
    done = start("steps", f"dgemm:100:{count}", env={**QUICK, "TESTGPU_DEVICES": str(modes.count(",") + 1),
                                                     "TESTGPU_MODES": modes, **env})
    return done, said(done)


each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_case
def test_with_a_log(case):
    done, messages = product(case.modes, 2, **case.env, **LOG)
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    assert {(f["ran"], f["why"]) for f in lines_for(done)} == {(case.ran, "no_gpu" if case.ran == "cpu" else "forced")}
    assert len(messages) == bool(case.words)
    assert not [word for word in case.words if word not in messages[0]]


@each_case
def test_without_a_log_nothing_is_said_where_a_device_is_left(case):
    done, messages = product(case.modes, 2, **case.env)
    assert done.returncode == 0
    assert len(messages) == (case.ran == "cpu" or "ACCEL_DEVICES" in case.env)


def test_require_is_about_a_gpu_not_about_the_first():
    done, messages = product("taken,default", ACCEL_REQUIRE="gpu")
    assert done.returncode == 0
    assert not messages


def test_require_says_why_where_none_is_left():
    done, messages = product("taken,prohibited", ACCEL_REQUIRE="gpu")
    assert done.returncode == 1
    assert "ACCEL_REQUIRE=gpu" in messages[-1]
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in messages[-1]


def lines_of_ranks(size, modes):
    """Of one product by each: ranks begin at one device after the other, of those that each finds usable."""
    return [line for rank in map(str, range(size)) for line in lines_for(product(modes, 1, **LOG, **{
        "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)})[0])]


def test_four_ranks_one_of_three_devices_prohibited():
    lines = lines_of_ranks(4, "default,prohibited,default")
    assert [line["ran"] for line in lines] == ["gpu0", "gpu2", "gpu0", "gpu2"]
    assert len({line["est_gpu_ms"] for line in lines}) == 1


def test_three_ranks_one_of_three_devices_failing():
    assert [line["ran"] for line in lines_of_ranks(3, "default,failing,default")] == ["gpu0", "gpu2", "gpu2"]
