#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs that may do little (seccomp, RLIMIT_NOFILE=3), that make others (vfork, posix_spawn, daemon), logs that
are FIFOs, and valgrind: calls are right, and nothing ends that would not end without libaccel."""

import ctypes
import glob
import os
import shutil
import signal
import subprocess
import time

import pytest

from lib.log import lines_for, parse_log, said
from lib.programs import LOG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, clean_env, start

KCMP = {"x86_64": 312, "aarch64": 272}[os.uname().machine]
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas", "OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
MODES = {"no GPU": NO_GPU, "test GPU": TEST_GPU, "test GPU, auto": {**TEST_GPU, "ACCEL_POLICY": "auto"}}


def surroundings(*steps, env, **options):
    return start("surroundings", *steps, env={**REFERENCE, **env}, **options)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture(params=MODES)
def env(request):
    return MODES[request.param]


@pytest.fixture
def logged(env, log):
    """The mode with a log of its own."""
    return {**env, **LOG, "ACCEL_LOG_FILE": str(log)}


def where(log):
    """Where each call ran."""
    return [line["ran"] for line in parse_log(log.read_text())] if log.exists() else []


# ---- seccomp that forbids all but reading, writing and computing; RLIMIT_NOFILE=3 ----

LIMITS = {"seccomp": "forbid", "RLIMIT_NOFILE=3": "files:3"}


@pytest.fixture(params=[(limit, when) for limit in LIMITS for when in ("before the first call", "after it")],
                ids=" ".join)
def restricted(request):
    """The steps of a program that is restricted, before its first call or after it."""
    limit, when = request.param
    return [LIMITS[limit], "multiply:20"
            ] if when == "before the first call" else ["multiply:2", LIMITS[limit], "multiply:20"]


def test_seccomp_without_libaccel():
    assert surroundings("forbid", "multiply:3", env={}).returncode == 0


def test_restricted_program_is_right(restricted, env):
    done = surroundings(*restricted, env=env)
    assert done.returncode == 0, done.stderr[:500]


def test_restricted_program_is_right_logged(restricted, env):
    done = surroundings(*restricted, env={**env, **LOG})
    assert done.returncode == 0, done.stderr[:500]
    if "files:3" in restricted:
        assert len(lines_for(done)) >= 20 or len(said(done)) <= 2, "no more than is to be said"


def test_restricted_program_is_right_with_a_log_of_its_own(restricted, logged):
    done = surroundings(*restricted, env=logged)
    assert done.returncode == 0, done.stderr[:500]


# ---- seccomp that ends the process for anything else, from before the first call on: without a
# GPU, libaccel asks the system for nothing ----

ENDING = {"without libaccel": {}, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU}


@pytest.mark.parametrize("mode", ENDING)
@pytest.mark.parametrize("steps", (["end-for", "multiply:20"], ["multiply:2", "end-for", "multiply:20"]), ids=" ".join)
def test_seccomp_that_ends_the_process_and_it_lives(steps, mode):
    if mode == "no GPU" and (RUNTIME or glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg")):
        pytest.skip("a sanitizer, or this machine has a GPU's device files")
    done = surroundings(*steps, env=ENDING[mode])
    assert (done.returncode, done.stderr) == (0, "")


def test_seccomp_that_ends_the_process_does():
    assert surroundings("end-for", "status", env={}).returncode == -signal.SIGSYS


# ---- vfork, posix_spawn, daemon ----


@pytest.fixture
def ran(env):
    """Where calls run that are not left to the CPU."""
    return "gpu0" if env.get("ACCEL_POLICY") == "gpu" else "cpu"


def test_vfork_and_the_parent_keeps_its_gpu(logged, log, ran):
    """Child, program, and parent."""
    done = surroundings("multiply", "vfork", "multiply:2", env=logged)
    assert done.returncode == 0, done.stderr
    assert where(log).count(ran) >= 5


def test_vfork_before_the_first_call_and_the_parent_has_its_gpu(logged, log, ran):
    """A child that is the first to call BLAS shares the memory, and must not start CUDA there: the parent's never
    starts then."""
    done = surroundings("vfork", "multiply:2", env=logged)
    assert done.returncode == 0, done.stderr
    assert len(where(log)) == 5
    assert where(log).count(ran) >= 4


def test_clone_before_the_first_call_and_child_and_parent_have_the_gpu(logged, log, ran):
    may_compare = ctypes.CDLL(None).syscall(KCMP, os.getpid(), os.getpid(), 1, 0, 0) == 0
    done = surroundings("clone", "multiply:2", env=logged)
    if ran == "gpu0" and not may_compare:
        pytest.skip("kcmp(2) is forbidden here: such a child stays on the CPU")
    assert done.returncode == 0, done.stderr
    assert where(log).count(ran) == 3


def test_vforks_child_that_must_have_the_gpu_is_ended(log):
    done = surroundings("vfork", env={**TEST_GPU, **LOG, "ACCEL_LOG_FILE": str(log), "ACCEL_REQUIRE": "gpu"})
    assert done.returncode == 2
    assert "(why=forked)" in done.stderr


def test_posix_spawn(logged, log, ran):
    done = surroundings("multiply", "spawn:multiply:2", "multiply", env=logged)
    assert done.returncode == 0, done.stderr
    assert where(log).count(ran) == 4


@pytest.mark.parametrize("steps, calls", ((["daemon", "multiply:3"], 3), (["multiply", "daemon", "multiply:3"], 4)),
                         ids=("before the first call", "after it"))
def test_daemon(steps, calls, logged, log, tmp_path):
    """daemon(3) leaves the parent's exit status; the pipe ends with the child."""
    done = surroundings(*steps, f"run:echo done >{tmp_path}/done", env=logged)
    while not (tmp_path / "done").exists():
        time.sleep(0.01)
    assert done.returncode == 0, done.stderr
    assert len(where(log)) == calls


# ---- FIFOs ----


def test_fifo_whose_reader_goes_away(env, tmp_path):
    """No SIGPIPE comes, and it is said once."""
    fifo, first = tmp_path / "fifo", tmp_path / "first"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    program = subprocess.Popen([
        TESTS / "surroundings", "multiply", f"run:touch {first}; while [ -e {first} ]; do sleep 0.01; done",
        "multiply:50", "status"
    ], env={**clean_env(str(tmp_path)), **REFERENCE, **env, **LOG, "ACCEL_LOG_FILE": str(fifo)}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    while not first.exists():
        time.sleep(0.01)
    os.close(reader)
    first.unlink()
    stdout, stderr = program.communicate()
    own = [line for line in stderr.splitlines() if "no GPU is used" not in line]
    assert (program.returncode, stdout) == (0, "0 pending, 0 blocked, 0 handled\n")
    assert own == [f"accel: ACCEL_LOG_FILE: {fifo} cannot be written (Broken pipe); lines of the log are lost"]


def test_stderr_that_is_full_and_does_not_block():
    """A pipe: lines are lost, whole ones are left, and the program goes on."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    done = surroundings("multiply:2000", env={**NO_GPU, **LOG}, stderr=ends[1])
    os.close(ends[1])
    with os.fdopen(ends[0]) as pipe:
        lines = parse_log(pipe.read())
    assert done.returncode == 0
    assert 100 < len(lines) < 2000


# ---- valgrind ----

# glibc's linker compares strings by words, behind their ends (dlopen with a DT_RUNPATH).
SUPPRESSIONS = "{\n  linker\n  Memcheck:Addr8\n  fun:strncmp\n  fun:is_dst\n  ...\n}\n"


@pytest.mark.skipif(bool(RUNTIME), reason="not beside a sanitizer")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
@pytest.mark.parametrize("mode", ("without libaccel", *MODES))
def test_valgrind_finds_no_errors(mode, log, tmp_path):
    (tmp_path / "suppressions").write_text(SUPPRESSIONS)
    env = {**MODES[mode], **LOG, "ACCEL_LOG_FILE": str(log)} if mode in MODES else {}
    done = start(shutil.which("valgrind"), "--error-exitcode=9", "-q", f"--suppressions={tmp_path}/suppressions",
                 "--leak-check=no", TESTS / "surroundings", "multiply:3", env={**REFERENCE, **env})
    assert done.returncode == 0
    assert not [line for line in done.stderr.splitlines() if line.startswith("==")]
