#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""CUDA starts beside the program: its calls, its end, its signals and its forks do not wait for it."""

import signal
import time
from collections import Counter

import pytest

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes, said
from lib.programs import LOG, LONG, REFERENCE, RUNTIME, TESTS, UNDER_TSAN, right, start

QUICK = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0"}
WARMING, GPU, SLOWER = ("cpu", "warming"), ("gpu0", "faster"), ("cpu", "slower")
forks = pytest.mark.skipif(bool(RUNTIME),
                           reason="a child that is forked beside other threads finds AddressSanitizer's allocator "
                                  "locked, and ThreadSanitizer lost")


def reasons(done, pid=None):
    """(ran, why) of the calls of a run."""
    return outcomes(f for f in lines_for(done) if pid in (None, f["pid"]))


def runs(values):
    """What comes again and again, once."""
    return [v for i, v in enumerate(values) if i == 0 or values[i - 1] != v]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def calibrated(folder):
    """The environment in which calls of order 500 take so long on the CPU and 1 ms on the GPU, with settings of its
    own."""

    def calibrated(cpu_ms, **own):
        path = folder / f"{cpu_ms}-{'-'.join(own)}-{len(str(own))}"
        calibrate(path, keys(folder, own), cpu_ms, 1)
        return {**QUICK, **own, "ACCEL_MODEL": str(path)}

    return calibrated


@pytest.fixture(scope="module")
def env(calibrated):
    """By this calibration the GPU always pays; and one call is enough to start it."""
    return calibrated(1000)


def run(*steps, env, status=0):
    done = start("steps", *steps, env=env)
    assert done.returncode == status, done.stderr[-600:]
    assert " 0 wrong" in done.stdout
    assert not [line for line in done.stdout.splitlines() if " 0 wrong" not in line]
    return done


# ---- In the background ----

# CUDA starts for as long as some calls take, however long that is: until a file is there.


def test_calls_run_on_the_cpu_while_cuda_starts_then_on_the_gpu(env, tmp_path):
    """They do not wait: all are done meanwhile."""
    go = tmp_path / "go"
    done = run("dgemm:300:12", "opened", f"write:{go}", "started", "dgemm:300:5",
               env={**env, "TESTGPU_START_FILE": str(go)})
    assert runs(reasons(done)) == [WARMING, GPU]
    assert reasons(done).count(WARMING) == 12


def test_the_same_with_built_in_figures(tmp_path):
    """By these, each of these calls would gain some milliseconds, so that they start CUDA together."""
    go = tmp_path / "go"
    done = run("dgemm:1000:12", "opened", f"write:{go}", "started", "dgemm:1000:3",
               env={**QUICK, "XDG_CACHE_HOME": str(tmp_path), "TESTGPU_START_FILE": str(go)})
    assert reasons(done).count(WARMING) >= 12
    assert GPU in reasons(done)
    assert not said(done)


def test_four_threads(env):
    # ThreadSanitizer makes calls many times as long.
    done = run(f"threads:4:300:{60 if UNDER_TSAN else 400}", "started", "threads:4:300:3",
               env={**env, "TESTGPU_START_MS": "300"})
    assert {why for _, why in reasons(done)} == {"warming", "faster"}


# A call that would gain seconds waits for a third of them: 20 s, and 1.2 s.


@pytest.fixture(scope="module")
def large(calibrated):
    return calibrated(100000)


@pytest.mark.parametrize("steps", [pytest.param(["dgemm:300:3", "solve:300:1"], id="one thread"),
                                   pytest.param(["threads:4:300:3"], id="four threads")])
def test_a_large_call_waits_for_cuda(steps, large):
    assert set(reasons(run(*steps, env={**large, "TESTGPU_START_MS": "700"}))) == {GPU}


def test_a_large_call_does_not_wait_if_cuda_cannot_start(large):
    assert set(reasons(run("dgemm:300:3", env={**large, "TESTGPU_FAIL": "cuInit:1"}))) == {("cpu", "no_gpu")}


def test_one_waits_in_vain_for_a_start_that_takes_long_and_those_after_it_do_not_wait(calibrated):
    done = run("dgemm:300:10", "end:_exit", env={**calibrated(6000), "TESTGPU_START_MS": "8000"}, status=7)
    assert reasons(done) == 10 * [WARMING]


@pytest.mark.skipif(not LONG, reason="with TEST_LONG=1")
def test_a_thread_gives_up_waiting_for_another_ones_start_though_the_clock_is_put_back(env):
    """A thread that must have the GPU waits 30 s for one that starts CUDA already."""
    put_back = {**env, "ACCEL_POLICY": "gpu", "LD_PRELOAD": f"{TESTS / 'libset_back.so'}:{env['LD_PRELOAD']}"}
    assert sorted(reasons(run("threads:2:300:1", env={**put_back, "TESTGPU_START_MS": "45000"}))) == [WARMING,
                                                                                                      ("gpu0",
                                                                                                       "forced")]


@pytest.mark.skipif(UNDER_TSAN, reason="ThreadSanitizer's frames do not fit into a main thread's 64 KB")
def test_with_stacks_of_64_kb(env, tmp_path):
    """Threads of ours have stacks that are large enough, whatever those of the program's threads are. (OpenBLAS's
    threads overflow such ones by themselves.)"""
    go = tmp_path / "go"
    steps = f"{TESTS}/steps dgemm:300:4 opened write:{go} started dgemm:300:3"
    done = start("/bin/bash", "-c", f"ulimit -s 64 && exec {steps}",
                 env={**env, **REFERENCE, "TESTGPU_START_FILE": str(go)})
    assert right(done), done.stderr[-300:]
    assert reasons(done)[-1] == GPU


# ---- Whether CUDA is opened ----


@pytest.fixture
def quiet(tmp_path):
    return {**AUTO, **LOG, "TESTGPU_REPORT": str(tmp_path / "report"), "XDG_CACHE_HOME": str(tmp_path)}


def test_a_program_that_would_gain_too_little_does_not_open_cuda(quiet, tmp_path):
    """Although its call would pay: one, since those after it are estimated by how long it took."""
    done = start("steps", "dgemm:200:1", "maps", env=quiet)
    assert done.returncode == 0
    assert "libcuda is not there" in done.stdout
    assert not (tmp_path / "report").exists()
    assert set(reasons(done)) == {WARMING}


def test_nor_does_one_with_start_wait(quiet):
    done = start("steps", "dgemm:200:3", "maps", env={**quiet, "ACCEL_START": "wait"})
    assert "libcuda is not there" in done.stdout
    assert set(reasons(done)) == {SLOWER}


def test_where_one_of_its_calls_gains_as_much_as_the_start_wants_it_does(quiet, tmp_path):
    done = start("steps", "dgemm:1500:1", "dgemm:200:3", "maps", env={**quiet, "ACCEL_START": "wait"})
    assert "libcuda is there" in done.stdout
    assert (tmp_path / "report").exists()
    assert set(reasons(done)) == {GPU}


# ---- ACCEL_START=wait ----


def test_start_wait_the_same_decisions_and_estimates_each_time(tmp_path):
    """Three times, on a device of three speeds. The first call that pays runs on the GPU."""
    steps = ["dgemm:40:2", "dgemm:300:3", "dgemm:1500:1", "dgemm:300:3", "other:700:2", "solve:300:2",
             "threads:2:150:3", "dgemm:200:1"]
    sequences = []
    for busy in ("0", "80", "30"):
        done = run(*steps, env={**AUTO, **LOG, "ACCEL_START": "wait", "TESTGPU_START_MS": "300", "TESTGPU_BUSY": busy,
                                "TESTGPU_GFLOPS": "20", "XDG_CACHE_HOME": str(tmp_path)})
        assert GPU in reasons(done)
        assert not said(done)
        lines = lines_for(done)
        threads = dict.fromkeys(f["tid"] for f in lines)
        sequences.append([[tuple(f.get(k) for k in "sym m n k nrhs ran why est_cpu_ms est_gpu_ms".split())
                           for f in lines if f["tid"] == tid] for tid in threads])
        assert {f["why"] for f in lines if f["why"] not in ("small", "slower")} == {"faster"}
    assert sequences[0] == sequences[1] == sequences[2]


# ---- The program ends meanwhile ----

STARTS, LOADS = {"TESTGPU_START_MS": "1500"}, {"TESTGPU_LOAD_MS": "1000"}


@pytest.mark.parametrize("how, settings", [
    *(pytest.param(how, {"TESTGPU_START_MS": "20000"}, id=f"CUDA starts, {how}") for how in ("_exit", "abort", "kill")),
    *(pytest.param(how, STARTS, id=f"CUDA starts, {how}") for how in ("return", "exit")),
    *(pytest.param(how, LOADS, id=f"a library loads, {how}") for how in ("return", "exit", "_exit")),
    pytest.param("exit", {**STARTS, "ACCEL_LOG": "1"}, id="with a log, exit")])
def test_status_and_output_are_the_programs_own_and_it_ends_at_once(how, settings, env, tmp_path):
    log = {"ACCEL_LOG_FILE": str(tmp_path / "log")} if "ACCEL_LOG" in settings else {}
    begun = time.monotonic()
    done = start("steps", "dgemm:600:2", "opened", "sleep:50", "maps", f"end:{how}",
                 env={**env, "ACCEL_LOG": "0", **settings, **log})
    took = time.monotonic() - begun
    assert done.returncode == {"abort": -signal.SIGABRT, "kill": -signal.SIGTERM}.get(how, 7)
    assert done.stdout == "dgemm 600: 2 calls, 0 wrong\nlibcuda is there\n"
    assert done.stderr == ""
    assert took < 8


@pytest.mark.parametrize("early", ["0", "1"])
def test_a_program_that_ends_at_any_moment_of_the_start(early, env):
    for i in range(12):
        done = start("steps", "dgemm:300:1", f"sleep:{15 * i}", f"end:{('return', 'exit')[i % 2]}",
                     env={**env, "ACCEL_LOG": "0", "TESTGPU_START_MS": "60", "TESTGPU_EXIT_EARLY": early,
                          "ACCEL_LEARN": "1"})
        assert (done.returncode, done.stdout, done.stderr) == (7, "dgemm 300: 1 calls, 0 wrong\n", ""), i


# ---- Signals ----


@pytest.mark.parametrize("extra", [pytest.param({}, id="background"), pytest.param({"ACCEL_START": "wait"}, id="wait")])
def test_signals_come_to_the_programs_own_threads(extra, calibrated):
    """While and after CUDA starts."""
    done = start("signals", 2500, env={**calibrated(1000, OPENBLAS_NUM_THREADS="1"), "TESTGPU_START_MS": "700",
                                       **extra})
    assert done.returncode == 0
    assert done.stdout == ("alarms came, interrupts came, elsewhere 0\nawaited came, unwanted 0, a pause is "
                           "interrupted\n"
                           "other threads seen, open 0\n")
    assert reasons(done)[-1] == GPU


# ---- fork ----


@pytest.fixture(scope="module")
def reference(calibrated):
    """OpenBLAS may not be in use on another thread when the process forks: the child finds its locks taken."""
    return calibrated(1000, LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu/blas")


@forks
@pytest.mark.parametrize("mode", ["main", "thread"])
def test_forks_at_any_moment_no_child_hangs_and_each_result_is_right(mode, calibrated, reference):
    """Children compute on the CPU; the parent goes on to the GPU."""
    blas = calibrated(1000, OPENBLAS_NUM_THREADS="2") if mode == "main" else reference
    done = start("forks_anytime", 200, 60, mode, 5000, env={**blas, "TESTGPU_START_MS": "300",
                                                            "TESTGPU_LOAD_MS": "300"})
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout == "60 children, 0 wrong\n"
    assert "fault what=forked" not in done.stderr
    pids = Counter(f["pid"] for f in lines_for(done))
    parent = pids.most_common(1)[0][0]
    children = [reasons(done, pid) for pid in pids if pid != parent]
    assert len(children) == 30
    assert {call for calls in children for call in calls} <= {("cpu", "forked"), WARMING}
    assert children.count(2 * [("cpu", "forked")]) > 10
    assert runs(reasons(done, parent)) == [WARMING, GPU]


@forks
def test_a_crowd_of_children_some_forked_while_the_log_is_opened(reference):
    """A child's descriptors are copied before its memory is: the log that another thread opens meanwhile may be in one
    of them alone. Each of their calls is in it."""
    for _ in range(30):
        done = start("forks_anytime", 100, 12, "crowd", 0, env=reference)
        assert done.returncode == 0, done.stderr
        assert sorted(Counter(f["pid"] for f in lines_for(done)).values())[:12] == 12 * [2]


@forks
def test_a_crowd_of_400_while_calls_come_as_fast_as_they_can(reference):
    """glibc 2.36's dl_iterate_phdr() hangs in a child that was forked in the middle of another thread's."""
    done = start("forks_anytime", 8, 400, "crowd", 0, env={**reference, "ACCEL_LOG": "0", "ACCEL_SUMMARY": "1"})
    assert done.returncode == 0, done.stderr[-500:]
