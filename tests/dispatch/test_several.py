#!/usr/bin/python3 -B
"""Several devices in one process (ACCEL_DEVICES=all, or a list): which of them gets a call that one device runs, and what becomes of calls if one
fails. Such are short calls, and all of LAPACK; test_split.py has those that several devices run together."""

import tempfile
from collections import Counter

from lib.calibrated import AUTO, calibrate, keys
from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, TESTS, right, start
from lib.tap import Tap

LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]
tap = Tap()


def places(done):
    return Counter(line["ran"] for line in lines_for(done))


with tempfile.TemporaryDirectory() as folder:
    known = keys(folder)
    # By these figures a call of order 500 takes a quarter of a second. A product that takes a
    # quarter of a millisecond is not divided.
    calibrate(folder + "/model", known, 100000, 250)
    calibrate(folder + "/short", known, 100000, 0.2)
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": "2", "TESTGPU_GFLOPS": "2", "XDG_CACHE_HOME": folder, "XDG_RUNTIME_DIR": folder,
           "ACCEL_MODEL": folder + "/model", "ACCEL_DEVICES": "all"}
    wait = {**env, "ACCEL_START": "wait", "TESTGPU_GFLOPS": "0", "ACCEL_MODEL": folder + "/short"}

    # ---- Which one ----

    done = start("steps", "dgemm:500:3", env=wait)
    tap.ok(right(done) and places(done) == {"gpu0": 3} and not said(done), "one thread uses the first", done.stdout, done.stderr)
    done = start("steps", "dgemm:500:1", "threads:3:500:4", env=wait)
    tap.ok(right(done) and places(done) == {"gpu0": 9, "gpu1": 4}, "with ACCEL_START=wait, threads take turns, and keep theirs", done.stdout, done.stderr)
    for devices, expected in {"1,0": {"gpu1": 9, "gpu0": 4}, "1": {"gpu1": 13}, "auto": {"gpu0": 13}}.items():
        done = start("steps", "dgemm:500:1", "threads:3:500:4", env={**wait, "ACCEL_DEVICES": devices})
        tap.ok(right(done) and places(done) == expected and not said(done), f"ACCEL_DEVICES={devices}", done.stdout, done.stderr)
    for modes, one, why in (("default,prohibited", "gpu0", "gpu1: its compute mode is prohibited"), ("failing,default", "gpu1", "gpu0: cuDevicePrimaryCtxRetain")):
        done = start("steps", "dgemm:500:1", "threads:2:500:2", env={**wait, "TESTGPU_MODES": modes})
        tap.ok(right(done) and places(done) == {one: 5} and [why in line for line in said(done)[:1]] == [True], f"{modes}: the other serves, and a message says why",
               done.stdout, done.stderr)
    # The second device is tried when a thread has calls for it.
    done = start("steps", "dgemm:500:1", "threads:2:500:2", env={**wait, "TESTGPU_MODES": "default,failing"})
    tap.ok(right(done) and places(done) == {"gpu0": 5} and len(said(done)) == 1 and "no further GPU is used: gpu1: cuDevicePrimaryCtxRetain" in done.stderr,
           "one that does not start: its threads use the first", done.stdout, done.stderr)

    # ---- By time ----

    done = start("steps", "solve:500:2", "solvers:3:500:12", env=env)
    count = places(done)
    tap.ok(right(done) and count["gpu0"] and count["gpu1"] and set(count) <= {"gpu0", "gpu1", "cpu"} and not said(done),
           "calls that would wait start the second, and go to the one that is free", dict(count), done.stdout, done.stderr)
    waited = [line for line in lines_for(done, ran="cpu") if line["why"] != "warming"]
    tap.ok(not waited, "none goes to the CPU meanwhile", *waited)
    done = start("steps", "solve:500:12", env=env)
    tap.ok(right(done) and set(places(done)) <= {"gpu0", "cpu"}, "one thread stays with the first", places(done), done.stderr)

    # ---- Operands in device memory ----

    for device in (0, 1):
        done = start("cuda_program", *LACKING, "-n", 20, "-c", 1, "-r", "d@(gemm|trsm|syrk|gemv)", device,
                     env={**TEST_GPU, **LOG, "TESTGPU_DEVICES": "2", "ACCEL_DEVICES": "all", "ACCEL_POLICY": "auto"})
        count = Counter(line["ran"] for line in lines_for(done, why="device_data"))
        tap.ok(done.returncode == 0 and list(count) == [f"gpu{device}"] and not said(done), f"operands in memory of device {device} are used there",
               done.returncode, count, done.stdout, done.stderr[-800:])

    # ---- Failures ----

    for function in ("cuMemcpyHtoDAsync", "cuEventSynchronize", "cublasDgemm"):
        for number in (4, 9, 15):
            done = start("steps", "dgemm:500:1", "threads:4:500:6", env={**wait, "TESTGPU_FAIL": f"{function}:{number}"})
            left = [line for line in said(done) if "left alone" in line]
            lines = lines_for(done)
            tap.ok(right(done) and len(lines) == 25 and len(left) <= 1, f"{function} fails once, at call {number}: all results are right", done.stdout,
                   done.stderr[-1500:])
            if left and "left alone from here on" in left[0]:
                lost, other = (("gpu0", "gpu1") if "accel: gpu0 is left" in left[0] else ("gpu1", "gpu0"))
                last = {line["ran"] for line in lines[-4:]}
                tap.ok(last == {other} and (f", {other} goes on: " in left[0] or ", another one is tried: " in left[0]), f"{lost} has failed: calls go on on {other}, as is said", last,
                       done.stderr[-1500:])
    done = start("steps", "dgemm:500:1", "threads:4:500:6", env={**wait, "TESTGPU_FAIL": "cuEventSynchronize:9+"})
    tap.ok(right(done) and {line["ran"] for line in lines_for(done)[-4:]} == {"cpu"} and 1 <= len(said(done)) <= 2 and "the CPU computes" in said(done)[-1],
           "both fail: the CPU computes, as is said", done.stdout, done.stderr[-1500:])
    done = start("steps", "dgemm:500:2", "threads:2:500:6", env={**wait, "TESTGPU_FAIL": "cublasDgemm_v2_64:5+"})
    left = [line for line in said(done) if "is left to" in line]
    tap.ok(right(done) and len(left) == 2 and any("dgemm is left to gpu" in line for line in left[:1]) and "dgemm is left to the CPU" in left[1],
           "a routine that fails on one device is left to the other, then to the CPU, as is said", *said(done))

    # ---- Ranks ----

    for rank in range(2):
        ranks = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        done = start("steps", "dgemm:500:1", "threads:2:500:2", env={**wait, **ranks, "TESTGPU_DEVICES": "4"})
        tap.ok(right(done) and set(places(done)) == {f"gpu{2 * rank}", f"gpu{2 * rank + 1}"}, f"rank {rank} of 2 has two of four", places(done), done.stderr)

    # ---- What is learned ----

    learned = {**env, "ACCEL_LEARN": "1"}
    done = start("steps", "solve:500:2", "solvers:2:500:8", env=learned)
    text = open(folder + "/model").read()
    tap.ok(right(done) and text.count("[gpu ") == 1, "two devices of one name have one section", text)
tap.done()
