#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Short calls that the CPU is by far faster at go to the original unread, most of the time; what could change that is seen."""

import pytest

from lib.calibrated import AUTO, keys, put
from lib.log import lines_for
from lib.programs import start

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
FIRST, COUNT = 40, 50
# A call that is decided takes ten thousand instructions before the original runs.
UNREAD = 1500


# Products of order 100 are the CPU's, those of order 600 the GPU's; so are systems of equations.
SIZES = {"dgemm": ("100x100x100", "600x600x600"), "dgesv": ("100x1", "600x1")}
ON_CPU, ON_GPU = (0.02, 60), (1000, 0.01)


def lines(ms):
    return "".join(f"{name} {small}:{ms[0]} {large}:{ms[1]}\n" for name, (small, large) in SIZES.items())


@pytest.fixture
def run(tmp_path):
    def run(*argv, **settings):
        found = keys(tmp_path, ONE_THREAD)
        put(tmp_path / "model", {found["blas"]: lines(ON_CPU), found["lapack"]: lines(ON_CPU),
                                 found["gpu"]: "up_gbps=100\ndown_gbps=100\nkernels_ms=0.001\nsolver_ms=0.001\n" + lines(ON_GPU)})
        done = start(*argv, env={**AUTO, **ONE_THREAD, "TESTGPU_DELAY_US": "0", "ACCEL_MODEL": str(tmp_path / "model"), **settings})
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def counts(done):
    """The instructions of each call, by routine."""
    return {name: list(map(int, numbers)) for name, *numbers in map(str.split, done.stdout.splitlines())}


def test_most_calls_go_to_the_original_unread(run):
    for name, of in counts(run("decided_calls", 100, FIRST, COUNT)).items():
        # On a busy machine some calls take long, and are decided anew.
        assert sum(n < UNREAD for n in of) > COUNT / 2, of
        assert any(n > UNREAD for n in of), of
        assert min(of) > 0


@pytest.mark.parametrize("settings", ({"ACCEL_LOG": "1"}, {"ACCEL_SUMMARY": "1"}), ids=("a log", "a summary"))
def test_where_each_is_to_be_seen_each_is_decided(run, settings):
    done = run("decided_calls", 100, FIRST, 8, **settings)
    of = counts(done)
    assert min(of["dgemm"] + of["dgesv"]) > UNREAD
    if "ACCEL_LOG" in settings:
        assert len(lines_for(done, sym="dgemm_")) == FIRST + 8


@pytest.mark.parametrize("large", (0, 20), ids=("not started", "started for others"))
def test_matrices_in_device_memory_are_seen(run, large):
    """They come from a place whose matrices were in host memory, by a context that the program makes late."""
    assert run("late_device_data", large, 100).stdout == "0 wrong\n"
