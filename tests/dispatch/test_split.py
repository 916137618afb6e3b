#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""One call on several devices: what each of them gets, what the log, the trace and verification say of it, that it is
the same each time where it must be, and what becomes of it if a device or a thread cannot be had."""

import json
from collections import Counter, defaultdict

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import events, lines_for, outcomes, parse_json, said
from lib.programs import DEBIAN_PYTHON, LOG, RUNTIME, SHIM, TESTS, UNDER_TSAN, right, start
from lib.split import behind_slow_links, several

REFERENCE = "/usr/lib/x86_64-linux-gnu/blas"  # others cannot be interrupted like that
PLANT = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{SHIM['LD_PRELOAD']}"}
plants = pytest.mark.skipif(UNDER_TSAN,
                            reason="libplant stands before ThreadSanitizer's runtime, "
                                   "which has not started when it is called")
forks = pytest.mark.skipif(bool(RUNTIME),
                           reason="a child that is forked beside other threads finds the sanitizer's allocator locked")


def places(done):
    return Counter(line["ran"] for line in lines_for(done))


def run(*steps, env, quiet=False):
    """A run whose results are right, and which says nothing where that is asked for."""
    done = start("steps", *steps, env=env)
    assert right(done), done.stderr[-1500:]
    assert not quiet or not said(done)
    return done


def moves_of(trace):
    """(device's row, operand) -> megabytes up; the same down; and the calls."""
    found = json.loads(trace.read_text())
    found = found["traceEvents"] if isinstance(found, dict) else found
    rows = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    moved = {"up": defaultdict(float), "down": defaultdict(float)}
    for e in found:
        if e["ph"] == "X" and e.get("cat") in moved:
            moved[e["cat"]][rows[e["tid"]], e["name"]] += e["args"]["mb"]
    return moved["up"], moved["down"], [e for e in found if e.get("cat") == "call"]


# ---- What the log says ----


def test_two_devices_have_one_line_for_each_call():
    done = run("dgemm:256:3", env=several(2), quiet=True)
    lines, whole = lines_for(done), 256 * 256 * 8
    assert places(done) == {"gpu0+gpu1": 3}
    # Each byte of a factor goes to each device that needs it, once, those of the result come down
    # once.
    assert {(line["up_mb"], line["down_mb"]) for line in lines} == {(f"{3 * whole * 1e-6:.4g}", f"{whole * 1e-6:.4g}")}
    assert {line["tid"] for line in lines} == {lines[0]["pid"]}  # the calling thread's


def test_the_second_level_says_what_moved():
    done = run("dgemm:256:1", env=several(2, ACCEL_LOG="2"))
    moves = [(way, move) for way in ("h2d", "d2h") for move in events(done.stderr, way)]
    half = 128 * 256
    assert Counter((way, move["operand"], int(move["rows"]) * int(move["cols"])) for way, move in moves) == {
        ("h2d", "a", 2 * half): 2, ("h2d", "b", half): 2, ("d2h", "c", half): 2}
    assert {move["tid"] for _, move in moves} == {lines_for(done)[0]["pid"]}


def test_three_devices_as_json():
    done = run("dgemm:300:2", env=several(3, ACCEL_LOG="json"))
    assert {line["ran"] for line in parse_json(done.stderr) if "sym" in line} == {"gpu0+gpu1+gpu2"}


def test_sixteen_devices_have_their_names_in_the_log_and_in_the_summary():
    done = run("dgemm:300:2", env=several(16, ACCEL_LOG="1", ACCEL_SUMMARY="1"))
    sixteen = "+".join(f"gpu{i}" for i in range(16))
    assert places(done) == {sixteen: 2}
    assert sixteen in done.stderr.split("ran=")[-1]


@pytest.mark.parametrize("devices, expected", [("2,0", "gpu0+gpu2"), ("1", "gpu1"), ("auto", "gpu0")])
def test_devices(devices, expected):
    assert places(run("dgemm:300:2", env=several(3, ACCEL_DEVICES=devices))) == {expected: 2}


# ---- Bytes for each device, by the trace ----


def test_each_device_has_its_own_rows_in_the_trace(tmp_path):
    run("dgemm:300:2", env=several(3, ACCEL_TRACE=str(tmp_path / "trace")))
    up, down, calls = moves_of(tmp_path / "trace")
    assert {place: round(mb, 4) for place, mb in up.items()} == {(f"gpu{i}: up", x): round(2 * mb, 4) for i in range(3)
                                                                 for x, mb in (("a", 0.72), ("b", 0.24))}
    assert {place: round(mb, 4) for place, mb in down.items()} == {(f"gpu{i}: down", "c"): 0.48 for i in range(3)}
    assert [e["args"]["ran"] for e in calls] == ["gpu0+gpu1+gpu2"] * 2


# So many groups of lines there are; a part has two of them.
@pytest.mark.parametrize("devices, groups", [(3, 3), (6, 4), (8, 4)])
def test_a_triangles_grid(devices, groups, tmp_path):
    """Each device gets the lines of the factor that its part has, once; each element comes down once."""
    n = 64 * groups
    run(f"dsyrk:{n}:2", env=behind_slow_links(devices, str(tmp_path), ACCEL_TRACE=str(tmp_path / "trace")))
    up, down, _ = moves_of(tmp_path / "trace")
    assert len(up) == devices
    assert {name for _, name in up} == {"a"}
    assert not [mb for mb in up.values() if abs(mb - 2 * 2 * 64 * n * 8e-6) >= 1e-3 * mb]
    assert sum(down.values()) <= 2 * n * n * 8e-6 * 1.001


# ---- Verification ----


def test_verification_judges_the_whole():
    lines = lines_for(run("dgemm:300:2", env=several(2, ACCEL_VERIFY="all")))
    assert [line["ran"] for line in lines] == ["gpu0+gpu1"] * 2
    assert all(float(line["verify"]) < 1 for line in lines)


@pytest.mark.parametrize("kernel", [1, 2])
def test_after_a_wrong_element_of_a_kernel_the_cpu_computes_then_and_later(kernel):
    done = run("dgemm:300:3", env=several(2, ACCEL_VERIFY="all", ACCEL_VERIFY_ACTION="cpu",
                                          TESTGPU_WRONG=f"gemm:{kernel}"))
    assert outcomes(lines_for(done)) == [("cpu", "verify_failed")] * 3


# ---- The same each time ----


def ranks(rank, size, local_size=None):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size or size)}


def splits(**env):
    env = several(3, **env)
    if "OMPI_COMM_WORLD_RANK" in env:
        del env["ACCEL_START"]
    return Counter((line["m"], line["ran"], line["up_mb"]) for line in lines_for(run("dgemm:300:2", "threads:3:250:3",
                                                                                     "dgemm:64:2", env=env)))


@pytest.fixture(scope="module")
def one_rank():
    return splits()


def test_each_size_has_one_split(one_rank):
    assert len(one_rank) == 3


@pytest.mark.parametrize("env", [pytest.param({}, id="again"),
                                 pytest.param({"TESTGPU_DELAY_US": "1000"}, id="slow kernels"),
                                 pytest.param(ranks(0, 2, 1), id="MPI")])
def test_calls_of_one_size_have_one_split_whatever_other_threads_do(env, one_rank):
    assert splits(**env) == one_rank


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_of_two_keeps_to_its_two_of_four(rank):
    assert places(run("dgemm:300:2", env=several(4, **ranks(rank, 2)))) == {f"gpu{2 * rank}+gpu{2 * rank + 1}": 2}


# ---- When it does not pay, and what is busy ----


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """The environment in which calls of order 500 take so many milliseconds on a GPU."""
    folder = tmp_path_factory.mktemp("calibration")
    known = keys(folder)

    def env(gpu_ms, **more):
        calibrate(folder / "model", known, 100000, gpu_ms)
        return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": "2", "XDG_CACHE_HOME": str(folder),
                "XDG_RUNTIME_DIR": str(folder),
                "ACCEL_DEVICES": "all", "ACCEL_START": "wait", "ACCEL_MODEL": str(folder / "model"), **more}

    return env


def test_a_short_call_runs_on_one_and_the_other_is_not_even_started(calibrated):
    done = run("dgemm:500:3", env=calibrated(0.2))
    assert places(done) == {"gpu0": 3}
    assert "index=1" not in done.stderr


def test_a_long_one_runs_on_both_which_the_estimate_tells(calibrated):
    lines = lines_for(run("dgemm:500:3", env=calibrated(250)))
    assert outcomes(lines) == [("gpu0+gpu1", "faster")] * 3
    assert all(100 < float(line["est_gpu_ms"]) < 200 for line in lines)


def test_started_in_the_background_the_second_one_joins(calibrated):
    env = {name: value for name, value in calibrated(250).items() if name != "ACCEL_START"}
    done = run("dgemm:500:1", "started", "dgemm:500:3", "sleep:500", "dgemm:500:3", env=env)
    assert lines_for(done)[-1]["ran"] == "gpu0+gpu1"


def test_lapack_runs_on_one(calibrated):
    assert places(run("solve:500:3", env=calibrated(250))) == {"gpu0": 3}


# ---- Devices and threads that cannot be had ----


@pytest.mark.parametrize("modes, expected", [("default,prohibited,default", "gpu0+gpu2"),
                                             ("default,failing,failing", "gpu0"),
                                             ("failing,default,default", "gpu1+gpu2")])
def test_the_others_share_it(modes, expected):
    assert places(run("dgemm:300:3", env=several(3, TESTGPU_MODES=modes))) == {expected: 3}


def test_little_memory_on_one():
    count = places(run("dgemm:300:3", env=several(3, TESTGPU_MEMORY="1G,4M,1G")))
    assert count.total() == 3
    assert set(count) <= {"gpu0+gpu1+gpu2", "gpu0+gpu2"}


@plants
@pytest.mark.parametrize("fault", [pytest.param("pthread_create:1+",
                                                id="no thread can be started: the calling one computes all parts"),
                                   pytest.param("pthread_create:2", id="one thread cannot be started")])
def test_threads_that_cannot_be_had(fault):
    assert places(run("dgemm:300:3", env=several(3, **PLANT, PLANT=fault), quiet=True)) == {"gpu0+gpu1+gpu2": 3}


# ---- A factorisation that is too large for one ----

SMALL = {"ACCEL_MEMORY": "600K"}  # a matrix of order 500 has 2 MB


@pytest.mark.parametrize("devices", [2, 3])
def test_lu_of_a_matrix_above_the_memory_of_one_is_the_same_each_time(devices):
    lines = lines_for(run("solve:500:3", env=several(devices, **SMALL), quiet=True))
    assert {line["ran"] for line in lines} == {"+".join(f"gpu{i}" for i in range(devices))}
    assert len({(line["up_mb"], line["down_mb"]) for line in lines}) == 1
    # The factors and the pivots (int64) come down once; so does the solution.
    assert round(float(lines[0]["down_mb"]) * 1e6, -3) == round(500 * 500 * 8 + 500 * 8 + 500 * 8, -3)


@plants
def test_no_thread_can_be_started_the_first_device_does_it_alone():
    assert places(run("solve:500:3", env=several(3, **SMALL, **PLANT, PLANT="pthread_create:1+"),
                      quiet=True)) == {"gpu0": 3}


@plants
def test_what_went_up_before_and_then_counts_once():
    done = run("solve:500:1", env=several(3, **SMALL, **PLANT, PLANT="pthread_create:1+", ACCEL_LOG="2"))
    moved, (line,) = sum(float(move["mb"]) for move in events(done.stderr, "h2d")), lines_for(done)
    assert abs(float(line["up_mb"]) - moved) < 1e-3 * moved


def test_four_threads_with_one_each_one_at_a_time_is_shared():
    count = places(run("solve:500:1", "solvers:4:500:8", env=several(2, **SMALL)))
    assert set(count) <= {"gpu0+gpu1", "gpu0", "gpu1", "cpu"}
    assert count["gpu0+gpu1"] > 4


def test_one_that_fits_stays_on_one():
    assert "+" not in "".join(places(run("solve:200:3", env=several(2, **SMALL))))


# ---- Forks and cancellation meanwhile ----


@forks
@pytest.mark.parametrize("mode", ["main", "thread"])
def test_forks_while_two_devices_run_calls(mode):
    done = start("forks_anytime", 60, 30, mode, 0, env=several(2, LD_LIBRARY_PATH=REFERENCE))
    assert done.returncode == 0
    assert done.stdout == "30 children, 0 wrong\n"
    lines = lines_for(done)
    parent = Counter(line["pid"] for line in lines).most_common(1)[0][0]
    there = outcomes(line for line in lines if line["pid"] == parent)
    assert set(there) == {("gpu0+gpu1", "forced")}
    assert mode == "thread" or len(there) == 30
    assert outcomes(line for line in lines if line["pid"] != parent) == [("cpu", "forked")] * 30


@forks
def test_a_fork_when_one_of_two_devices_has_been_started():
    """The other one has not: CUDA's driver is one for both."""
    program = ("import os, numpy as n; c = n.linalg.cholesky; a = n.eye(300); c(a)\n"
               "if os.fork() == 0:\n  c(a); c(a); os._exit(0)\nos.wait()")
    done = start(DEBIAN_PYTHON, "-c", program, env={**several(2, ACCEL_POLICY="gpu"), "OPENBLAS_NUM_THREADS": "1"})
    assert outcomes(lines_for(done, sym="dpotrf_")) == [("gpu0", "forced")] + [("cpu", "forked")] * 2


@pytest.mark.parametrize("how", ["deferred"] if UNDER_TSAN else ["deferred", "async"])
def test_threads_that_are_cancelled(how):
    done = start("interrupts", how, 40, env=several(2, LD_LIBRARY_PATH=REFERENCE), timeout=120)
    assert done.returncode == 0
    assert " 0 wrong" in done.stdout
    assert any("+" in line["ran"] for line in lines_for(done))
