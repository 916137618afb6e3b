#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Which figures are used: a calibration of several machines, of routines in part, of no use here."""

import os
import re

import pytest

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, start

WAIT = {"ACCEL_START": "wait"}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model"


@pytest.fixture
def env(model):
    return {**AUTO, **LOG, **WAIT, "ACCEL_MODEL": str(model)}


def run(*steps, env):
    done = start("steps", *steps, env=env)
    assert done.returncode == 0, done.stderr
    return done


def test_another_machines_slow_gpu_keeps_nothing_from_this_ones(known, model, env):
    """A home folder that machines share: the first GPU in the file is a slow one, and is not here."""
    put(model, {'[gpu "Slow" cuda=1.0 cublas=1]': f"up_gbps=1\ndown_gbps=1\n{lines(1e5)}", known["blas"]: lines(100),
                known["gpu"]: gpu_lines(1)})
    done = run("dgemm:500:3", env=env)
    assert {f["ran"] for f in lines_for(done)} == {"gpu0"}
    assert not said(done)


def test_one_measured_call_of_order_100_does_not_make_one_of_500_take_a_hundred_times_as_long(known, model, env):
    """Few points: what is far from them is not made up."""
    put(model,
        {known["blas"]: lines(100),
         known["gpu"]: "up_gbps=10\ndown_gbps=10\nkernels_ms=0.001\ndgemm 100x100x100:0.4\n"})
    assert max(float(f["est_gpu_ms"]) for f in lines_for(start("steps", "dgemm:500:1", env=env))) < 10


def test_the_calibration_says_in_which_pieces_operands_are_copied(known, model, env, tmp_path):
    """1 MiB if it names none that there is."""
    sent = {}
    for kilobytes in (256, 512, 1024, 300):
        put(model, {known["blas"]: lines(100), known["gpu"]: f"piece_kb={kilobytes}\n{gpu_lines(1)}"})
        report = tmp_path / f"report.{kilobytes}"
        run("dgemm:1000:1", env={**env, "TESTGPU_REPORT": str(report)})
        sent[kilobytes] = int(re.search(r"^testgpu call name=cuMemcpyHtoDAsync\w* n=(\d+)", report.read_text(),
                                        re.M)[1])
    assert sent[256] > sent[512] > max(sent[1024], sent[300])
    # The first piece may go up in up to four parts.
    assert min(sent[1024], sent[300]) > 0
    assert abs(sent[1024] - sent[300]) <= 3


# ---- A calibration that has not this machine ----


@pytest.fixture
def foreign(model):
    put(model, {'[cpu "other" threads=1 library="x 1"]': lines(1)})
    return {"ACCEL_MODEL": str(model)}


def test_without_a_gpu_nothing_is_said_of_a_calibration(foreign):
    """It is not read there."""
    assert run("dgemm:500:3", env={**NO_GPU, **foreign}).stderr == ""


def test_with_one_it_is_named_once(foreign):
    assert len(said(start("steps", "dgemm:500:3", env={**AUTO, **WAIT, **foreign}))) == 1


def test_of_several_ranks_the_first_one_alone_speaks(foreign):
    ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1",
             "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    assert not said(run("dgemm:500:3", env={**AUTO, **foreign, **ranks}))


# ---- Devices: the number in the log is CUDA's; one that is not there is named ----


def test_device_3_of_four(known, model, env):
    calibrate(model, known, 100, 1)
    done = start("steps", "dgemm:500:1", env={**env, "TESTGPU_DEVICES": "4", "ACCEL_DEVICES": "3"})
    assert {f["ran"] for f in lines_for(done)} == {"gpu3"}


def test_device_3_of_one_is_named(known, model):
    calibrate(model, known, 100, 1)
    (message,) = said(run("dgemm:500:1", env={**AUTO, **WAIT, "ACCEL_MODEL": str(model), "ACCEL_DEVICES": "3"}))
    assert "no device 3" in message


# ---- Without a calibration: from the device's attributes, whatever its name is alike ----

NUMBERS = {"processors": 16, "bus": 37, "major": 75, "minor": 76, "ratio": 87, "integrated": 18}  # cuda.h's
H100 = {"processors": 132, "bus": 5120, "major": 9, "minor": 0, "ratio": 2}
NAME, SAMPLE = "NVIDIA H100 80GB HBM3", "NVIDIA Sample"
# The threads that may copy, up to 16 lanes of PCIe 5.
GBPS = max(10, min(5.7 * min(len(os.sched_getaffinity(0)), 14), 45))
# Of a product of order 3000.
UP, DOWN = 2 * 8 * 3000**2 * 1e-6 / GBPS, 8 * 3000**2 * 1e-6 / GBPS


def product_ms(order, name, model, **changes):
    """What a product of this order is thought to take."""
    attributes = ",".join(f"{NUMBERS[k]}={v}" for k, v in {**H100, **changes}.items())
    done = start("steps", f"dgemm:{order}:1", env={**AUTO, **LOG, "ACCEL_POLICY": "gpu", "ACCEL_MODEL": str(model),
                                                   "TESTGPU_NAME": name, "TESTGPU_DATA": "0",
                                                   "TESTGPU_ATTRIBUTES": attributes})
    return float(lines_for(done)[0]["est_gpu_ms"])


@pytest.fixture
def none(tmp_path):
    """No calibration."""
    return tmp_path / "none"


def kernel_ms(name, model, **changes):
    """The same of order 3000 where copies take next to no time, which is all that a calibration says."""
    put(model, {f'[gpu "{name}" cuda=13.0 cublas=130100]': "up_gbps=100000\ndown_gbps=100000\n"})
    return product_ms(3000, name, model, **changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A whole card's, by its attributes."""
    return kernel_ms(SAMPLE, tmp_path_factory.mktemp("whole") / "model")


def test_a_whole_card_by_its_name_as_by_its_attributes(model, whole):
    assert 0.9 < kernel_ms(NAME, model) / whole < 1.1


def test_an_integrated_gpus_copies(none):
    """One memory for both: the copies cross no bus. Theirs are 15e9 bytes a second. Of this order they come one after
    the other."""
    expected = 3 * 8 * 400**2 * (1e-6 / GBPS - 1 / 15e6)
    less = product_ms(400, "NVIDIA Other", none) - product_ms(400, "NVIDIA Other", none, integrated=1)
    assert abs(less - expected) < 0.05 * abs(expected)


def test_the_threads_copy_as_fast_for_a_card_that_is_known_by_its_name(none):
    sample = product_ms(400, SAMPLE, none)
    assert abs(product_ms(400, NAME, none) - sample) < 0.04 * sample


def test_copies_and_kernels_overlap(none, whole):
    """A call of 4 MB and more has the time of its schedule: the result comes down while others go up and are
    multiplied. Not less than what goes up, or the kernels, and less than all together."""
    assert UP < product_ms(3000, SAMPLE, none) < UP + whole + 0.7 * DOWN


def test_a_calibration_says_that_calls_take_three_times_as_long_as_their_schedules(none, model):
    put(model, {f'[gpu "{SAMPLE}" cuda=13.0 cublas=130100]': f"up_gbps={GBPS}\ndown_gbps={GBPS}\nschedule_ratio=3\n"})
    assert 2.99 < product_ms(3000, SAMPLE, model) / product_ms(3000, SAMPLE, none) < 3.01


def test_copies_hide_behind_kernels(none, model):
    alone = kernel_ms(SAMPLE, model, ratio=64)
    assert alone < product_ms(3000, SAMPLE, none, ratio=64) < alone + 0.5 * (UP + DOWN)


@pytest.mark.parametrize("name, times, changes", [
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
    ("NVIDIA Other", 64, {"ratio": 64})], ids=str)
def test_so_many_times_as_slow_as_an_h100(name, times, changes, model, whole):
    assert 0.85 * times < kernel_ms(name, model, **changes) / whole < 1.15 * times
