#!/usr/bin/python3 -B
"""Which figures are used: a calibration of several machines, of routines in part, of no use here."""

import os
import re
import tempfile
from pathlib import Path

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, start
from lib.tap import Tap

tap = Tap()
WAIT = {"ACCEL_START": "wait"}

with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    known = keys(folder)
    env = {**AUTO, **LOG, **WAIT, "ACCEL_MODEL": model}

    # A home folder that machines share: the first GPU in the file is a slow one, and is not here.
    put(model, {'[gpu "Slow" cuda=1.0 cublas=1]': f"up_gbps=1\ndown_gbps=1\n{lines(1e5)}", known["blas"]: lines(100),
                known["gpu"]: gpu_lines(1)})
    done = start("steps", "dgemm:500:3", env=env)
    tap.ok(done.returncode == 0 and {f["ran"] for f in lines_for(done)} == {"gpu0"} and not said(done),
           "another machine's slow GPU keeps nothing from this one's", done.stderr)

    # Few points: what is far from them is not made up.
    put(model, {known["blas"]: lines(100), known["gpu"]: "up_gbps=10\ndown_gbps=10\nkernels_ms=0.001\ndgemm 100x100x100:0.4\n"})
    done = start("steps", "dgemm:500:1", env=env)
    estimates = [float(f["est_gpu_ms"]) for f in lines_for(done)]
    tap.ok(estimates and max(estimates) < 10, "one measured call of order 100 does not make one of 500 take a hundred times as long", done.stderr)

    # Copies go in pieces of the calibration's size, 1 MiB if it names none that there is.
    sent = {}
    for kilobytes in (256, 512, 1024, 300):
        put(model, {known["blas"]: lines(100), known["gpu"]: f"piece_kb={kilobytes}\n{gpu_lines(1)}"})
        report = Path(folder, f"report.{kilobytes}")
        done = start("steps", "dgemm:1000:1", env={**env, "TESTGPU_REPORT": str(report)})
        found = re.search(r"^testgpu call name=cuMemcpyHtoDAsync\w* n=(\d+)", report.read_text(), re.M) if report.exists() else None
        sent[kilobytes] = int(found[1]) if found and done.returncode == 0 else 0
    # The first piece may go up in up to four parts.
    tap.ok(sent[256] > sent[512] > max(sent[1024], sent[300]) and min(sent[1024], sent[300]) > 0 and abs(sent[1024] - sent[300]) <= 3, "the calibration says in which pieces operands are copied", sent)

    # A calibration that has not this machine is named where it is used, and is not read where there
    # is no GPU.
    put(model, {'[cpu "other" threads=1 library="x 1"]': lines(1)})
    done = start("steps", "dgemm:500:3", env={**NO_GPU, "ACCEL_MODEL": model})
    tap.ok(done.returncode == 0 and done.stderr == "", "without a GPU nothing is said of a calibration", done.stderr)
    done = start("steps", "dgemm:500:3", env={**AUTO, **WAIT, "ACCEL_MODEL": model})
    tap.ok(len(said(done)) == 1, "with one it is named once", done.stderr)
    ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    done = start("steps", "dgemm:500:3", env={**AUTO, "ACCEL_MODEL": model, **ranks})
    tap.ok(done.returncode == 0 and not said(done), "of several ranks the first one alone speaks", done.stderr)

    # Devices: the number in the log is CUDA's; one that is not there is named.
    calibrate(model, known, 100, 1)
    done = start("steps", "dgemm:500:1", env={**env, "TESTGPU_DEVICES": "4", "ACCEL_DEVICES": "3"})
    tap.ok({f["ran"] for f in lines_for(done)} == {"gpu3"}, "ACCEL_DEVICES=3 of four", done.stderr)
    done = start("steps", "dgemm:500:1", env={**AUTO, **WAIT, "ACCEL_MODEL": model, "ACCEL_DEVICES": "3"})
    tap.ok(done.returncode == 0 and len(said(done)) == 1 and "no device 3" in said(done)[0], "ACCEL_DEVICES=3 of one is named", done.stderr)

    # Without a calibration: from the device's attributes, whatever its name is alike.
    processors, bus, major, minor, ratio = 16, 37, 75, 76, 87  # cuda.h's numbers
    H100 = {processors: 132, bus: 5120, major: 9, minor: 0, ratio: 2}

    def product_ms(order, name, model, **changes):
        """What a product of this order is thought to take."""
        numbers = {**H100, **{globals()[k]: v for k, v in changes.items()}}
        done = start("steps", f"dgemm:{order}:1", env={**AUTO, **LOG, "ACCEL_POLICY": "gpu", "ACCEL_MODEL": model, "TESTGPU_NAME": name, "TESTGPU_DATA": "0",
                     "TESTGPU_ATTRIBUTES": ",".join(f"{k}={v}" for k, v in numbers.items())})
        found = [float(f["est_gpu_ms"]) for f in lines_for(done)]
        return found[0] if found else 0

    def kernel_ms(name, **changes):
        """The same of order 3000 where copies take next to no time, which is all that a calibration says."""
        put(model, {f'[gpu "{name}" cuda=13.0 cublas=130100]': "up_gbps=100000\ndown_gbps=100000\n"})
        return product_ms(3000, name, model, **changes)

    whole = kernel_ms("NVIDIA Sample")
    tap.ok(0.9 < kernel_ms("NVIDIA H100 80GB HBM3") / whole < 1.1, "a whole card: by its name as by its attributes")
    # The threads that may copy, up to 16 lanes of PCIe 5.
    staged = 5.7 * min(len(os.sched_getaffinity(0)), 14)
    gbps = max(10, min(staged, 45))
    # One memory for both: the copies cross no bus. Theirs are 15e9 bytes a second.
    integrated = 18
    # Of this order they come one after the other.
    none = folder + "/none"
    expected = 3 * 8 * 400**2 * (1e-6 / gbps - 1 / 15e6)
    spark = product_ms(400, "NVIDIA Other", none) - product_ms(400, "NVIDIA Other", none, integrated=1)
    tap.ok(abs(spark - expected) < 0.05 * abs(expected), f"an integrated GPU's copies take {spark:.3f} ms less, of {expected:.3f}")

    named = product_ms(400, "NVIDIA H100 80GB HBM3", none)
    sample = product_ms(400, "NVIDIA Sample", none)
    tap.ok(abs(named - sample) < 0.04 * sample, f"the threads copy as fast for a card that is known by its name: {named:.3f} ms, else {sample:.3f}")

    # A call of 4 MB and more has the time of its schedule: the result comes down while others go up
    # and are multiplied. Not less than what goes up, or the kernels, and less than all together.
    up, down = 2 * 8 * 3000**2 * 1e-6 / gbps, 8 * 3000**2 * 1e-6 / gbps
    overlapped = product_ms(3000, "NVIDIA Sample", none)
    tap.ok(up < overlapped < up + whole + 0.7 * down, f"copies and kernels overlap: {overlapped:.2f} ms, of {up:.2f} up, {whole:.2f}, {down:.2f} down")
    put(model, {'[gpu "NVIDIA Sample" cuda=13.0 cublas=130100]': f"up_gbps={gbps}\ndown_gbps={gbps}\nschedule_ratio=3\n"})
    tripled = product_ms(3000, "NVIDIA Sample", model)
    tap.ok(2.99 < tripled / overlapped < 3.01, f"a calibration says that calls take three times as long as their schedules: {tripled:.2f} ms")
    slow = product_ms(3000, "NVIDIA Sample", none, ratio=64)
    alone = kernel_ms("NVIDIA Sample", ratio=64)
    tap.ok(alone < slow < alone + 0.5 * (up + down), f"copies hide behind kernels: {slow:.2f} ms, of {alone:.2f} and {up + down:.2f} for copies")

    for name, expected, changes in (
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 132 / 16, {"processors": 16, "bus": 640}),  # a slice is not the card
        ("GRID H100-10C", 132 / 16, {"processors": 16}),
        ("NVIDIA H100-2-20C", 132 / 32, {"processors": 32}),  # a vGPU on an instance of MIG
        ("NVIDIA H100-40C", 1, {}),  # one that takes turns with others has all multiprocessors
        ("NVIDIA H200 MIG 1g.18gb", 132 / 16, {"processors": 16, "bus": 768}),
        ("NVIDIA Other", 64, {"major": 8, "minor": 9}),  # by capability: double precision is a sixty-fourth
        ("NVIDIA Other", 64, {"major": 12, "minor": 0, "ratio": 0}),
        ("NVIDIA Other", 2, {"major": 10, "minor": 0}),
        ("NVIDIA RTX of tomorrow", 64, {"major": 8, "minor": 6}),
        ("NVIDIA Other", 64, {"major": 10, "minor": 3, "ratio": 0}),
        ("NVIDIA Other", 64, {"ratio": 64}),
    ):
        slower = kernel_ms(name, **changes) / whole
        tap.ok(0.85 * expected < slower < 1.15 * expected, f"{name} {changes}: {slower:.1f} times as slow as an H100, of {expected:.1f}")

tap.done()
