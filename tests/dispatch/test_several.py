#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Several devices in one process (ACCEL_DEVICES=all, or a list): which of them gets a call that one device runs, and
what becomes of calls if one fails. Such are short calls, and all of LAPACK; test_split.py has those that several
devices run together."""

from collections import Counter

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, TESTS, right, start

LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]


def places(done):
    return Counter(line["ran"] for line in lines_for(done))


def run(*steps, env, quiet=False):
    """A run whose results are right, and which says nothing where that is asked for."""
    done = start("steps", *steps, env=env)
    assert right(done), done.stderr[-1500:]
    assert not quiet or not said(done)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("calibration")


@pytest.fixture(scope="module")
def env(folder):
    """By these figures a call of order 500 takes a quarter of a second."""
    calibrate(folder / "model", keys(folder), 100000, 250)
    return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": "2", "TESTGPU_GFLOPS": "2",
            "XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder),
            "ACCEL_MODEL": str(folder / "model"), "ACCEL_DEVICES": "all"}


@pytest.fixture(scope="module")
def wait(env, folder):
    """With ACCEL_START=wait, and products that take a quarter of a millisecond, which are not divided."""
    calibrate(folder / "short", keys(folder), 100000, 0.2)
    return {**env, "ACCEL_START": "wait", "TESTGPU_GFLOPS": "0", "ACCEL_MODEL": str(folder / "short")}


# ---- Which one ----


def test_one_thread_uses_the_first(wait):
    assert places(run("dgemm:500:3", env=wait, quiet=True)) == {"gpu0": 3}


@pytest.mark.parametrize("devices, expected", [("all", {"gpu0": 9, "gpu1": 4}), ("1,0", {"gpu1": 9, "gpu0": 4}),
                                               ("1", {"gpu1": 13}), ("auto", {"gpu0": 13})])
def test_threads_take_turns_and_keep_theirs(devices, expected, wait):
    assert places(run("dgemm:500:1", "threads:3:500:4", env={**wait, "ACCEL_DEVICES": devices},
                      quiet=devices != "all")) == expected


@pytest.mark.parametrize("modes, one, why", [("default,prohibited", "gpu0", "gpu1: its compute mode is prohibited"),
                                             ("failing,default", "gpu1", "gpu0: cuDevicePrimaryCtxRetain")])
def test_the_other_serves_and_a_message_says_why(modes, one, why, wait):
    done = run("dgemm:500:1", "threads:2:500:2", env={**wait, "TESTGPU_MODES": modes})
    assert places(done) == {one: 5}
    assert why in said(done)[0]


def test_threads_of_one_that_does_not_start_use_the_first(wait):
    """The second device is tried when a thread has calls for it."""
    done = run("dgemm:500:1", "threads:2:500:2", env={**wait, "TESTGPU_MODES": "default,failing"})
    assert places(done) == {"gpu0": 5}
    assert len(said(done)) == 1
    assert "no further GPU is used: gpu1: cuDevicePrimaryCtxRetain" in done.stderr


# ---- By time ----


def test_calls_that_would_wait_start_the_second_and_go_to_the_one_that_is_free(env):
    done = run("solve:500:2", "solvers:3:500:12", env=env, quiet=True)
    count = places(done)
    assert count["gpu0"]
    assert count["gpu1"]
    assert set(count) <= {"gpu0", "gpu1", "cpu"}
    assert not [line for line in lines_for(done, ran="cpu") if line["why"] != "warming"]


def test_one_thread_stays_with_the_first(env):
    assert set(places(run("solve:500:12", env=env))) <= {"gpu0", "cpu"}


@pytest.mark.parametrize("device", [0, 1])
def test_operands_in_memory_of_a_device_are_used_there(device):
    done = start("cuda_program", *LACKING, "-n", 20, "-c", 1, "-r", "d@(gemm|trsm|syrk|gemv)", device,
                 env={**TEST_GPU, **LOG, "TESTGPU_DEVICES": "2", "ACCEL_DEVICES": "all", "ACCEL_POLICY": "auto"})
    assert done.returncode == 0, done.stderr[-800:]
    assert {line["ran"] for line in lines_for(done, why="device_data")} == {f"gpu{device}"}
    assert not said(done)


# ---- Failures ----


@pytest.mark.parametrize("number", [4, 9, 15])
@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync", "cuEventSynchronize", "cublasDgemm"])
def test_all_results_are_right_if_a_function_fails_once(function, number, wait):
    done = run("dgemm:500:1", "threads:4:500:6", env={**wait, "TESTGPU_FAIL": f"{function}:{number}"})
    lines, left = lines_for(done), [line for line in said(done) if "left alone" in line]
    assert len(lines) == 25
    assert len(left) <= 1
    if left and "left alone from here on" in left[0]:  # calls go on on the other, as is said
        other = "gpu1" if "accel: gpu0 is left" in left[0] else "gpu0"
        assert {line["ran"] for line in lines[-4:]} == {other}
        assert f", {other} goes on: " in left[0] or ", another one is tried: " in left[0]


def test_both_fail_the_cpu_computes_as_is_said(wait):
    done = run("dgemm:500:1", "threads:4:500:6", env={**wait, "TESTGPU_FAIL": "cuEventSynchronize:9+"})
    assert {line["ran"] for line in lines_for(done)[-4:]} == {"cpu"}
    assert 1 <= len(said(done)) <= 2
    assert "the CPU computes" in said(done)[-1]


def test_a_routine_that_fails_on_one_device_is_left_to_the_other_then_to_the_cpu_as_is_said(wait):
    done = run("dgemm:500:2", "threads:2:500:6", env={**wait, "TESTGPU_FAIL": "cublasDgemm_v2_64:5+"})
    first, second = [line for line in said(done) if "is left to" in line]
    assert "dgemm is left to gpu" in first
    assert "dgemm is left to the CPU" in second


# ---- Ranks, and what is learned ----


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_of_two_has_two_of_four(rank, wait):
    ranks = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
             "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    done = run("dgemm:500:1", "threads:2:500:2", env={**wait, **ranks, "TESTGPU_DEVICES": "4"})
    assert set(places(done)) == {f"gpu{2 * rank}", f"gpu{2 * rank + 1}"}


def test_two_devices_of_one_name_have_one_section(env, folder, tmp_path):
    calibrate(tmp_path / "model", keys(folder), 100000, 250)
    run("solve:500:2", "solvers:2:500:8", env={**env, "ACCEL_LEARN": "1", "ACCEL_MODEL": str(tmp_path / "model")})
    assert (tmp_path / "model").read_text().count("[gpu ") == 1
