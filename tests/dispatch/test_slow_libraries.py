#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""CPU libraries that are slower than a tuned one: by what a library says of itself, at once, and by a program's first
calls. No time of a clock decides."""

import pytest

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import events, lines_for, outcomes
from lib.programs import LOG, REFERENCE, SHIM, TESTS, start

SYSTEM = "/usr/lib/x86_64-linux-gnu"
ONE, WAIT = {"OPENBLAS_NUM_THREADS": "1"}, {"ACCEL_START": "wait"}
CORE2 = {**ONE, "OPENBLAS_CORETYPE": "Core2"}
# It takes 30 times as much of a CPU's time as nominal rates say, and says nothing of itself.
SLOW = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS}/libslow_blas.so"}
SILENT = {**SLOW, "SLOW_TIMES": "1"}
NEVER = {"TESTGPU_START_MS": "100000"}  # the GPU does not start meanwhile
CPU, GPU = ("cpu", "slower"), ("gpu0", "faster")


def estimates(done, sym="dgemm_"):
    return [float(f["est_cpu_ms"]) for f in lines_for(done, sym=sym)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("calibration")


@pytest.fixture(scope="module")
def env(folder):
    """A GPU on which products of order 500 take 25 ms: slower than a tuned CPU library with its 10 ms."""
    put(folder / "model", {keys(folder)["gpu"]: gpu_lines(25)})
    return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_MODEL": str(folder / "model")}


def run(*steps, env):
    done = start("steps", *steps, env=env)
    assert done.returncode == 0, done.stderr
    return done


# ---- What a library says ----


@pytest.mark.parametrize("step, own, expected", [
    pytest.param("dgemm:300:1", REFERENCE, "reference", id="the reference library"),
    pytest.param("dgemm:300:1", CORE2, "Core2", id="OpenBLAS's kernels for Core2"),
    pytest.param("dgemm:300:1", {"OPENBLAS_CORETYPE": "Nehalem"}, "Nehalem", id="OpenBLAS's for Nehalem"),
    pytest.param("solve:300:1", REFERENCE, "reference", id="LAPACK of the reference library"),
    pytest.param("solve:300:1", {**CORE2, "LD_LIBRARY_PATH": f"{SYSTEM}/lapack"}, "Core2",
                 id="LAPACK of the reference library that calls OpenBLAS"),
    pytest.param("dgemm:300:1", {"LD_LIBRARY_PATH": f"{SYSTEM}/blis-pthread", "BLIS_NUM_THREADS": "1"}, None,
                 id="BLIS"),
    pytest.param("dgemm:300:1", SILENT, None, id="a library that says nothing")])
def test_its_kernels(step, own, expected, env):
    assert events(run(step, env={**env, **WAIT, **own}).stderr, "start")[0].get("cpu_kernels") == expected


# ---- Decided at once, the same way each time ----


@pytest.mark.parametrize("own, ms, where", [pytest.param(REFERENCE, 217, GPU, id="the reference library"),
                                            pytest.param(CORE2, 54.6, GPU, id="kernels for Core2"),
                                            pytest.param(SILENT, 18.1, CPU, id="a library that says nothing")])
def test_by_nominal_rates_for_it(own, ms, where, env):
    done = run("dgemm:600:4", env={**env, **WAIT, **own})
    assert outcomes(lines_for(done)) == 4 * [where]
    assert not [seen for seen in estimates(done) if abs(seen / ms - 1) >= 0.02]


@pytest.mark.parametrize("own", [pytest.param(REFERENCE, id="the reference library"),
                                 pytest.param(CORE2, id="kernels for Core2")])
def test_by_default_its_calls_run_on_the_gpu(own, folder, env):
    """On a GPU that is faster than such kernels are on any machine: their first calls are timed."""
    put(folder / "fast", {keys(folder)["gpu"]: gpu_lines(2)})
    done = run("dgemm:600:2", "started", "dgemm:600:2", env={**env, **own, "ACCEL_MODEL": str(folder / "fast")})
    assert outcomes(lines_for(done))[-2:] == 2 * [GPU]
    assert " 0 wrong" in done.stdout


# ---- The first calls of a library that says nothing ----

DIFFERENT = ("dgemm:480:1", "dgemm:560:1", "dgemm:640:1", "dsyrk:720:1")


def test_after_three_slow_calls_another_routines_call_of_another_size_is_judged_by_them(env):
    done = run(*DIFFERENT, env={**env, **SLOW, **NEVER})
    assert estimates(done)[0] < 10
    assert estimates(done, "dsyrk_")[0] > 15 * 14.9
    (told,) = events(done.stderr, "slow_library")
    assert told["calls"] == "3"
    assert float(told["times"]) > 20
    assert told["cpu_library"].endswith("/libslow_blas.so")


def test_first_the_cpu_some_calls_later_the_gpu(env):
    done = run("dgemm:500:4", "started", "dgemm:500:3", "dsyrk:900:1", env={**env, **SLOW})
    seen = outcomes(lines_for(done))
    assert seen[0][0] == "cpu"
    assert seen[-4:] == 4 * [GPU]
    assert " 0 wrong" in done.stdout


def test_calls_that_are_made_side_by_side_teach_too_where_the_library_has_one_thread(env):
    """Calls of several threads, as an OpenMP program makes them: none of them is ever alone."""
    assert max(estimates(run("team:3:500:3", env={**env, **SLOW, **NEVER, "OMP_NUM_THREADS": "3"}))) > 150


def test_the_same_in_json(env):
    assert run(*DIFFERENT,
               env={**env, **SLOW, **NEVER, "ACCEL_LOG": "json"}).stderr.count('"event": "slow_library"') == 1


@pytest.mark.parametrize("own", [
    pytest.param(WAIT, id="ACCEL_START=wait"),
    pytest.param({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0",
                  "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, id="an MPI rank")])
def test_where_calls_must_not_teach_all_have_the_same_estimate(own, env):
    done = run("dgemm:480:5", env={**env, **SLOW, **own})
    assert len(set(estimates(done))) == 1
    assert not events(done.stderr, "slow_library")


# ---- A calibration comes first ----


def test_the_figures_of_a_calibration_stay_whatever_calls_take(env, folder, tmp_path):
    known = keys(folder, SLOW)
    put(tmp_path / "model", {known["blas"]: lines(10), known["gpu"]: gpu_lines(25)})
    done = run("dgemm:500:5", "dsyrk:720:1", env={**env, **SLOW, "ACCEL_MODEL": str(tmp_path / "model")})
    assert set(estimates(done)) == {10}
    assert {line["ran"] for line in lines_for(done)} == {"cpu"}
    assert not events(done.stderr, "slow_library")


def test_also_those_of_a_library_that_says_that_it_is_slow(env, folder, tmp_path):
    calibrate(tmp_path / "model", keys(folder, REFERENCE), 10, 25)
    assert set(estimates(run("dgemm:500:3", env={**env, **WAIT, **REFERENCE,
                                                 "ACCEL_MODEL": str(tmp_path / "model")}))) == {10}


def test_what_is_learned_is_kept_where_that_is_asked_for(env, tmp_path):
    """The next run of the program knows."""
    own = {**env, **SLOW, **NEVER, "ACCEL_MODEL": str(tmp_path / "learned"), "ACCEL_LEARN": "1"}
    run("dgemm:480:2", "dgemm:640:2", env=own)
    done = run("dgemm:480:1", "dsyrk:720:1", env=own)
    assert estimates(done)[0] > 40
    assert estimates(done, "dsyrk_")[0] > 60


# ---- The summary ----


def test_the_summary_says_for_which_kernels_its_figures_are(tmp_path):
    done = run("dgemm:600:1", env={**AUTO, **REFERENCE, "ACCEL_SUMMARY": "1", "XDG_CACHE_HOME": str(tmp_path)})
    line, = [line for line in done.stderr.splitlines() if "libblas.so.3." in line]
    assert line.endswith(", 1 thread; nominal figures for reference kernels")


def test_the_summary_says_that_calls_have_corrected_them(tmp_path):
    done = run("dgemm:480:4", env={**AUTO, **SLOW, **NEVER, "ACCEL_SUMMARY": "1", "XDG_CACHE_HOME": str(tmp_path)})
    assert " times as long as the nominal figures say, which are corrected by that: " in done.stderr
