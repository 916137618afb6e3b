#!/usr/bin/python3 -B
"""Programs that change their surroundings: descriptors closed and used again, other folders and users, limits, full disks,
signal handlers of their own, threads with fork and dlopen; and where a log may go, and where not."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, TEST_GPU, TESTS, UNDER_TSAN, clean_env, start
from lib.tap import Tap

tap = Tap()
ROOT_USER = os.geteuid() == 0
NOBODY = 65534
MODES = {"no GPU": NO_GPU, "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0"}}


def surroundings(*steps, env, **options):
    return start("surroundings", *steps, env={**env, **LOG, "OPENBLAS_NUM_THREADS": "1"}, **options)


def count(path):
    """Decision lines of a log; -1 where there is none."""
    return len(parse_log(Path(path).read_text())) if Path(path).exists() else -1


def empty_folder():
    folder = tempfile.mkdtemp(prefix="accel-hardening-")
    os.chmod(folder, 0o755)
    return folder


folder = empty_folder()
log, data = folder + "/log", folder + "/data"


def fresh(env):
    for path in log, data:
        Path(path).unlink(missing_ok=True)
    return {**env, "ACCEL_LOG_FILE": log}


# ---- Descriptors ----

for mode, env in MODES.items():
    done = surroundings("multiply:2", "close:3", "multiply:2", env=fresh(env))
    tap.ok(done.returncode == 0 and count(log) == 4 and not said(done), f"close_range(3, ~0), {mode}: the log goes on",
           done.returncode, count(log), done.stderr)
    done = surroundings("multiply:2", "close:3", "multiply:2", env=env)
    tap.ok(done.returncode == 0 and len(lines_for(done)) == 4, f"the same with the log on stderr, {mode}", done.returncode, done.stderr)
    for name, steps, lines in (
        ("all numbers used again", ["files:4096", "multiply", "close:3", f"take:{data}", "multiply:3"], 4),
        ("all closed, with stdout and stderr", ["files:4096", "multiply", "close:0", f"take:{data}", "multiply:3"], 4),
        ("before the first call", ["files:4096", "close:0", f"take:{data}", "multiply:3"], 3),
        ("few descriptors allowed", ["files:64", "multiply", "close:3", f"take:{data}", "multiply:3"], None),
        # The file system may give the log's inode to the program's file.
        ("the log is removed", ["files:64", "multiply", f"unlink:{log}", "close:3", f"take:{data}", "multiply:3"], None),
        ("in a child", ["files:4096", "multiply", "fork", "close:3", f"take:{data}", "multiply:3"], 4),
    ):
        done = surroundings(*steps, env=fresh(env))
        tap.ok(done.returncode == 0 and Path(data).read_bytes() == b"",
               f"{name}, {mode}: nothing is written into the program's file", done.returncode, Path(data).read_bytes()[:300])
        # The last ones have no number left for it.
        tap.ok(lines is None or count(log) == lines, f"{name}, {mode}: the log has every call", count(log))
    fresh(env)
    done = surroundings("close:0", f"take:{data}", "multiply:2", env={**env, "ACCEL_SUMMARY": "1", "ACCEL_MEMORY": "lots"})
    tap.ok(done.returncode == 0 and Path(data).read_bytes() == b"", f"a log on stderr, {mode}: nor with what is said and summed up",
           Path(data).read_bytes()[:300])

for numbers in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
    full = {**clean_env(folder), **fresh(TEST_GPU), **LOG}
    done = subprocess.run(["/bin/sh", "-c", f'exec "$0" "$@" {numbers}', TESTS / "surroundings", "multiply:2", "fork", "multiply:2"],
                          env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.ok(done.returncode == 0 and count(log) == 4 and (done.stdout, done.stderr) == ("", ""),
           f"started with {numbers}", done.returncode, count(log), done.stderr)
done = surroundings("multiply", "run:ls -l /proc/self/fd", env=fresh(TEST_GPU))
tap.ok(done.returncode == 0 and "->" in done.stdout and folder not in done.stdout, "programs that it executes do not have the log open",
       done.stdout)

# ---- Folders and users ----

os.makedirs(folder + "/inner/dev", exist_ok=True)
done = surroundings("chdir:/", "multiply:2", env={**fresh(TEST_GPU), "ACCEL_CUDA_DIR": os.path.relpath(BUILD / "testgpu", TESTS.parents[1])})
tap.ok(done.returncode == 0 and count(log) == 2 and "ran=gpu0" in Path(log).read_text(),
       "chdir: a relative ACCEL_CUDA_DIR is meant from where the program was started", Path(log).read_text(), done.stderr)
if ROOT_USER:
    for mode, env in MODES.items():
        done = surroundings("multiply", f"chroot:{folder}/inner", "multiply:2", env=fresh(env))
        tap.ok(done.returncode == 0 and count(log) == 3 and not said(done), f"chroot, {mode}: the log goes on", done.stderr)
        done = surroundings("multiply", f"chroot:{folder}/inner", "close:3", "multiply:2", env=fresh(env))
        tap.ok(done.returncode == 0 and count(log) == 1 and len(lines_for(done)) == 2 and len(said(done)) == 1,
               f"chroot and close_range, {mode}: then it goes to stderr, and that is said once", done.stderr)
        done = surroundings("multiply", f"user:{NOBODY}", "multiply:2", env=fresh(env))
        tap.ok(done.returncode == 0 and count(log) == 3 and not said(done), f"setuid, {mode}: the log goes on", done.stderr)
        done = surroundings("multiply", f"user:{NOBODY}", "close:3", "multiply:2", env=fresh(env))
        tap.ok(done.returncode == 0 and count(log) == 1 and len(lines_for(done)) == 2 and len(said(done)) == 1
               and "(Permission denied)" in said(done)[0], f"setuid and close_range, {mode}: then it goes to stderr, and that is said once",
               done.stderr)
    closed = folder + "/closed"
    os.mkdir(closed, 0o700)
    Path(closed, "accel").mkdir()
    Path(closed, "accel/model").write_text("not for others")
    done = surroundings(f"user:{NOBODY}", "multiply:2", env={**MODES["test GPU"], "ACCEL_POLICY": "auto", "ACCEL_START": "wait", "XDG_CACHE_HOME": closed})
    tap.ok(done.returncode == 0 and len(lines_for(done)) == 2 and not said(done), "setuid: another user's calibration is not missed", done.stderr)
    done = surroundings(f"user:{NOBODY}", "multiply:2", env={**MODES["test GPU"], "ACCEL_POLICY": "auto", "ACCEL_START": "wait",
                                                             "ACCEL_MODEL": closed + "/accel/model"})
    tap.ok(done.returncode == 0 and len(said(done)) == 1 and "may not be opened" in said(done)[0], "unless the user has named it", done.stderr)
else:
    tap.skip("chroot and setuid", "needs root")

# ---- Limits and full disks: of the test GPU's memory, too, which it has after the first call ----

for mode, env in MODES.items():
    done = surroundings("multiply", "bytes:4096", "multiply:100", "status", env=fresh(env))
    tap.ok(done.returncode == 0 and done.stdout == "0 pending, 0 blocked, 0 handled\n", f"a limit on the size of files, {mode}: no SIGXFSZ",
           done.returncode, done.stdout, done.stderr)
    tap.ok(os.path.getsize(log) == 4096 and said(done) == [f"accel: ACCEL_LOG_FILE: {log} cannot be written (File too large); lines of the "
                                                           "log are lost"], f"said once, {mode}", done.stderr)
    with open(data, "w+") as own:
        done = surroundings("multiply", "bytes:2048", "multiply:100", "status", env=env, stderr=own)
    tap.ok(done.returncode == 0 and done.stdout == "0 pending, 0 blocked, 0 handled\n" and os.path.getsize(data) == 2048,
           f"the same on stderr, {mode}", done.returncode, done.stdout)
    done = surroundings("multiply:9", "status", env={**env, "ACCEL_LOG_FILE": "/dev/full"})
    tap.ok(done.returncode == 0 and said(done) == ["accel: ACCEL_LOG_FILE: /dev/full cannot be written (No space left on device); lines of the "
                                                   "log are lost"], f"a full disk is said once, {mode}", done.stderr)
if UNDER_TSAN:
    tap.skip("an estimate that cannot be kept", "ThreadSanitizer's runtime writes a file when it starts")
else:
    done = start("/bin/bash", "-c", 'ulimit -f 0; exec "$0" "$@"', TESTS / "steps", "dgemm:300:4",
                 env={**TEST_GPU, "ACCEL_ESTIMATE": "H200", "ACCEL_ESTIMATE_DIR": folder})
    tap.ok(done.returncode == 0, "an estimate that cannot be kept", done.returncode, done.stderr)

small = folder + "/small"
os.mkdir(small)
mounted = ROOT_USER and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", small], stderr=subprocess.DEVNULL).returncode == 0
if mounted:
    try:
        for mode, env in MODES.items():
            path = small + "/log"
            done = surroundings("multiply", f"fill:{small}/filler", "multiply:60", f"unlink:{small}/filler", "multiply:20",
                                env={**env, "ACCEL_LOG_FILE": path})
            lines = [line for line in Path(path).read_text().splitlines() if " event=" not in line]
            whole = [line for line in lines if re.fullmatch(r"accel( [a-z_]+=\S+)+", line) and " m=8 n=8 k=8 ran=" in line]
            tap.ok(done.returncode == 0 and len(said(done)) == 1 and "(No space left on device)" in said(done)[0],
                   f"a file system that is full for a while, {mode}", done.stderr)
            tap.ok(21 < len(whole) < 81 and len(lines) <= len(whole) + 1 and all(line in whole for line in lines[-20:]),
                   f"{mode}: afterwards the log goes on, each call with a line of its own", len(whole), *lines[-22:])
            os.unlink(path)
    finally:
        subprocess.run(["umount", small], check=True)
else:
    tap.skip("a file system that is full for a while", "needs root, and mount()")

# ---- Where a log may go ----

if ROOT_USER:
    for name, mode, owner, hard, allowed in (("sticky", 0o1777, 0, False, True), ("sticky, another user's file", 0o1777, NOBODY, False, False),
                                             ("sticky, a second name", 0o1777, 0, True, False), ("open", 0o777, NOBODY, False, False),
                                             ("private, another user's file", 0o755, NOBODY, False, True), ("private, a second name", 0o755, 0, True, True)):
        shared = Path(empty_folder())
        target = shared / "log"
        target.write_text("")
        os.chown(target, owner, owner)
        if hard:
            os.link(target, shared / "other")
        os.chmod(shared, mode)
        done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": str(target)})
        good = count(target) == 2 and not said(done) if allowed else count(target) == 0 and len(said(done)) == 1 and len(lines_for(done)) == 2
        tap.ok(done.returncode == 0 and good, f"a folder that is {name}: {'used' if allowed else 'refused, which is said once'}", done.stderr)
        shutil.rmtree(shared)
else:
    tap.skip("logs in shared folders", "needs root, for files of another user")
for mode, allowed in ((0o1777, True), (0o777, False), (0o755, True)):
    shared = Path(empty_folder())
    (shared / "link").symlink_to(log)
    os.chmod(shared, mode)
    fresh({})
    done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": str(shared / "link")})
    tap.ok(done.returncode == 0 and (count(log) == 2 and not said(done) if allowed else not Path(log).exists() and len(said(done)) == 1),
           f"a link of one's own, in a folder of mode {mode:o}: {'followed' if allowed else 'not followed'}", done.stderr)
    shutil.rmtree(shared)
fifo = folder + "/fifo"
os.mkfifo(fifo)
done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": fifo}, timeout=300)
tap.ok(done.returncode == 0 and len(said(done)) == 1 and "(nobody reads from it)" in said(done)[0] and len(lines_for(done)) == 2,
       "a FIFO that nobody reads is not waited for", done.stderr)
read = []
reader = threading.Thread(target=lambda: read.append(Path(fifo).read_text()))
reader.start()
holder = os.open(fifo, os.O_RDWR)  # the reader's open() has its writer
done = surroundings("multiply:2000", env={**NO_GPU, "ACCEL_LOG_FILE": fifo})
os.close(holder)
reader.join()
tap.ok(done.returncode == 0 and len(parse_log(read[0])) == 2000 and not said(done), "a slow reader is waited for", done.stderr, len(read[0]))
for path, why in ((folder, "Is a directory"), (folder + "/", "Is a directory"), (folder + "/no/log", "No such file or directory"),
                  (log + "/log", "Not a directory"), (folder + "/" + 300 * "x", "File name too long"), (5000 * "x", "File name too long")):
    Path(log).write_text("")
    done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": path})
    tap.ok(done.returncode == 0 and len(said(done)) == 1 and f"({why})" in said(done)[0] and len(lines_for(done)) == 2,
           f"{why}: said once, and the log goes to stderr", done.stderr[:600])

# ---- Signals ----

native = start("handlers", env={"OPENBLAS_NUM_THREADS": "1"})
tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, "handlers of every signal, without libaccel", native.stdout, native.stderr)
for mode, env in MODES.items():
    for logged, extra in {"silent": {}, "logged": {**LOG, "ACCEL_LOG_FILE": log}}.items():
        done = start("handlers", env={**env, **extra, "OPENBLAS_NUM_THREADS": "1"})
        own = [line for line in done.stderr.splitlines() if not line.startswith("accel: no GPU is used: ")]
        tap.ok((done.returncode, done.stdout, own) == (0, native.stdout, []), f"the same with it, {mode}, {logged}",
               done.returncode, *[line for line in done.stdout.splitlines() if "WRONG" in line], done.stderr)

# ---- Threads, fork, dlopen, dlclose: with the reference BLAS, for the child of a fork may wait for
# OpenBLAS's locks for ever ----

REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64"}
for mode, env in {"without libaccel": {}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG, "ACCEL_POLICY": "cpu"}, "test GPU": MODES["test GPU"],
                  "test GPU, logged": {**MODES["test GPU"], **LOG, "ACCEL_LOG_FILE": folder + "/log.%p"}}.items():
    done = start("turmoil", 2500 if LONG else 1000, TESTS, env={**env, **REFERENCE}, timeout=300)
    did = [int(n) for n in re.findall(r": (\d+), 0 wrong", done.stdout)]
    own = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
    tap.ok(done.returncode == 0 and len(did) == 4 and min(did) > 5 and not own, f"threads, fork, dlopen and dlclose at once, {mode}",
           done.returncode, done.stdout, *own[:10])
    tap.note(" ".join(done.stdout.split("\n")))
shutil.rmtree(folder)
tap.done()
