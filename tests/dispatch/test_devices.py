#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Which calls must be on the GPU, which devices are used, and how the ranks of an MPI program share them."""

import itertools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lib.busy import background, two_threads
from lib.calibrated import AUTO, calibrate, keys
from lib.log import events, lines_for, outcomes, parse_log, said
from lib.programs import DEBIAN_PYTHON, LOG, TESTS, clean_env, right, start


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Has calibrations of a GPU that is fast, and of one that is slow."""
    folder = tmp_path_factory.mktemp("calibrations")
    calibrate(folder / "fast", keys(folder), 1000, 1)
    calibrate(folder / "slow", keys(folder), 1, 100000)
    return folder


@pytest.fixture(scope="module")
def env(folder):
    return {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder),
            "ACCEL_MODEL": str(folder / "fast")}


@pytest.fixture(scope="module")
def must(env):
    return {**env, "ACCEL_REQUIRE": "gpu"}


def run(*steps, env):
    done = start("steps", *steps, env=env)
    assert right(done), done.stderr
    return done


# ---- By routine ----


@pytest.mark.parametrize("setting, names, model, expected", [
    ("ACCEL_GPU", "dgemm", "slow", {"dgemm_": ("gpu0", "forced"), "dgesv_": ("cpu", "slower")}),
    ("ACCEL_GPU", "lapack:*", "slow", {"dgemm_": ("cpu", "slower"), "dgesv_": ("gpu0", "forced")}),
    ("ACCEL_CPU", "blas3:d*", "fast", {"dgemm_": ("cpu", "user"), "dgesv_": ("gpu0", "faster")}),
    ("ACCEL_CPU", "dgesv_", "fast", {"dgemm_": ("gpu0", "faster"), "dgesv_": ("cpu", "user")})])
def test_by_routine(setting, names, model, expected, env, folder):
    done = run("dgemm:400:2", "solve:400:1", env={**env, "ACCEL_START": "wait", "ACCEL_MODEL": str(folder / model),
                                                  setting: names, "TESTGPU_START_MS": "200"})
    # What dgesv's own library calls inside is decided by itself.
    seen = {f["sym"]: (f["ran"], f["why"]) for f in reversed(lines_for(done))}
    assert {name: seen.get(name) for name in expected} == expected


def test_accel_gpu_waits_for_cuda_whatever_the_size(env):
    assert outcomes(lines_for(run("dgemm:10:2", env={**env, "ACCEL_GPU": "dgemm",
                                                     "TESTGPU_START_MS": "500"}))) == 2 * [("gpu0", "forced")]


def test_accel_cpu_comes_first(env):
    done = start("steps", "dgemm:400:1", "dgemm:300:1", env={**env, "ACCEL_GPU": "dgemm", "ACCEL_CPU": "dgemm"})
    assert outcomes(lines_for(done)) == 2 * [("cpu", "user")]


# ---- ACCEL_REQUIRE ----


def test_require_waits_for_cuda(must):
    assert set(outcomes(lines_for(run("dgemm:400:2", "solve:300:1",
                                      env={**must, "TESTGPU_START_MS": "500"})))) == {("gpu0", "faster")}


each_lack = pytest.mark.parametrize("extra", [
    pytest.param({"ACCEL_CUDA_DIR": "/proc"}, id="no driver"),
    pytest.param({"CUDA_VISIBLE_DEVICES": "-1"}, id="no device"),
    pytest.param({"TESTGPU_FAIL": "cuInit:1"}, id="CUDA does not start"),
    pytest.param({"TESTGPU_FAIL": "cuEventSynchronize:4+"}, id="it fails"),
    pytest.param({"TESTGPU_FAIL": "cuMemAlloc:1+"}, id="no memory"),
    pytest.param({"ACCEL_DEVICES": "3"}, id="no such device")])


@each_lack
@pytest.mark.parametrize("log", ["0", "1"])
def test_require_ends_the_program_with_one_message(extra, log, must):
    done = start("steps", "dgemm:10:1", "dgemm:400:8", env={**must, **extra, "ACCEL_LOG": log})
    assert done.returncode == 1
    assert done.stdout == "dgemm 10: 1 calls, 0 wrong\n"
    (_,) = [line for line in said(done) if "ACCEL_REQUIRE=gpu is set: the program is ended" in line]
    assert not [line for line in said(done) if not any(words in line
                                                       for words in ("ACCEL_REQUIRE=gpu is set", "no GPU is used",
                                                                     "left alone"))]


@each_lack
def test_require_does_not_end_it_for_small_calls(extra, must):
    assert set(outcomes(lines_for(run("dgemm:10:3", env={**must, **extra})))) <= {("cpu", "small"), ("cpu", "no_gpu"),
                                                                                  ("cpu", "error")}


def test_require_does_not_end_it_where_the_cpu_is_faster(must, folder):
    assert outcomes(lines_for(run("dgemm:400:1", env={**must, "ACCEL_MODEL": str(folder / "slow")}))) == [("cpu",
                                                                                                           "slower")]


def test_require_does_not_end_it_where_the_user_wants_the_cpu(must):
    assert outcomes(lines_for(run("dgemm:400:1", env={**must, "ACCEL_CPU": "dgemm"}))) == [("cpu", "user")]


def test_require_waits_for_a_busy_device(must, folder):
    calibrate(folder / "even", keys(folder), 6500 / 1.2, 6000 / 1.2)
    done = two_threads([], {**must, "ACCEL_MODEL": str(folder / "even"), "TESTGPU_GFLOPS": "0.072"})
    assert right(done)
    assert sorted(outcomes(lines_for(done))) == [("gpu0", "faster"), ("gpu0", "required")]


# ---- Which device ----


@pytest.mark.parametrize("devices, ran, why", [("auto", "gpu0", "faster"), ("0", "gpu0", "faster"),
                                               ("1", "gpu1", "faster"), ("0,1", "gpu0", "faster"),
                                               ("1,0", "gpu1", "faster"), ("none", "cpu", "user"),
                                               ("7", "cpu", "no_gpu")])
def test_devices_of_two(devices, ran, why, env):
    # So short that two devices do not share it.
    done = run("dgemm:220:2", env={**env, "ACCEL_START": "wait", "ACCEL_DEVICES": devices, "TESTGPU_DEVICES": "2"})
    assert set(outcomes(lines_for(done))) == {(ran, why)}
    assert len(said(done)) == (devices == "7")


@pytest.mark.parametrize("devices, messages", [("none", 0), ("7", 1)])
def test_devices_without_a_log(devices, messages, env):
    done = run("dgemm:400:2", env={**env, "ACCEL_DEVICES": devices, "TESTGPU_DEVICES": "2", "ACCEL_LOG": "0"})
    assert len(said(done)) == messages
    assert done.stderr.count("\n") == messages


# ---- Processes that nobody has numbered ----


@pytest.fixture
def four(env, tmp_path):
    """Four GPUs, and a file of its own by which the processes of one test see each other."""
    return {**env, "ACCEL_POLICY": "gpu", "TESTGPU_DEVICES": "4", "XDG_RUNTIME_DIR": str(tmp_path)}


class Waiting:
    """A process whose call has been on a GPU, and that waits until it is told to end."""

    numbers = itertools.count()

    def __init__(self, env, *steps):
        self.end = Path(env["XDG_RUNTIME_DIR"], f"end.{next(self.numbers)}")
        self.ready = self.end.with_suffix(self.end.suffix + ".ready")
        self.process = background([*steps, "dgemm:100:1", f"write:{self.ready}", f"await:{self.end}"], env)

    def await_call(self):
        while not self.ready.exists() and self.process.poll() is None:
            time.sleep(0.01)
        return self

    def stop(self, signal=None):
        """Its GPU, why, and how many others used that: fields of the log."""
        if signal:
            self.process.send_signal(signal)
        else:
            self.end.touch()
        (gpu,) = events(self.process.communicate(timeout=300)[1], "gpu")
        return gpu["index"], gpu["chosen"], gpu.get("others", "0")


@pytest.fixture
def waiting():
    """Starts processes that wait: all at once, before it waits for their calls; none is left behind."""
    begun = []

    def begin(*environments):
        begun.extend(new := [Waiting(env) for env in environments])
        return [one.await_call() for one in new]

    yield begin
    for one in begun:
        one.process.kill()
        one.process.communicate()


def stop(*processes):
    return [one.stop() for one in processes]


def test_processes_at_once_take_different_gpus(four, waiting):
    """Spark's executors, workers of Dask, loky and Ray, jobs of GNU parallel."""
    seen = stop(*waiting(*6 * [four]))
    assert sorted(index for index, _, _ in seen) == ["0", "0", "1", "1", "2", "3"]
    assert {why for _, why, _ in seen} == {"fewest"}
    assert sorted(others for _, _, others in seen) == ["0", "0", "0", "0", "1", "1"]


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_ends_frees_its_place(how, four, waiting):
    first, second, third = (waiting(four)[0] for _ in range(3))
    assert second.stop(how)[0] == "1"
    assert stop(*waiting(four), first, third) == [("1", "fewest", "0"), ("0", "fewest", "0"), ("2", "fewest", "0")]


def test_only_processes_that_start_cuda_count(four, waiting):
    beside = waiting({**four, "ACCEL_POLICY": "cpu"}, {**four, "ACCEL_CUDA_DIR": "/proc"})
    assert stop(*waiting(four)) == [("0", "fewest", "0")]
    for one in beside:
        one.end.touch()


def test_a_child_of_a_process_that_has_ended_has_no_place(four, waiting):
    """A daemon's child lives on, with copies of all that its parent had open."""
    code = "import os, numpy as n; a = n.ones((200, 200)); a @ a; print(end='', flush=True)\nif os.fork() == 0: os.execlp('sleep', " \
           "'sleep', '60') if {} else __import__('time').sleep(60)\nos.write(1, b'%d' % 0); os._exit(0)"
    for execs in (True, False):
        child = subprocess.Popen([DEBIAN_PYTHON, "-c", code.format(execs)], env={**clean_env("/tmp"), **four, "ACCEL_LOG": "0"},
                                 stdout=subprocess.PIPE, start_new_session=True)
        try:
            assert child.stdout.read(1) == b"0"
            child.wait()
            assert stop(*waiting(four)) == [("0", "fewest", "0")]
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def test_what_the_user_has_named_is_used_and_counts_for_others(four, waiting):
    named = waiting({**four, "ACCEL_DEVICES": "0"}, {**four, "ACCEL_DEVICES": "0"}, {**four, "CUDA_VISIBLE_DEVICES": "2"},
                    {**four, **rank_env(1, 2)})
    one = waiting(four)
    assert stop(*one, *named) == [("3", "fewest", "0"), ("0", "setting", "0"), ("0", "setting", "0"), ("0", "only", "0"),
                                  ("1", "rank", "0")]


def test_of_visible_gpus_the_first_goes_first(four, waiting):
    """dask-cuda gives each worker all GPUs, its own first; Slurm's jobs see those of the job."""
    assert stop(*waiting({**four, "CUDA_VISIBLE_DEVICES": "2,3,0,1"})) == [("0", "fewest", "0")]
    (held,) = waiting({**four, "ACCEL_DEVICES": "2"})
    assert stop(*waiting({**four, "CUDA_VISIBLE_DEVICES": "2,3"}), held) == [("1", "fewest", "0"), ("2", "setting", "0")]


@pytest.mark.parametrize("lack", ["no folder", "another user's", "no more files"])
def test_without_the_file_it_is_the_first(lack, four, waiting, tmp_path):
    (tmp_path / "lacking").mkdir()
    file = tmp_path / "lacking" / f"accel-{os.geteuid()}-seats"
    env = {**four, "XDG_RUNTIME_DIR": str(tmp_path / "lacking")}
    if lack == "another user's":
        file.touch(0o666)
        file.chmod(0o666)
    elif lack == "no more files":
        file.mkdir()
    done = []
    for _ in range(2):
        if lack == "no folder":
            env["XDG_RUNTIME_DIR"] = "/proc/self/fdinfo"
        done.append(run("dgemm:100:1", env=env))
    assert [(gpu["index"], gpu["chosen"], gpu.get("others")) for one in done for gpu in events(one.stderr, "gpu")] == \
        2 * [("0", "first", None)]


def test_one_that_cannot_be_had_gives_its_place_back(four, waiting):
    """The first is another process's, whose compute mode is exclusive, and the second has no memory left."""
    env = {**four, "TESTGPU_MODES": "taken,full,default,default"}
    first, second = (waiting(env)[0] for _ in range(2))
    assert stop(*waiting(four), second, first) == [("0", "fewest", "0"), ("3", "next", "0"), ("2", "next", "0")]


def unshared(command):
    return subprocess.run(["unshare", "--pid", "--fork", *command], capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(unshared(["true"]).returncode != 0, reason="no namespace of process ids can be made")
def test_containers_that_share_the_folder_see_each_other(four, waiting):
    held = waiting(four)
    env = {**clean_env("/tmp"), **four}
    words = [f"{name}={value}" for name, value in env.items()]
    done = unshared(["env", "-i", *words, str(TESTS / "steps"), "dgemm:100:1"])
    assert [(gpu["index"], gpu["others"] if "others" in gpu else "0") for gpu in events(done.stderr, "gpu")] == [("1", "0")]
    assert stop(*held) == [("0", "fewest", "0")]


# ---- Ranks ----


def test_torchrun(four):
    """Its variables are known as MPI's are."""
    seen = []
    for rank in range(3):
        done = run("dgemm:100:1", env={**four, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3",
                                       "LOCAL_WORLD_SIZE": "3"})
        seen += [(gpu["index"], gpu["chosen"], gpu["sharers"]) for gpu in events(done.stderr, "gpu")]
    assert seen == [("0", "rank", "1"), ("1", "rank", "1"), ("2", "rank", "1")]


STEPS = ("dgemm:40:1", "dgemm:300:3", "solve:300:1", "other:500:2")


def rank_env(rank, size):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)}


def sequence(lines):
    return [tuple(f.get(k) for k in "sym m n k nrhs why est_cpu_ms est_gpu_ms".split()) for f in lines]


def test_four_ranks_are_spread_over_two_devices_and_decide_the_same(env):
    """Whatever its device does; each waits for CUDA."""
    logs = [lines_for(run(*STEPS, env={**env, **rank_env(rank, 4), "TESTGPU_DEVICES": "2", "TESTGPU_START_MS": "300",
                                       "TESTGPU_BUSY": str(rank * 30),
                                       "TESTGPU_GFLOPS": "10"})) for rank in range(4)]
    assert not [line for log in logs for line in log if line["why"] == "warming"]
    assert [{f["ran"] for f in log} - {"cpu"} for log in logs] == [{"gpu0"}, {"gpu1"}, {"gpu0"}, {"gpu1"}]
    for log in logs:
        assert sequence(log) == sequence(logs[0])


def test_of_three_that_share_one_each_reckons_with_a_third(env):
    alone, shared = (float(lines_for(start("steps", "dgemm:500:1", env={**env, **more}))[0]["est_gpu_ms"])
                     for more in ({"ACCEL_START": "wait"}, rank_env(0, 3)))
    assert abs(shared / alone - 3) < 0.05


@pytest.mark.parametrize("more", [pytest.param({**rank_env(1, 2), "ACCEL_START": "background"},
                                               id="ACCEL_START=background asks for it"),
                                  pytest.param(rank_env(0, 1), id="one rank alone is no MPI program")])
def test_where_a_rank_does_not_wait(more, env):
    assert lines_for(start("steps", "dgemm:400:4", env={**env, **more,
                                                        "TESTGPU_START_MS": "500"}))[0]["why"] == "warming"


@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_rank_names_a_damaged_calibration(rank, env, tmp_path):
    (tmp_path / "damaged").write_text("accel-model 1\n")
    done = run("dgemm:400:2", "solve:300:1", env={**env, **rank_env(rank, 2), "ACCEL_MODEL": str(tmp_path / "damaged")})
    assert len(said(done)) == (rank == 0)


@pytest.mark.parametrize("size, at_once", [(1, True), (2, False)])
def test_the_memory_is_divided_among_ranks(size, at_once, env):
    """80 % of 40 MB is room for a matrix of 23 MB, 40 % is not: there it goes through in panels, some of which come up
    several times."""
    lines = lines_for(run("solve:1700:1", env={**env, **rank_env(0, size), "ACCEL_START": "wait",
                                               "TESTGPU_MEMORY": "40M"}), sym="dgesv_")
    assert outcomes(lines) == [("gpu0", "faster")]
    assert (float(lines[0]["up_mb"]) < 24) == at_once


MPIRUN = shutil.which("mpirun")
has_mpi = pytest.mark.skipif(not MPIRUN, reason="no mpirun")


def mpirun(*steps, env, folder):
    done = start(MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", 2, TESTS / "steps", *steps, env={
        **env, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return done


@has_mpi
def test_mpirun_a_device_for_each_rank_and_the_same_decisions_in_each_run(env, folder, tmp_path):
    runs = []
    for number, (delay, busy) in enumerate((("500", "80"), ("0", "0"))):
        mpirun(*STEPS, folder=folder, env={**env, "TESTGPU_DEVICES": "2", "TESTGPU_START_MS": delay,
                                           "TESTGPU_BUSY": busy, "ACCEL_LOG_FILE": f"{tmp_path}/{number}.%r"})
        logs = [parse_log((tmp_path / f"{number}.{rank}").read_text()) for rank in (0, 1)]
        assert [{f["ran"] for f in log} - {"cpu"} for log in logs] == [{"gpu0"}, {"gpu1"}]
        runs += [sequence(log) for log in logs]
    for decisions in runs:
        assert decisions == runs[0]
    assert not [decision for decision in runs[0] if "warming" in decision]


@has_mpi
@pytest.mark.parametrize("served", [False, True], ids=["without MPS: each rank hints at it", "with MPS: no hint"])
def test_mpirun_one_device(served, env, folder, tmp_path):
    if served:
        (tmp_path / "control").touch()
    done = mpirun("dgemm:300:2", folder=folder, env={**env, "ACCEL_SUMMARY": "1", "TESTGPU_DELAY_US": "300000",
                                                     "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path if served
                                                                                    else tmp_path / "pipes")})
    assert " ".join(done.stderr.replace("accel:", "").split()).count("ranks took turns on one GPU") == (0 if served
                                                                                                        else 2)
