#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A program that ends while CUDA is being loaded, started, warmed up or used: no thread is inside CUDA's libraries when
their exit handlers run. The test GPU's libraries report whatever is there then; TEST_LONG=1 takes many more programs,
TEST_SEED chooses when they end."""

import os
import random

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for
from lib.programs import LOG, LONG, TEST_GPU, TESTS, start

SEED = os.environ.get("TEST_SEED", "1")
PROGRAMS = 400 if LONG else 20
# cuInit and the context, each of three libraries, the first call of each function: milliseconds.
PHASES = {"TESTGPU_START_MS": "70", "TESTGPU_LOAD_MS": "40", "TESTGPU_FIRST_MS": "20", "TESTGPU_DELAY_US": "500"}
HANDLERS = 100000


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    calibrate(folder / "model", keys(folder), 100000, 1)
    return {**AUTO, **PHASES, "ACCEL_MODEL": str(folder / "model")}


@pytest.mark.parametrize("steps, settings, latest_ms, count", [
    pytest.param(["dgemm:300:1"], {}, 400, PROGRAMS, id="CUDA loads and starts"),
    pytest.param(["dgemm:300:1", "solve:300:1", "sleep:150", "solve:300:1"], {}, 400, PROGRAMS // 2,
                 id="cuSOLVER is opened"),
    # One call, which is on its way all the while: after exit() has begun, the CPU computes, and
    # exit() waits for that, too.
    pytest.param(["beside:20:1"], {"ACCEL_POLICY": "gpu", "TESTGPU_LAUNCH_US": "100000"}, 500, PROGRAMS // 2,
                 id="a thread is in a call")])
def test_programs_end_at_any_moment(steps, settings, latest_ms, count, env):
    """Status and output are their own, and no library complains."""
    chance = random.Random(f"{SEED} {steps}")
    for i in range(count):
        arguments = [*steps, f"sleep:{chance.randrange(latest_ms)}", f"end:{('return', 'exit')[i % 2]}"]
        done = start("steps", *arguments, env={**env, **settings, "TESTGPU_EXIT_EARLY": str(i // 2 % 2),
                                               "TESTGPU_SEED": str(i + 1)})
        assert done.returncode == 7, (arguments, i, done.stdout, done.stderr)
        assert not done.stderr, (arguments, i)


def test_a_call_that_has_waited_for_cuda_when_exit_began(env):
    """Its library is not ended before it has computed."""
    slow = {"LD_PRELOAD": f"{env['LD_PRELOAD']}:{TESTS / 'libslow.so'}", "ACCEL_POLICY": "gpu",
            "TESTGPU_START_MS": "200"}
    done = start("steps", "beside:20:1", "sleep:60", "end:return", env={**env, **slow})
    assert done.returncode == 7
    assert done.stdout.count("computed to the end") == 1
    assert not done.stderr


def test_a_driver_that_hangs_keeps_no_program_from_its_end(env):
    """exit() gives up waiting after some seconds, and says nothing."""
    done = start("steps", "dgemm:300:1", "opened", "sleep:500", "end:return",
                 env={**env, "TESTGPU_START_MS": "1000000"})
    assert done.returncode == 7
    assert not [line for line in done.stderr.splitlines()
                if "what=exit_while_called where=- detail=\"libcuda:" not in line]


def test_handlers_of_the_program(tmp_path):
    """They run, newest first, and the C library has hardly more of them than without libaccel."""
    counts = []
    for env in ({}, TEST_GPU):
        preload = ":".join(filter(None, [env.get("LD_PRELOAD"), str(TESTS / "libregistrations.so")]))
        done = start("steps", "dgemm:64:2", f"handlers:{HANDLERS}", "end:return",
                     env={**env, "LD_PRELOAD": preload, "TEST_REGISTRATIONS": str(tmp_path / "count")})
        assert done.returncode == 7
        assert "handlers: right" in done.stdout
        assert not done.stderr
        counts.append(int((tmp_path / "count").read_text()))
    without, with_it = counts
    assert without > HANDLERS
    assert 0 < with_it - without < 30


def test_a_library_that_comes_and_goes_inside_a_call_of_cublas():
    """Its handler runs, and that is no end of the process: further calls run on the GPU."""
    done = start("steps", "dgemm:64:5", "solve:64:2", "end:return",
                 env={**TEST_GPU, **LOG, "TESTGPU_HELPER": str(TESTS / "libhandled.so")})
    assert done.returncode == 7
    ran = [line["ran"] for line in lines_for(done)]
    assert len(ran) >= 7
    assert set(ran) == {"gpu0"}
    assert "what=" not in done.stderr


@pytest.mark.parametrize("steps", [["later:64", "dgemm:64:2"], ["dgemm:64:2", "later:64"]], ids=" ".join)
def test_a_call_after_exit_has_begun_is_the_cpus_and_no_broken_promise(steps):
    done = start("steps", *steps, "end:return", env={**TEST_GPU, **LOG, "ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 7
    assert [line["ran"] for line in lines_for(done)] == ["gpu0", "gpu0", "cpu"]
    assert "later 64: 1 calls, 0 wrong" in done.stdout
    assert "ACCEL_REQUIRE" not in done.stderr
