#!/usr/bin/python3 -B
"""Programs that may do little (seccomp, RLIMIT_NOFILE=3), that make others (vfork, posix_spawn, daemon), logs that are FIFOs, and
valgrind: calls are right, and nothing ends that would not end without libaccel."""

import ctypes
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib.log import lines_for, parse_log, said
from lib.programs import LOG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, clean_env, start
from lib.tap import Tap

tap = Tap()
KCMP = {"x86_64": 312, "aarch64": 272}[os.uname().machine]
MAY_COMPARE = ctypes.CDLL(None).syscall(KCMP, os.getpid(), os.getpid(), 1, 0, 0) == 0
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas", "OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
MODES = {"no GPU": NO_GPU, "test GPU": TEST_GPU, "test GPU, auto": {**TEST_GPU, "ACCEL_POLICY": "auto"}}
folder = tempfile.mkdtemp(prefix="accel-restricted-")
log = folder + "/log"


def surroundings(*steps, env, **options):
    return start("surroundings", *steps, env={**REFERENCE, **env}, timeout=300, **options)


def count(**fields):
    lines = parse_log(Path(log).read_text()) if Path(log).exists() else []
    return len([line for line in lines if fields.items() <= line.items()])


def fresh(env):
    Path(log).unlink(missing_ok=True)
    return {**env, **LOG, "ACCEL_LOG_FILE": log}


# ---- seccomp that forbids all but reading, writing and computing; RLIMIT_NOFILE=3 ----

native = surroundings("forbid", "multiply:3", env={})
tap.ok(native.returncode == 0, "seccomp, without libaccel", native.returncode, native.stderr)
for limit, name in (("forbid", "seccomp"), ("files:3", "RLIMIT_NOFILE=3")):
    for mode, env in MODES.items():
        for steps, when in (([limit, "multiply:20"], "before the first call"), (["multiply:2", limit, "multiply:20"], "after it")):
            for logged, extra in {"silent": {}, "logged": LOG}.items():
                done = surroundings(*steps, env={**env, **extra})
                tap.ok(done.returncode == 0, f"{name} {when}, {mode}, {logged}: results are right", done.returncode, done.stderr[:500])
                if extra and limit == "files:3":
                    tap.ok(len(lines_for(done)) >= 20 or len(said(done)) <= 2, f"{name} {when}, {mode}: no more than is to be said", done.stderr[:500])
            done = surroundings(*steps, env=fresh(env))
            tap.ok(done.returncode == 0, f"{name} {when}, {mode}, a log of its own: results are right", done.returncode, done.stderr[:500])

# ---- seccomp that ends the process for anything else, from before the first call on: without a
# GPU, libaccel asks the system for nothing ----

for mode, env in {"without libaccel": {}, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU}.items():
    if mode == "no GPU" and (RUNTIME or glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg")):
        tap.skip("seccomp that ends the process, no GPU", "a sanitizer, or this machine has a GPU's device files")
        continue
    for steps in (["end-for", "multiply:20"], ["multiply:2", "end-for", "multiply:20"]):
        done = surroundings(*steps, env=env)
        tap.ok((done.returncode, done.stderr) == (0, ""), f"seccomp that ends the process, {' '.join(steps)}, {mode}: it lives", done.returncode, done.stderr)
done = surroundings("end-for", "status", env={})
tap.ok(done.returncode == -signal.SIGSYS, "seccomp that ends the process: it does", done.returncode)

# ---- vfork, posix_spawn, daemon ----

for mode, env in MODES.items():
    ran = "gpu0" if env.get("ACCEL_POLICY") == "gpu" else "cpu"
    done = surroundings("multiply", "vfork", "multiply:2", env=fresh(env))
    tap.ok(done.returncode == 0 and count() >= 5, f"vfork, {mode}: child, program, and parent", done.returncode, count(), done.stderr)
    tap.ok(count(ran=ran) >= 5, f"vfork, {mode}: the parent keeps its GPU", Path(log).read_text())
    # A child that is the first to call BLAS shares the memory, and must not start CUDA there: the
    # parent's never starts then.
    done = surroundings("vfork", "multiply:2", env=fresh(env))
    tap.ok(done.returncode == 0 and count() == 5 and count(ran=ran) >= 4, f"vfork before the first call, {mode}: the parent has its GPU", done.returncode, Path(log).read_text())
    done = surroundings("clone", "multiply:2", env=fresh(env))
    if ran == "gpu0" and not MAY_COMPARE:
        tap.skip("clone before the first call", "kcmp(2) is forbidden here: such a child stays on the CPU")
    else:
        tap.ok(done.returncode == 0 and count(ran=ran) == 3, f"clone before the first call, {mode}: child and parent have the GPU", done.returncode, Path(log).read_text())
    if env.get("ACCEL_POLICY") == "gpu":
        done = surroundings("vfork", env={**fresh(env), "ACCEL_REQUIRE": "gpu"})
        tap.ok(done.returncode == 2 and "(why=forked)" in done.stderr, "a vfork's child that must have the GPU is ended", done.returncode, done.stderr)
    done = surroundings("multiply", "spawn:multiply:2", "multiply", env=fresh(env))
    tap.ok(done.returncode == 0 and count(ran=ran) == 4, f"posix_spawn, {mode}", done.returncode, count(), done.stderr)
    for steps, calls in ((["daemon", "multiply:3"], 3), (["multiply", "daemon", "multiply:3"], 4)):
        # daemon(3) leaves the parent's exit status; the pipe ends with the child.
        done = surroundings(*steps, f"run:echo done >{folder}/done", env=fresh(env))
        while not Path(folder, "done").exists():
            time.sleep(0.01)
        os.unlink(folder + "/done")
        tap.ok(done.returncode == 0 and count() == calls, f"{' '.join(steps)}, {mode}", done.returncode, count(), done.stderr)

# ---- FIFOs ----

fifo = folder + "/fifo"
os.mkfifo(fifo)
for mode, env in MODES.items():
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    program = subprocess.Popen([TESTS / "surroundings", "multiply", f"run:touch {folder}/first; while [ -e {folder}/first ]; do sleep 0.01; done",
                                "multiply:50", "status"], env={**clean_env(folder), **REFERENCE, **env, **LOG, "ACCEL_LOG_FILE": fifo},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not Path(folder, "first").exists():
        time.sleep(0.01)
    os.close(reader)
    os.unlink(folder + "/first")
    stdout, stderr = program.communicate()
    own = [line for line in stderr.splitlines() if "no GPU is used" not in line]
    tap.ok(program.returncode == 0 and stdout == "0 pending, 0 blocked, 0 handled\n", f"a FIFO whose reader goes away, {mode}: no SIGPIPE",
           program.returncode, stdout)
    tap.ok(own == [f"accel: ACCEL_LOG_FILE: {fifo} cannot be written (Broken pipe); lines of the log are lost"], f"{mode}: said once", stderr)
# A pipe as stderr, full and non-blocking: lines are lost, whole ones are left, and the program goes
# on.
ends = os.pipe()
os.set_blocking(ends[1], False)
done = surroundings("multiply:2000", env={**NO_GPU, **LOG}, stderr=ends[1])
os.close(ends[1])
with os.fdopen(ends[0]) as pipe:
    lines = parse_log(pipe.read())
tap.ok(done.returncode == 0 and 100 < len(lines) < 2000, "a stderr that is full and does not block: lines are lost, none is cut", done.returncode, len(lines))

# ---- valgrind ----

if RUNTIME:
    tap.skip("valgrind", "not beside a sanitizer")
elif not shutil.which("valgrind"):
    tap.skip("valgrind", "no valgrind")
else:
    # glibc's linker compares strings by words, behind their ends (dlopen with a DT_RUNPATH).
    suppressions = folder + "/suppressions"
    Path(suppressions).write_text("{\n  linker\n  Memcheck:Addr8\n  fun:strncmp\n  fun:is_dst\n  ...\n}\n")
    for mode, env in {"without libaccel": {}, **MODES}.items():
        done = start(shutil.which("valgrind"), "--error-exitcode=9", "-q", f"--suppressions={suppressions}", "--leak-check=no", TESTS / "surroundings", "multiply:3",
                     env={**REFERENCE, **env, **({**LOG, "ACCEL_LOG_FILE": log} if env else {})}, timeout=300)
        errors = [line for line in done.stderr.splitlines() if line.startswith("==")]
        tap.ok(done.returncode == 0 and not errors, f"valgrind, {mode}: no errors", done.returncode, *errors[:25])
shutil.rmtree(folder)
tap.done()
