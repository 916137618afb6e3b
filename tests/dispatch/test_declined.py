#!/usr/bin/python3 -B
"""Matrices that the GPU gives back to LAPACK: indefinite and singular ones. One that shows it on its diagonal does not go up at all. A place whose matrices are given back twice in a row stays on
the CPU until calls succeed there, and gets the GPU again then; other places, forced calls and programs whose decisions must not depend on their past are as before. INFO is always
LAPACK's. See declined.c."""

import tempfile

from lib.calibrated import AUTO, gpu_lines, keys, lines, put
from lib.log import lines_for, outcomes, said
from lib.programs import LOG, SHIM, TESTS, start
from lib.tap import Tap

tap = Tap()
GPU, BACK, HELD = ("gpu0", "faster"), ("cpu", "unsupported"), ("cpu", "slower")


def ups(calls):
    """How many of these calls have copied their matrix to the GPU."""
    return sum(float(f.get("up_mb", 0)) > 0 for f in calls)


with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    known = keys(folder)
    # A CPU that is known to be slow, and is: what it has learned of its own calls changes nothing.
    env = {**AUTO, **LOG, "ACCEL_MODEL": model, "TESTGPU_DELAY_US": "0", "LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS / 'liblate.so'}"}

    # liblate.so stands in front of LAPACK: its calls have the times of the library behind it.
    put(model, {known["lapack"]: lines(1e6), known["blas"]: lines(1e6), known["gpu"]: gpu_lines(0.01)})

    def run(letters, more={}, sym="dpotrf_"):
        """Factors matrices by these letters: see declined.c."""
        done = start("declined", letters, env={**env, **more})
        calls = lines_for(done, sym=sym)
        tap.ok(done.returncode == 0 and "0 wrong" in done.stdout and not said(done), f"{letters}, {sym}: INFO is LAPACK's", done.stdout, *said(done))
        return calls, outcomes(calls)

    # The GPU is ready and the routine's kernels are loaded once the first call, from another place,
    # is done.
    calls, seen = run("W" + 20 * "i")
    tap.ok(seen[1:] == 2 * [BACK] + 18 * [HELD] and ups(calls[1:]) == 2, "20 indefinite matrices: two have gone up", *seen)
    calls, seen = run("W" + 20 * "i" + 6 * "d")
    tap.ok(seen[21:] == 2 * [HELD] + 4 * [GPU], "definite ones after them: after two on the CPU, the GPU has them", *seen[20:])
    calls, seen = run("W" + "ii" + "ddi" + "dddi" + 4 * "d" + "d")
    tap.ok(seen[1:] == 2 * [BACK] + 2 * [HELD] + [BACK] + 3 * [HELD] + [HELD] + 4 * [HELD] + [GPU],
           "each time that it is tried in vain, twice as many must succeed in a row on the CPU first", *seen)
    calls, seen = run("W" + 6 * "di")
    tap.ok(seen[1:] == 6 * [GPU, BACK], "a place that has one success in between goes on", *seen)
    calls, seen = run("W" + 6 * "i" + "W")
    tap.ok(seen[-2:] == [HELD, GPU], "another place is not concerned", *seen)
    calls, seen = run("W" + 5 * "n")
    tap.ok(seen[1:] == 5 * [BACK] and ups(calls[1:]) == 0, "a negative number on the diagonal is seen before anything goes up", *seen)
    calls, seen = run("W" + 3 * "n" + 3 * "d")
    tap.ok(seen[1:] == 3 * [BACK] + 3 * [GPU], "and does not count, because it costs nothing", *seen)

    # As SciPy's solve: by Cholesky, and by LU where that fails.
    calls, seen = run("W" + 8 * "s")
    tap.ok(seen[1:] == 2 * [BACK] + 6 * [HELD], "Cholesky, else LU: Cholesky stops going up", *seen)
    done = start("declined", "W" + 8 * "s", env=env)
    solved = outcomes(lines_for(done, sym="dgesv_"))
    tap.ok(len(solved) == 8 and set(solved[1:]) == {GPU}, "and the LU runs on the GPU", *solved)

    # Singular matrices, by LU.
    calls, seen = run("W" + 6 * "0", sym="dgesv_")
    tap.ok(seen[-4:] == 4 * [HELD] and ups(calls) <= 3, "singular matrices: the place is left to the CPU, too", *seen)

    calls, seen = run("W" + 6 * "i", {"ACCEL_POLICY": "gpu"})
    tap.ok(seen[1:] == 6 * [BACK] and ups(calls[1:]) == 6, "ACCEL_POLICY=gpu: each goes up", *seen)
    calls, seen = run("W" + 6 * "i" + "nd", {"ACCEL_REQUIRE": "gpu"})
    tap.ok(seen[1:-2] == 6 * [BACK] and seen[-1][0] == "gpu0", "ACCEL_REQUIRE=gpu: each goes up, and none ends the program", *seen)
    calls, seen = run("W" + 6 * "i" + "d", {"ACCEL_START": "wait"})
    tap.ok(seen[-7:] == 6 * [BACK] + [GPU], "ACCEL_START=wait: a decision does not depend on what was before", *seen)
tap.done()
