"""Storms of writers to a matrix that stays on the GPU: between calls somebody writes to it, in each way there is, and
no call gets the old contents."""

from collections import namedtuple

import pytest

from lib.calibrated import calibrate_slow_copies
from lib.log import events, lines_for, said
from lib.programs import LOG, LONG, SERVED, TEST_GPU, UNDER_TSAN, start

WAYS = ("store read thread process_vm_writev fork during mremap munmap madvise free mprotect mem huge O_DIRECT realloc "
        "malloc shared mix").split()

# setting: matrices are known by digests, are watched, or are brought by calls that would gain.
# arguments: of `storm`.
Kind = namedtuple("Kind", "name setting rounds arguments")


def cases(*kinds):
    """Each kind with each way. The short form leaves out some ways of a kind, which another kind has."""
    return [pytest.param(kind, way, id=f"{way}, {kind.name}") for k, kind in enumerate(kinds) for number,
            way in enumerate(WAYS)
            if LONG or (number + k) % (3 if len(kinds) > 3 else 2) == 0]


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """setting -> environment; and whether the kernel keeps no record of writes."""
    folder = tmp_path_factory.mktemp("storms")
    env = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
    calibrate_slow_copies(folder / "model", folder, {"OPENBLAS_NUM_THREADS": "1"})
    watched = {**env, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": str(folder / "model")}
    brought = {**watched, "ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}  # waits for the GPU's start
    return {"digests": {**env, "ACCEL_RESIDENT": "hash"}, "watched": watched, "brought": brought,
            "untracked": events(start("again", "unread", 4, env=watched).stderr, "untracked")}


def storm(kind, way, environments):
    if UNDER_TSAN and way == "during":
        pytest.skip("it is a race")
    done = start("storm", way, kind.rounds, 100 + WAYS.index(way), *kind.arguments, env=environments[kind.setting])
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout[9:].strip())
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout.endswith(" 0 wrong\n"), done.stdout
    assert not said(done), said(done)
    if SERVED and {"result", "triangle"} & {*kind.arguments} and kind.setting != "digests": # a server keeps no results
        return
    found = [line for line in lines_for(done) if float(line.get("kept_mb", 0)) > 0]
    # What changes, the CPU gets, until it has not changed for some calls; nobody knows that of
    # shared memory.
    least = kind.rounds // 2
    if kind.name == "brought":
        least = 0 if way == "shared" or environments["untracked"] else kind.rounds // 4
    assert len(found) >= least, f"an operand was found {len(found)} times: {done.stdout}"
