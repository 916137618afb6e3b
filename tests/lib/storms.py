"""Storms of writers to a matrix that stays on the GPU: between calls somebody writes to it, in each way there is, and no call gets the old contents."""

import tempfile

from lib.calibrated import calibrate_slow_copies
from lib.log import events, lines_for, said
from lib.programs import LOG, LONG, TEST_GPU, UNDER_TSAN, start

WAYS = "store read thread process_vm_writev fork during mremap munmap madvise free mprotect mem huge O_DIRECT realloc malloc shared mix".split()


def settings(folder):
    """The environments in which matrices are known by digests, are watched, and are brought by calls that would gain."""
    env = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
    model = f"{folder}/model"
    calibrate_slow_copies(model, folder, {"OPENBLAS_NUM_THREADS": "1"})
    watched = {**env, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": model}
    return {**env, "ACCEL_RESIDENT": "hash"}, watched, {**watched, "ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}  # waits for the GPU's start


def rage(tap, kinds_of):
    """kinds_of(by digests, watched, brought) gives the kinds: name, environment, rounds, arguments of `storm`. The short form leaves out some ways of a
    kind, which another kind has."""
    with tempfile.TemporaryDirectory(prefix="accel-storms-") as folder:
        by_digests, watched, brought = settings(folder)
        untracked = events(start("again", "unread", 4, env=watched).stderr, "untracked")
        kinds = kinds_of(by_digests, watched, brought)
        for kind, (how, env, rounds, arguments) in enumerate(kinds):
            for number, way in enumerate(WAYS):
                if LONG or (number + kind) % (3 if len(kinds) > 3 else 2) == 0:
                    one_way(tap, how, env, rounds, arguments, number, untracked)


def one_way(tap, how, env, rounds, arguments, number, untracked):
    way = WAYS[number]
    if UNDER_TSAN and way == "during":
        tap.skip(way, "it is a race")
        return
    done = start("storm", way, rounds, 100 + number, *arguments, env=env)
    if done.stdout.startswith("skipped: "):
        tap.skip(way, done.stdout[9:].strip())
        return
    found = [line for line in lines_for(done) if float(line.get("kept_mb", 0)) > 0]
    # What changes, the CPU gets, until it has not changed for some calls; nobody knows that of
    # shared memory.
    least = rounds // 2 if how != "brought" else 0 if way == "shared" or untracked else rounds // 4
    tap.ok(done.returncode == 0 and done.stdout.endswith(" 0 wrong\n") and len(found) >= least and not said(done),
           f"{way}, {how}: {done.stdout.strip()}, an operand was found {len(found)} times", done.stdout, done.stderr[-300:])
