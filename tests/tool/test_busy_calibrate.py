#!/usr/bin/python3 -B
"""accel calibrate on a busy machine: it says so, and does not believe a call that takes longer than larger ones. Only a terminal is shown
progress."""

import os
import pty
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from lib.programs import BUILD, NO_GPU, start
from lib.tap import Tap

ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
# A BLAS whose products of order 48 take 60 ms for the first SLOW times. Its other names, which are
# not measured, make a BLAS of it.
SOURCE = """
#include <unistd.h>
#define NOTHING(name) void name(void) {}
NOTHING(sgemv_) NOTHING(dgemv_) NOTHING(cgemv_) NOTHING(zgemv_) NOTHING(ssymv_) NOTHING(dsymv_) NOTHING(sger_) NOTHING(dger_)
int isamax_(const int *n, const float *x, const int *s)
{
    int best = 0;
    for (int i = 1; i < *n; i++)
        if ((x[i * *s] < 0 ? -x[i * *s] : x[i * *s]) > (x[best * *s] < 0 ? -x[best * *s] : x[best * *s]))
            best = i;
    return *n > 0 ? best + 1 : 0;
}
static int slow = SLOW;
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a, const int *lda,
            const double *b, const int *ldb, const double *beta, double *c, const int *ldc)
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

tap = Tap()


def calls(path, routine):
    found = re.search(rf"(?m)^{routine} (.*)$", Path(path).read_text())
    return {size: float(ms) for size, ms in (call.split(":") for call in found[1].split())} if found else {}


def calibrate(folder, *arguments, seconds=1, **options):
    return start(ACCEL, "calibrate", f"--seconds={seconds}", *arguments, env={**HIDDEN, "HOME": folder}, **options)


with tempfile.TemporaryDirectory() as folder:
    for slow, says in ((6, False), (100000, True)):
        library = Path(folder, f"libslow{slow}.so")
        subprocess.run(["gcc", "-shared", "-fPIC", f"-DSLOW={slow}", "-x", "c", "-", "-o", library], input=SOURCE, text=True, check=True)
        model = Path(folder, f"model{slow}")
        for seconds in 4, 15, 60, 200:  # other processes may leave too little time for measuring it again
            done = calibrate(folder, "--library", library, "--output", model, seconds=seconds)
            found = calls(model, "dgemm") if model.exists() else {}
            kept = found.get("48x48x48")
            if says or kept is not None:
                break
        tap.ok(done.returncode == 0 and "800x25x25" in found and (kept is None if says else kept is not None and kept < 50),
               f"a 48x48 that takes 60 ms {'always' if says else 'at first'} is {'left out' if says else 'measured again'}", done.stderr, found)
        tap.ok(("left out, as larger ones" in done.stdout) == says or not says, "and that is said" if says else "nothing more is said", done.stdout)

    # On one processor, which three other processes use, too.
    processor = {min(os.sched_getaffinity(0))}
    pin = lambda: os.sched_setaffinity(0, processor)  # noqa: E731
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=pin) for _ in range(3)]
    try:
        model = Path(folder, "busy")
        done = calibrate(folder, "--library=libblas.so.3", "--output", model, preexec_fn=pin, seconds=3)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    tap.ok(done.returncode == 0 and re.fullmatch(r"accel: the machine is busy: other processes used? [01]\.\d of 1 processor; the times .*\n", done.stderr),
           "a busy machine: one line", done.returncode, done.stderr)
    squares = {r: [(int(s.split("x")[0]), ms) for s, ms in calls(model, r).items() if len(set(s.split("x"))) == 1] for r in ("dgemm", "sgemm", "zgemm")}
    wrong = [(r, n, ms) for r, found in squares.items() for n, ms in found if any(other > n and 2.01 * less < ms for other, less in found)]
    tap.ok(all(squares.values()) and not wrong, "a busy machine: no call takes longer than twice a larger one", wrong, squares)

    # Only a terminal is shown progress.
    master, slave = pty.openpty()
    shown = []

    def read():
        try:
            while part := os.read(master, 4096):
                shown.append(part.decode())
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    done = start(ACCEL, "calibrate", "--seconds=1", "--output", f"{folder}/seen", "--library=libblas.so.3", env={**HIDDEN, "HOME": folder}, stderr=slave)
    os.close(slave)
    reader.join()
    os.close(master)
    tap.ok(done.returncode == 0 and re.search(r"\d+ %  CPU  \w+ \d+", "".join(shown)), "a terminal is shown progress", *shown[:5])
    done = calibrate(folder, "--library=libblas.so.3", "--output", f"{folder}/seen")
    tap.ok("%" not in done.stderr and done.stderr.count("\n") <= 1, "a file is shown no progress", done.stderr)
tap.done()
