#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Wrong estimates, busy and full and failing devices, many callers: the program is no slower for them."""

import os
import re
import signal
import stat
import struct
import time
from pathlib import Path

import pytest

from lib.busy import await_call, background, two_threads
from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes, parse_log, said
from lib.programs import LOG, right, start

# The first call starts CUDA, and would not gain as much as one that waits for that.
READY, SMALL_READY = ["dgemm:600:1", "started"], ["dgemm:130:1", "started"]
GPU, SLOWER = ("gpu0", "faster"), ("cpu", "slower")
SLOW = {"TESTGPU_GFLOPS": "1", "TESTGPU_UP_GBPS": "0.5"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("load")
    (folder / "runtime").mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="module")
def env(folder):
    return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder / "runtime")}


@pytest.fixture(scope="module")
def calibrated(folder, env):
    """The environment in which calls of order 500 take so long on the CPU, and on the GPU."""

    def calibrated(cpu_ms, gpu_ms, **own):
        path = folder / f"{cpu_ms}-{gpu_ms}-{len(own)}"
        calibrate(path, keys(folder, own), cpu_ms, gpu_ms)
        return {**env, **own, "ACCEL_MODEL": str(path)}

    return calibrated


def run(*steps, env):
    done = start("steps", *steps, env=env)
    assert right(done), done.stderr[-1500:]
    return done


# ---- A wrong estimate ----


def test_built_in_figures_a_slow_gpu_after_a_few_runs_on_the_cpu(env):
    done = run("dgemm:500:100", "started", "dgemm:500:40", env={**env, **SLOW})
    seen = outcomes(lines_for(done))
    assert 1 <= seen.count(GPU) <= 5
    assert set(seen[-30:]) == {SLOWER}
    assert len(re.findall(r"^accel .*sym=dgemm_ event=pinned ms=.* est_cpu_ms=", done.stderr, re.M)) == 1


def test_calibrated_a_slow_gpu_each_place_is_judged_for_itself(calibrated):
    done = run("dgemm:600:3", *READY, "dgemm:500:12", "other:500:12", "dgemm:250:20", "dgemm:500:4",
               env={**calibrated(20, 1), **SLOW})
    seen = outcomes(lines_for(done)[4:])
    for place in (seen[:12], seen[12:24]):
        count = place.count(GPU)
        assert 1 <= count <= 5
        assert place == count * [GPU] + (12 - count) * [SLOWER]
    # Another shape too, and the judgement stays.
    assert seen[24] == GPU
    assert set(seen[44:]) == {SLOWER}
    assert done.stderr.count("event=pinned") >= 2


def test_with_start_wait_decisions_do_not_depend_on_times(calibrated):
    done = start("steps", "dgemm:500:8", env={**calibrated(20, 1), **SLOW, "ACCEL_START": "wait"})
    assert outcomes(lines_for(done)) == 2 * [SLOWER] + 6 * [GPU]


def test_slower_than_its_estimate_but_than_the_cpus_too_it_stays(calibrated):
    done = start("steps", *READY, "dgemm:500:12", env={**calibrated(100000, 1), **SLOW})
    assert set(outcomes(lines_for(done)[1:])) == {GPU}


# ---- A device that is busy: a call of order 600 takes it 6 s ----


@pytest.fixture(scope="module")
def shared(calibrated):
    return {**calibrated(6500 / 1.2, 6000 / 1.2), "TESTGPU_GFLOPS": "0.072"}


def test_while_one_thread_uses_the_gpu_the_other_ones_call_goes_to_the_cpu(shared):
    """As the estimates say."""
    done = two_threads(SMALL_READY, shared)
    assert right(done)
    assert sorted(outcomes(lines_for(done)[1:])) == [("cpu", "busy"), GPU]
    busy = lines_for(done, why="busy")[0]
    assert float(busy["est_gpu_ms"]) > float(busy["est_cpu_ms"]) > 6000


def two(folder, env_a, env_b, kill=False):
    """Where the calls of two processes went, of which the second one's last call comes while the first one's is on the
    device."""
    ready, go = folder / "ready", folder / "go"
    a = background([*SMALL_READY, f"await:{ready}", "dgemm:600:1"], env_a)
    b = background([*SMALL_READY, f"write:{ready}", f"await:{go}", "dgemm:600:1"], env_b)
    await_call(a, env_a["XDG_RUNTIME_DIR"])
    if kill:
        a.send_signal(signal.SIGKILL)
        a.wait()
    go.touch()
    (_, err_a), (_, err_b) = a.communicate(timeout=300), b.communicate(timeout=300)
    assert b.returncode == 0
    return outcomes(parse_log(err_a))[1:], outcomes(parse_log(err_b))[-1]


def test_two_processes_see_each_other(shared, tmp_path):
    assert two(tmp_path, shared, shared) == ([GPU], ("cpu", "busy"))


def test_two_processes_with_folders_of_their_own_do_not(shared, tmp_path):
    apart = [tmp_path / "a", tmp_path / "b"]
    for path in apart:
        path.mkdir(mode=0o700)
    assert two(tmp_path, *({**shared, "XDG_RUNTIME_DIR": str(path)} for path in apart)) == ([GPU], GPU)


def test_a_killed_process_does_not_leave_the_device_busy(shared, tmp_path):
    assert two(tmp_path, shared, shared, kill=True) == ([], GPU)


# ---- The page by which processes see each other ----


@pytest.fixture(scope="module")
def page(calibrated, folder):
    """The one page of the one device; the other file has the seats of all (tests/gpu/test_seats.c)."""
    run(*READY, "dgemm:600:1", env=calibrated(100000, 1))
    (page,) = (path for path in (folder / "runtime").iterdir() if not path.name.endswith("-seats"))
    return page


def test_one_page_for_each_device_for_this_user_alone(page):
    assert re.fullmatch(r"accel-\d+-[0-9a-f]{32}", page.name)
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def swap(path, make):
    path.unlink()
    make(path)


def link(path):
    path.rename(f"{path}-")
    path.symlink_to(f"{path}-")


def take_away(path):
    path.unlink()
    path.parent.chmod(0o500 if os.geteuid() else 0o700)


# What is done to a page by which another process uses the device for a long while, and why the
# call runs where it does; None: either may be.
CHANGES = {
    "ours": (lambda path: None, "busy"),
    "others may read it": (lambda path: path.chmod(0o644), "faster"),
    "others may write to it": (lambda path: path.chmod(0o622), "faster"),
    "a symbolic link": (link, "faster"),
    "longer": (lambda path: os.truncate(path, 2 * path.stat().st_size), "faster"),
    "shorter": (lambda path: os.truncate(path, path.stat().st_size // 2), "faster"),
    "a folder": (lambda path: swap(path, Path.mkdir), "faster"),
    "a FIFO": (lambda path: swap(path, lambda path: os.mkfifo(path, 0o600)), "faster"),
    "nowhere": (take_away, "faster"),
    "of a dead process": (lambda path: path.write_bytes(struct.pack("<i4xq", 2**30,
                                                                    2**60) + bytes(path.stat().st_size - 16)),
                          "faster"),
    "random": (lambda path: path.write_bytes(os.urandom(path.stat().st_size)), None),
    **({"somebody else's": (lambda path: os.chown(path, 65534, 65534), "faster")} if os.geteuid() == 0 else {}),
}


@pytest.mark.parametrize("change, why", CHANGES.values(), ids=CHANGES)
def test_the_page_is(change, why, page, calibrated, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    copy = home / page.name
    entry = struct.pack("<i4xq", os.getpid(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000 + 10**9)
    copy.write_bytes(entry + bytes(page.stat().st_size - len(entry)))
    copy.chmod(0o600)
    change(copy)
    done = run(*READY, "dgemm:600:1", env={**calibrated(100000, 1), "ACCEL_LOG_FILE": "/dev/stderr",
                                           "XDG_RUNTIME_DIR": str(home)})
    home.chmod(0o700)
    assert not said(done)
    _, line = lines_for(done)
    assert why in (None, line["why"])


# ---- A device that fails, and one without memory ----


@pytest.fixture(scope="module")
def fast(calibrated):
    return calibrated(1000, 1)


def test_a_device_that_fails_is_left_alone_for_good(fast):
    done = run(*READY, "dgemm:400:6", env={**fast, "TESTGPU_FAIL": "cuStreamSynchronize:8+"})
    seen = outcomes(lines_for(done)[1:])
    failed = [why for _, why in seen].index("error")
    assert failed > 0
    assert set(seen[:failed]) == {GPU}
    assert set(seen[failed + 1:]) == {("cpu", "error")}
    (message,) = said(done)
    assert "left alone" in message


def test_without_memory_that_call_runs_on_the_cpu_and_those_as_large_for_a_while(fast):
    """About a second later it is tried again."""
    fails = ",".join(f"cuMemAlloc:{n}" for n in range(7, 27))
    done = run(*READY, "dgemm:300:2", "dgemm:130:1", "dgemm:300:1", "sleep:1300", "dgemm:300:2",
               env={**fast, "TESTGPU_FAIL": fails})
    seen = outcomes(lines_for(done)[1:])
    assert seen[:2] == 2 * [("cpu", "no_memory")]
    assert seen[3] == ("cpu", "no_memory")
    assert seen[4:] == 2 * [GPU]
    assert not said(done)


def test_a_small_device_blas_goes_through_in_blocks_a_solution_by_lapack_in_panels(fast):
    lines = lines_for(run(*READY, "dgemm:1100:1", "solve:1700:1", env={**fast, "TESTGPU_MEMORY": "24M"}))
    assert outcomes(lines)[1:] == 2 * [GPU]
    assert float(lines[-1]["up_mb"]) > 24


# ---- Many callers ----


@pytest.mark.parametrize("kind", ["team", "threads"])
def test_each_calls_estimate_counts_the_callers(kind, calibrated):
    """Four for each core."""
    cores = len(os.sched_getaffinity(0))
    env = {**calibrated(100, 1, OPENBLAS_NUM_THREADS="1"), "ACCEL_POLICY": "cpu"}
    estimates = [float(f["est_cpu_ms"]) for f in lines_for(run("dgemm:500:1", f"{kind}:{4 * cores}:500:12", env=env))]
    assert estimates[0] == 100
    assert max(estimates) >= 200
    assert {round(estimate * cores / 100, 2) for estimate in estimates[1:]} <= {float(n)
                                                                                for n in range(cores, 4 * cores + 1)}


@pytest.mark.parametrize("name", ["learning", "calibrated"])
def test_all_at_once_8_threads_on_both_sides(name, env, fast, tmp_path):
    extra = {"ACCEL_LEARN": "1", "ACCEL_MODEL": str(tmp_path / "learned")} if name == "learning" else fast
    done = start("random_calls", "-f", "y", "-c", 4, "-n", 160, "-r", "[dz]@(gemm|symm|syrk|trsm)", 8,
                 env={**env, "TESTGPU_GFLOPS": "100", "TESTGPU_UP_GBPS": "5", "TESTGPU_START_MS": "100",
                      "TESTGPU_BUSY": "20", **extra})
    assert done.returncode == 0, done.stdout
    assert " 0 wrong" in done.stdout
    assert not said(done)
    where = {f["ran"] for f in lines_for(done)}
    assert "cpu" in where
    assert name == "learning" or "gpu0" in where
