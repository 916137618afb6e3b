#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs that change their surroundings: descriptors closed and used again, other folders and users, limits, full
disks, signal handlers of their own, threads with fork and dlopen; and where a log may go, and where not."""

import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, TEST_GPU, TESTS, UNDER_TSAN, clean_env, start

NOBODY = 65534
MODES = {"no GPU": NO_GPU, "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0"}}
ON_GPU = MODES["test GPU"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def surroundings(*steps, env, **options):
    return start("surroundings", *steps, env={**env, **LOG, "OPENBLAS_NUM_THREADS": "1"}, **options)


def count(path):
    """Decision lines of a log."""
    return len(parse_log(path.read_text()))


@pytest.fixture
def folder():
    """An empty one, which other users may enter."""
    with tempfile.TemporaryDirectory(prefix="accel-hardening-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def log(folder):
    return folder / "log"


@pytest.fixture(params=MODES)
def env(request):
    return MODES[request.param]


@pytest.fixture
def logged(env, log):
    """The mode with a log of its own."""
    return {**env, "ACCEL_LOG_FILE": str(log)}


def stays_silent(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert not said(done)


def says_once(done, what):
    """One line, in which this is; and the log's lines go to stderr."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(said(done)) == 1
    assert what in said(done)[0]


# ---- Descriptors ----


def test_close_range_and_the_log_goes_on(logged, log):
    """close_range(3, ~0)"""
    stays_silent(surroundings("multiply:2", "close:3", "multiply:2", env=logged))
    assert count(log) == 4


def test_close_range_with_the_log_on_stderr(env):
    done = surroundings("multiply:2", "close:3", "multiply:2", env=env)
    assert done.returncode == 0
    assert len(lines_for(done)) == 4


# With the number of lines that the log has then. The last ones have no number left for it, and the
# file system may give the inode of a log that is removed to the program's file.
STEPS = {
    "all numbers used again": (["files:4096", "multiply", "close:3", "take:DATA", "multiply:3"], 4),
    "all closed, with stdout and stderr": (["files:4096", "multiply", "close:0", "take:DATA", "multiply:3"], 4),
    "before the first call": (["files:4096", "close:0", "take:DATA", "multiply:3"], 3),
    "few descriptors allowed": (["files:64", "multiply", "close:3", "take:DATA", "multiply:3"], None),
    "the log is removed": (["files:64", "multiply", "unlink:LOG", "close:3", "take:DATA", "multiply:3"], None),
    "in a child": (["files:4096", "multiply", "fork", "close:3", "take:DATA", "multiply:3"], 4),
}


@pytest.mark.parametrize("steps, lines", STEPS.values(), ids=STEPS)
def test_nothing_is_written_into_the_programs_file(steps, lines, logged, log, folder):
    data = folder / "data"
    done = surroundings(*(step.replace("DATA", str(data)).replace("LOG", str(log)) for step in steps), env=logged)
    assert done.returncode == 0, done.stderr
    assert data.read_bytes() == b""
    assert lines is None or count(log) == lines


def test_nor_what_is_said_and_summed_up(env, folder):
    """With a log on stderr."""
    data = folder / "data"
    done = surroundings("close:0", f"take:{data}", "multiply:2",
                        env={**env, "ACCEL_SUMMARY": "1", "ACCEL_MEMORY": "lots"})
    assert done.returncode == 0
    assert data.read_bytes() == b""


@pytest.mark.parametrize("numbers", (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"))
def test_started_with_descriptors_closed(numbers, folder, log):
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {numbers}', TESTS / "surroundings", "multiply:2", "fork", "multiply:2"],
        env={**clean_env(str(folder)), **TEST_GPU, "ACCEL_LOG_FILE": str(log),
             **LOG}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert count(log) == 4


def test_programs_that_it_executes_do_not_have_the_log_open(folder, log):
    done = surroundings("multiply", "run:ls -l /proc/self/fd", env={**TEST_GPU, "ACCEL_LOG_FILE": str(log)})
    assert done.returncode == 0
    assert "->" in done.stdout
    assert str(folder) not in done.stdout


# ---- Folders and users ----


def test_relative_accel_cuda_dir_is_meant_from_where_the_program_was_started(log):
    done = surroundings(
        "chdir:/", "multiply:2", env={
            **TEST_GPU, "ACCEL_LOG_FILE": str(log),
            "ACCEL_CUDA_DIR": os.path.relpath(BUILD / "testgpu", TESTS.parents[1])
        })
    assert done.returncode == 0, done.stderr
    assert count(log) == 2
    assert "ran=gpu0" in log.read_text()


@pytest.fixture
def inner(folder):
    """A folder to be another root."""
    (folder / "inner/dev").mkdir(parents=True)
    return folder / "inner"


@needs_root
def test_chroot_and_the_log_goes_on(logged, log, inner):
    stays_silent(surroundings("multiply", f"chroot:{inner}", "multiply:2", env=logged))
    assert count(log) == 3


@needs_root
def test_chroot_and_close_range_and_the_log_goes_to_stderr(logged, log, inner):
    done = surroundings("multiply", f"chroot:{inner}", "close:3", "multiply:2", env=logged)
    says_once(done, "")
    assert count(log) == 1
    assert len(lines_for(done)) == 2


@needs_root
def test_setuid_and_the_log_goes_on(logged, log):
    stays_silent(surroundings("multiply", f"user:{NOBODY}", "multiply:2", env=logged))
    assert count(log) == 3


@needs_root
def test_setuid_and_close_range_and_the_log_goes_to_stderr(logged, log):
    done = surroundings("multiply", f"user:{NOBODY}", "close:3", "multiply:2", env=logged)
    says_once(done, "(Permission denied)")
    assert count(log) == 1
    assert len(lines_for(done)) == 2


@pytest.fixture
def closed(folder):
    """A folder with a calibration that only its owner may open."""
    path = folder / "closed"
    path.mkdir(0o700)
    (path / "accel").mkdir()
    (path / "accel/model").write_text("not for others")
    return path


@needs_root
def test_setuid_and_another_users_calibration_is_not_missed(closed):
    done = surroundings(f"user:{NOBODY}", "multiply:2",
                        env={**ON_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait", "XDG_CACHE_HOME": str(closed)})
    stays_silent(done)
    assert len(lines_for(done)) == 2


@needs_root
def test_unless_the_user_has_named_it(closed):
    says_once(
        surroundings(
            f"user:{NOBODY}", "multiply:2",
            env={**ON_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait", "ACCEL_MODEL": f"{closed}/accel/model"}),
        "may not be opened")


# ---- Limits and full disks: of the test GPU's memory, too, which it has after the first call ----

CALM = "0 pending, 0 blocked, 0 handled\n"  # no SIGXFSZ has come


def is_lost(path, why):
    return [f"accel: ACCEL_LOG_FILE: {path} cannot be written ({why}); lines of the log are lost"]


def test_limit_on_the_size_of_files(logged, log):
    done = surroundings("multiply", "bytes:4096", "multiply:100", "status", env=logged)
    assert (done.returncode, done.stdout) == (0, CALM), done.stderr
    assert log.stat().st_size == 4096
    assert said(done) == is_lost(log, "File too large")


def test_limit_on_the_size_of_files_of_stderr(env, folder):
    data = folder / "data"
    with open(data, "w+") as own:
        done = surroundings("multiply", "bytes:2048", "multiply:100", "status", env=env, stderr=own)
    assert (done.returncode, done.stdout) == (0, CALM)
    assert data.stat().st_size == 2048


def test_full_disk_is_said_once(env):
    done = surroundings("multiply:9", "status", env={**env, "ACCEL_LOG_FILE": "/dev/full"})
    assert done.returncode == 0
    assert said(done) == is_lost("/dev/full", "No space left on device")


@pytest.mark.skipif(UNDER_TSAN, reason="ThreadSanitizer's runtime writes a file when it starts")
def test_estimate_that_cannot_be_kept(folder):
    done = start("/bin/bash", "-c", 'ulimit -f 0; exec "$0" "$@"', TESTS / "steps", "dgemm:300:4",
                 env={**TEST_GPU, "ACCEL_ESTIMATE": "H200", "ACCEL_ESTIMATE_DIR": str(folder)})
    assert done.returncode == 0, done.stderr


@pytest.fixture
def small(folder):
    """A file system of 32 KiB."""
    path = folder / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "none", path]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs root, and mount()")
    yield path
    subprocess.run(["umount", path], check=True)


def test_file_system_that_is_full_for_a_while(env, small):
    """Afterwards the log goes on, each call with a line of its own."""
    done = surroundings("multiply", f"fill:{small}/filler", "multiply:60", f"unlink:{small}/filler", "multiply:20",
                        env={**env, "ACCEL_LOG_FILE": f"{small}/log"})
    lines = [line for line in (small / "log").read_text().splitlines() if " event=" not in line]
    whole = [line for line in lines if re.fullmatch(r"accel( [a-z_]+=\S+)+", line) and " m=8 n=8 k=8 ran=" in line]
    says_once(done, "(No space left on device)")
    assert 21 < len(whole) < 81
    assert len(lines) <= len(whole) + 1
    assert set(lines[-20:]) <= set(whole)


# ---- Where a log may go ----


def check_place(path, target, allowed):
    """The log is used, or it is said once that it is not, and the log goes to stderr."""
    done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": str(path)})
    if allowed:
        stays_silent(done)
        assert count(target) == 2
    else:
        says_once(done, "")
        assert not target.exists() or count(target) == 0
    return done


# Mode, owner of the file, whether it has a second name, whether it is used.
SHARED = {
    "sticky": (0o1777, 0, False, True),
    "sticky, another user's file": (0o1777, NOBODY, False, False),
    "sticky, a second name": (0o1777, 0, True, False),
    "open": (0o777, NOBODY, False, False),
    "private, another user's file": (0o755, NOBODY, False, True),
    "private, a second name": (0o755, 0, True, True),
}


@needs_root
@pytest.mark.parametrize("mode, owner, hard, allowed", SHARED.values(), ids=SHARED)
def test_shared_folder(mode, owner, hard, allowed, folder, log):
    log.write_text("")
    os.chown(log, owner, owner)
    if hard:
        os.link(log, folder / "other")
    os.chmod(folder, mode)
    done = check_place(log, log, allowed)
    assert allowed or len(lines_for(done)) == 2
    assert log.exists()


@pytest.mark.parametrize("mode, allowed", ((0o1777, True), (0o777, False), (0o755, True)),
                         ids=lambda value: f"{value:o}")
def test_link_of_ones_own_in_a_folder_of_mode(mode, allowed, folder, tmp_path):
    (folder / "link").symlink_to(tmp_path / "log")
    os.chmod(folder, mode)
    check_place(folder / "link", tmp_path / "log", allowed)
    assert (tmp_path / "log").exists() == allowed


@pytest.fixture
def fifo(folder):
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


def test_fifo_that_nobody_reads_is_not_waited_for(fifo):
    done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": str(fifo)})
    says_once(done, "(nobody reads from it)")
    assert len(lines_for(done)) == 2


def test_slow_reader_is_waited_for(fifo):
    read = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    holder = os.open(fifo, os.O_RDWR)  # the reader's open() has its writer
    try:
        done = surroundings("multiply:2000", env={**NO_GPU, "ACCEL_LOG_FILE": str(fifo)})
    finally:
        os.close(holder)
        reader.join()
    stays_silent(done)
    assert len(parse_log(read[0])) == 2000


@pytest.mark.parametrize(
    "name, why",
    (("", "Is a directory"), ("/", "Is a directory"), ("/no/log", "No such file or directory"),
     ("/log/log", "Not a directory"), ("/" + 300 * "x", "File name too long"), (5000 * "x", "File name too long")),
    ids=("a folder", "a folder with a slash", "in none", "in a file", "a long name", "a long path"))
def test_log_that_cannot_be_opened(name, why, folder, log):
    log.write_text("")
    path = name if len(name) > 4096 else f"{folder}{name}"
    done = surroundings("multiply:2", env={**NO_GPU, "ACCEL_LOG_FILE": path})
    says_once(done, f"({why})")
    assert len(lines_for(done)) == 2


# ---- Signals ----


@pytest.fixture(scope="module")
def handlers():
    """What the program prints of its handlers of every signal, without libaccel."""
    done = start("handlers", env={"OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stdout
    return done.stdout


@pytest.mark.parametrize("extra", ({}, LOG), ids=("silent", "logged"))
def test_handlers_of_every_signal(extra, env, logged, handlers):
    done = start("handlers", env={**(logged if extra else env), **extra, "OPENBLAS_NUM_THREADS": "1"})
    own = [line for line in done.stderr.splitlines() if not line.startswith("accel: no GPU is used: ")]
    assert (done.returncode, done.stdout, own) == (0, handlers, [])


# ---- Threads, fork, dlopen, dlclose: with the reference BLAS, for the child of a fork may wait for
# OpenBLAS's locks for ever ----

REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/blas64"}
TURMOIL = {"without libaccel": {}, "no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG, "ACCEL_POLICY": "cpu"},
           "test GPU": ON_GPU, "test GPU, logged": {**ON_GPU, **LOG, "ACCEL_LOG_FILE": "FOLDER/log.%p"}}


@pytest.mark.parametrize("mode", TURMOIL)
def test_threads_fork_dlopen_and_dlclose_at_once(mode, folder):
    env = {name: value.replace("FOLDER", str(folder)) for name, value in {**TURMOIL[mode], **REFERENCE}.items()}
    done = start("turmoil", 2500 if LONG else 1000, TESTS, env=env)
    did = [int(n) for n in re.findall(r": (\d+), 0 wrong", done.stdout)]
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert len(did) == 4
    assert min(did) > 5
    assert not [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
