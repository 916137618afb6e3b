#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel calibrate on a busy machine: it says so, and does not believe a call that takes longer than larger ones. Only a
terminal is shown progress."""

import os
import re
import subprocess

import pytest

from lib.programs import BUILD, NO_GPU, start
from lib.terminal import on_terminal

ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
# A BLAS whose products of order 48 take 60 ms for the first SLOW times. Its other names, which are
# not measured, make a BLAS of it.
SOURCE = """
#include <unistd.h>
#define NOTHING(name) void name(void) {}
NOTHING(sgemv_) NOTHING(dgemv_) NOTHING(cgemv_) NOTHING(zgemv_) NOTHING(ssymv_)
NOTHING(dsymv_) NOTHING(sger_) NOTHING(dger_)
int isamax_(const int *n, const float *x, const int *s)
{
    int best = 0;
    for (int i = 1; i < *n; i++)
        if ((x[i * *s] < 0 ? -x[i * *s] : x[i * *s]) > (x[best * *s] < 0 ? -x[best * *s] : x[best * *s]))
            best = i;
    return *n > 0 ? best + 1 : 0;
}
static int slow = SLOW;
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc)
{
    if (*alpha == 0 && *beta == 1) /* its code tells that these are doubles */
        return;
    if (*m == 48 && *n == 48 && *k == 48 && slow > 0) {
        slow--;
        usleep(60000);
    }
    usleep(2 + (long)*m * *n * *k / 100000);
}
"""


def calls(path, routine):
    """size -> ms, of a routine in a calibration."""
    found = re.search(rf"(?m)^{routine} (.*)$", path.read_text()) if path.exists() else None
    return {size: float(ms) for size, ms in (call.split(":") for call in found[1].split())} if found else {}


def calibrate(folder, *arguments, seconds=1, **options):
    return start(ACCEL, "calibrate", f"--seconds={seconds}", *arguments, env={**HIDDEN, "HOME": str(folder)}, **options)


def with_slow_library(folder, slow, enough):
    """A calibration of the BLAS that is slow so many times; with more time until its calls are enough: others may leave
    too little."""
    library, model = folder / "libslow.so", folder / "model"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DSLOW={slow}", "-x", "c", "-", "-o", library], input=SOURCE,
                   text=True, check=True)
    for seconds in 4, 15, 60, 200:
        done = calibrate(folder, "--library", library, "--output", model, seconds=seconds)
        found = calls(model, "dgemm")
        if enough(found):
            break
    assert done.returncode == 0, done.stderr
    assert "800x25x25" in found
    return done, found


def test_a_call_that_is_slow_at_first_is_measured_again(tmp_path):
    _, found = with_slow_library(tmp_path, 6, lambda found: "48x48x48" in found)
    assert found["48x48x48"] < 50


def test_a_call_that_is_always_slow_is_left_out(tmp_path):
    done, found = with_slow_library(tmp_path, 100000, lambda found: True)
    assert "48x48x48" not in found
    assert "left out, as larger ones" in done.stdout


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A calibration on one processor, which three other processes use, too: the process, and routine -> [(order, ms)]
    of squares."""
    folder = tmp_path_factory.mktemp("busy")
    processor = {min(os.sched_getaffinity(0))}
    pin = lambda: os.sched_setaffinity(0, processor)  # noqa: E731
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=pin) for _ in range(3)]
    try:
        done = calibrate(folder, "--library=libblas.so.3", "--output", folder / "model", preexec_fn=pin, seconds=3)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    return done, {routine: [(int(size.split("x")[0]), ms) for size, ms in calls(folder / "model", routine).items()
                            if len(set(size.split("x"))) == 1] for routine in ("dgemm", "sgemm", "zgemm")}


def test_a_busy_machine_is_worth_one_line(busy):
    done, _ = busy
    assert done.returncode == 0
    assert re.fullmatch(r"accel: the machine is busy: other processes used? [01]\.\d of 1 processor; the times .*\n",
                        done.stderr)


@pytest.mark.parametrize("routine", ["dgemm", "sgemm", "zgemm"])
def test_no_call_takes_longer_than_twice_a_larger_one(busy, routine):
    squares = busy[1][routine]
    assert squares
    assert not [(n, ms) for n, ms in squares if any(other > n and 2.01 * less < ms for other, less in squares)]


def test_a_terminal_is_shown_progress(tmp_path):
    shown = on_terminal(ACCEL, "calibrate", "--seconds=1", "--output", tmp_path / "seen", "--library=libblas.so.3",
                        env={**HIDDEN, "HOME": str(tmp_path)}, stdout=False, stderr=True, check=True)
    assert re.search(rb"\d+ %  CPU  \w+ \d+", shown)


def test_a_file_is_shown_no_progress(tmp_path):
    done = calibrate(tmp_path, "--library=libblas.so.3", "--output", tmp_path / "seen")
    assert "%" not in done.stderr
    assert done.stderr.count("\n") <= 1
