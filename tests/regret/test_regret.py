#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What the decisions cost, replayed from recorded times: of the test GPU as a fast, a slow and a busy device, and of
each real GPU whose recording is kept. The goals are in replay.c. Nothing is timed here: the same files give the same
result."""

import re
import subprocess

import pytest

from lib.programs import BUILD, ROOT

RECORDED = ROOT / "tests/regret/recorded"
RECORDINGS = sorted(path for folder in (RECORDED, ROOT / "docs/measurements/regret") for path in folder.glob("*.times"))
FAST, FAST_MODEL = RECORDED / "fast.times", RECORDED / "fast.model"


def replay(times, model):
    return subprocess.run([BUILD / "regret/replay", times, model], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def with_a_schedule(done):
    """How many calls are estimated by their schedules."""
    return int(re.search(r"^calls with a schedule (\d+)$", done.stdout, re.M)[1])


def test_the_recordings_of_the_test_gpu_are_there():
    assert {"fast", "slow", "busy"} <= {path.stem for path in RECORDINGS}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_goals_are_reached(path):
    done = replay(path, path.with_suffix(".model"))
    assert done.returncode == 0, done.stdout


def test_the_slow_device_with_the_fast_ones_figures_misses_the_goals():
    """The replay can fail."""
    assert replay(RECORDED / "slow.times", FAST_MODEL).returncode == 1


def test_large_calls_are_estimated_by_their_schedules_where_the_recording_has_those(tmp_path):
    """The same times, said to be of schedules: by them, and by their rates."""
    times = tmp_path / "fast.times"
    times.write_text(FAST.read_text().replace("# fast ", "# fast schedules ", 1))
    done = replay(times, FAST_MODEL)
    assert done.returncode == 0, done.stdout[-500:]
    assert with_a_schedule(done) > 100
    assert with_a_schedule(replay(FAST, FAST_MODEL)) == 0
