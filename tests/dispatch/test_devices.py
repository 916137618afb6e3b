#!/usr/bin/python3 -B
"""Which calls must be on the GPU, which devices are used, and how the ranks of an MPI program share them."""

import shutil
import tempfile
from pathlib import Path

from lib.busy import two_threads
from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, outcomes, parse_log, said
from lib.programs import LOG, TESTS, right, start
from lib.tap import Tap

tap = Tap()


with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    calibrate(folder + "/fast", known, 1000, 1)
    calibrate(folder + "/slow", known, 1, 100000)
    plain = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "XDG_CACHE_HOME": folder, "XDG_RUNTIME_DIR": folder}
    env = {**plain, "ACCEL_MODEL": folder + "/fast"}

    # ---- By routine ----

    for names, setting, slow, expected in (
        ("dgemm", "ACCEL_GPU", True, {"dgemm_": ("gpu0", "forced"), "dgesv_": ("cpu", "slower")}),
        ("lapack:*", "ACCEL_GPU", True, {"dgemm_": ("cpu", "slower"), "dgesv_": ("gpu0", "forced")}),
        ("blas3:d*", "ACCEL_CPU", False, {"dgemm_": ("cpu", "user"), "dgesv_": ("gpu0", "faster")}),
        ("dgesv_", "ACCEL_CPU", False, {"dgemm_": ("gpu0", "faster"), "dgesv_": ("cpu", "user")}),
    ):
        done = start("steps", "dgemm:400:2", "solve:400:1", env={
            **env, "ACCEL_START": "wait", "ACCEL_MODEL": folder + ("/slow" if slow else "/fast"), setting: names, "TESTGPU_START_MS": "200"})
        # What dgesv's own library calls inside is decided by itself.
        seen = {f["sym"]: (f["ran"], f["why"]) for f in reversed(lines_for(done))}
        tap.ok(right(done) and {k: seen.get(k) for k in expected} == expected, f"{setting}={names}", seen, done.stdout)
    done = start("steps", "dgemm:10:2", env={**env, "ACCEL_GPU": "dgemm", "TESTGPU_START_MS": "500"})
    tap.ok(right(done) and outcomes(lines_for(done)) == 2 * [("gpu0", "forced")], "ACCEL_GPU waits for CUDA, whatever the size", done.stderr)
    done = start("steps", "dgemm:400:1", "dgemm:300:1", env={**env, "ACCEL_GPU": "dgemm", "ACCEL_CPU": "dgemm"})
    tap.ok(outcomes(lines_for(done)) == 2 * [("cpu", "user")], "ACCEL_CPU comes first", done.stderr)

    # ---- ACCEL_REQUIRE ----

    must = {**env, "ACCEL_REQUIRE": "gpu"}
    done = start("steps", "dgemm:400:2", "solve:300:1", env={**must, "TESTGPU_START_MS": "500"})
    tap.ok(right(done) and set(outcomes(lines_for(done))) == {("gpu0", "faster")}, "ACCEL_REQUIRE=gpu waits for CUDA", done.stderr, done.stdout)
    nothing = {"no driver": {"ACCEL_CUDA_DIR": folder}, "no device": {"CUDA_VISIBLE_DEVICES": "-1"},
               "CUDA does not start": {"TESTGPU_FAIL": "cuInit:1"}, "it fails": {"TESTGPU_FAIL": "cuEventSynchronize:4+"},
               "no memory": {"TESTGPU_FAIL": "cuMemAlloc:1+"}, "no such device": {"ACCEL_DEVICES": "3"}}
    for name, extra in nothing.items():
        for log in ("0", "1"):
            done = start("steps", "dgemm:10:1", "dgemm:400:8", env={**must, **extra, "ACCEL_LOG": log})
            ended = [line for line in said(done) if "ACCEL_REQUIRE=gpu is set: the program is ended" in line]
            others = [line for line in said(done) if line not in ended and "no GPU is used" not in line and "left alone" not in line]
            tap.ok(done.returncode == 1 and done.stdout == "dgemm 10: 1 calls, 0 wrong\n" and len(ended) == 1 and not others,
                   f"ACCEL_REQUIRE=gpu, {name}, log {log}: the program is ended, with one message", done.returncode, done.stdout, done.stderr)
        done = start("steps", "dgemm:10:3", env={**must, **extra})
        tap.ok(right(done) and set(outcomes(lines_for(done))) <= {("cpu", "small"), ("cpu", "no_gpu"), ("cpu", "error")},
               f"{name}, small calls: it is not", done.stderr)
    done = start("steps", "dgemm:400:1", env={**must, "ACCEL_MODEL": folder + "/slow"})
    tap.ok(right(done) and outcomes(lines_for(done)) == [("cpu", "slower")], "nor where the CPU is faster", done.stderr)
    done = start("steps", "dgemm:400:1", env={**must, "ACCEL_CPU": "dgemm"})
    tap.ok(right(done) and outcomes(lines_for(done)) == [("cpu", "user")], "nor where the user wants the CPU", done.stderr)
    calibrate(folder + "/even", known, 6500 / 1.2, 6000 / 1.2)
    done = two_threads([], {**must, "ACCEL_MODEL": folder + "/even", "TESTGPU_GFLOPS": "0.072"})
    tap.ok(right(done) and sorted(outcomes(lines_for(done))) == [("gpu0", "faster"), ("gpu0", "required")], "a busy device is waited for", done.stderr)

    # ---- Which device ----

    for devices, expected in {"auto": "gpu0", "0": "gpu0", "1": "gpu1", "0,1": "gpu0", "1,0": "gpu1", "none": "cpu", "7": "cpu"}.items():
        # So short that two devices do not share it.
        done = start("steps", "dgemm:220:2", env={**env, "ACCEL_START": "wait", "ACCEL_DEVICES": devices, "TESTGPU_DEVICES": "2"})
        why = {"none": "user", "7": "no_gpu"}.get(devices, "faster")
        tap.ok(right(done) and set(outcomes(lines_for(done))) == {(expected, why)} and len(said(done)) == (devices == "7"), f"ACCEL_DEVICES={devices} of two",
               done.stderr)
        if devices in ("none", "7"):
            done = start("steps", "dgemm:400:2", env={**env, "ACCEL_DEVICES": devices, "TESTGPU_DEVICES": "2", "ACCEL_LOG": "0"})
            tap.ok(right(done) and done.stderr.count("\n") == len(said(done)) == (devices == "7"), f"ACCEL_DEVICES={devices}, no log", done.stderr)

    # ---- Ranks ----

    def rank_env(rank, size):
        return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
                "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)}

    def sequence(lines):
        return [tuple(f.get(k) for k in "sym m n k nrhs why est_cpu_ms est_gpu_ms".split()) for f in lines]

    steps = ["dgemm:40:1", "dgemm:300:3", "solve:300:1", "other:500:2"]
    where, sequences = [], []
    for rank in range(4):
        done = start("steps", *steps, env={**env, **rank_env(rank, 4), "TESTGPU_DEVICES": "2", "TESTGPU_START_MS": "300",
                                           "TESTGPU_BUSY": str(rank * 30), "TESTGPU_GFLOPS": "10"})
        lines = lines_for(done)
        tap.ok(right(done) and not lines_for(done, why="warming"), f"rank {rank} of 4 waits for CUDA", done.stderr)
        where.append({f["ran"] for f in lines} - {"cpu"})
        sequences.append(sequence(lines))
    tap.ok(where == [{"gpu0"}, {"gpu1"}, {"gpu0"}, {"gpu1"}], "four ranks are spread over two devices", where)
    tap.ok(all(s == sequences[0] for s in sequences), "each decides the same, whatever its device does", *sequences[:2])
    alone = start("steps", "dgemm:500:1", env={**env, "ACCEL_START": "wait"})
    shared = start("steps", "dgemm:500:1", env={**env, **rank_env(0, 3)})
    one, three = [float(lines_for(done)[0]["est_gpu_ms"]) for done in (alone, shared)]
    tap.ok(abs(three / one - 3) < 0.05, "of three that share one, each reckons with a third", one, three)
    done = start("steps", "dgemm:400:4", env={**env, **rank_env(1, 2), "ACCEL_START": "background", "TESTGPU_START_MS": "500"})
    tap.ok(lines_for(done)[0]["why"] == "warming", "unless ACCEL_START=background asks for it", done.stderr)
    done = start("steps", "dgemm:400:4", env={**env, **rank_env(0, 1), "TESTGPU_START_MS": "500"})
    tap.ok(lines_for(done)[0]["why"] == "warming", "one rank alone is no MPI program", done.stderr)

    Path(folder, "damaged").write_text("accel-model 1\n")
    for rank in (0, 1):
        done = start("steps", "dgemm:400:2", "solve:300:1", env={**env, **rank_env(rank, 2), "ACCEL_MODEL": folder + "/damaged"})
        tap.ok(right(done) and len(said(done)) == (rank == 0), f"a damaged calibration, rank {rank}: the first one names it", *said(done))

    # 80 % of 40 MB is room for a matrix of 23 MB, 40 % is not: there it goes through in panels,
    # some of which come up several times.
    for size, at_once in {1: True, 2: False}.items():
        done = start("steps", "solve:1700:1", env={**env, **rank_env(0, size), "ACCEL_START": "wait", "TESTGPU_MEMORY": "40M"})
        up = [float(f["up_mb"]) for f in lines_for(done, sym="dgesv_")]
        tap.ok(right(done) and outcomes(lines_for(done, sym="dgesv_")) == [("gpu0", "faster")] and (up[0] < 24) == at_once, f"the memory is divided among {size}", done.stderr)

    if shutil.which("mpirun"):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": folder}
        runs = []
        for number, (delay, busy) in enumerate((("500", "80"), ("0", "0"))):
            done = start(shutil.which("mpirun"), "--oversubscribe", "--bind-to", "none", "-np", 2, TESTS / "steps", *steps, env={
                **env, **root, "TESTGPU_DEVICES": "2", "TESTGPU_START_MS": delay, "TESTGPU_BUSY": busy,
                "ACCEL_LOG_FILE": f"{folder}/mpi{number}.%r"})
            logs = [parse_log(Path(f"{folder}/mpi{number}.{rank}").read_text()) for rank in (0, 1)]
            tap.ok(done.returncode == 0 and [{f["ran"] for f in log} - {"cpu"} for log in logs] == [{"gpu0"}, {"gpu1"}],
                   f"mpirun, run {number}: a device for each rank", done.stdout, done.stderr)
            runs += [sequence(log) for log in logs]
        tap.ok(all(s == runs[0] for s in runs) and not [s for s in runs[0] if "warming" in s], "the same decisions on each rank and in each run",
               *runs)
        pipes = Path(folder, "pipes")
        for served in (False, True):
            done = start(shutil.which("mpirun"), "--oversubscribe", "--bind-to", "none", "-np", 2, TESTS / "steps", "dgemm:300:2", env={
                **env, **root, "ACCEL_SUMMARY": "1", "TESTGPU_DELAY_US": "300000", "CUDA_MPS_PIPE_DIRECTORY": str(pipes)})
            hint = " ".join(done.stderr.replace("accel:", "").split()).count("ranks took turns on one GPU")
            tap.ok(done.returncode == 0 and hint == (0 if served else 2), f"mpirun, one device {'with' if served else 'without'} MPS: {'no hint' if served else 'each rank hints at it'}", done.stdout, done.stderr)
            pipes.mkdir(exist_ok=True)
            (pipes / "control").touch()
    else:
        tap.skip("ranks", "no mpirun")
tap.done()
