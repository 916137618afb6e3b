#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A program that a server (`accel serve`) computes for, and what becomes of its process: children of each kind, another
program, other folders and users, descriptors that are closed and used again, sandboxes, threads, ends. Calls are right,
on the GPU as long as they can be there, and the server has all back in the end."""

import os
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from lib.log import outcomes, parse_log, said
from lib.programs import BUILD, LOG, RUNTIME, TESTS, clean_env, start
from lib.served import Server, wait_for

NOBODY = 65534
GPU = ("gpu0", "forced")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
no_runtime = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime asks the system for what is forbidden here")
forks = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is not made for a child that is forked beside other threads")


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        server = Server(Path(folder))
        yield server
        assert server.end() == ""


@pytest.fixture
def folder():
    """An empty one, which other users may enter."""
    with tempfile.TemporaryDirectory(prefix="accel-lifecycle-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def log(folder):
    return folder / "log"


@pytest.fixture
def client(server, log):
    """The environment of a program. Behind the test, the server has no lane left."""
    yield server.client(**LOG, ACCEL_POLICY="gpu", ACCEL_LOG_FILE=str(log))
    wait_for(lambda: server.lanes() == 0)


def surroundings(*steps, env, **options):
    return start("surroundings", *steps, env=env, **options)


def ran(log):
    """How many calls ran where, and why."""
    return Counter(outcomes(parse_log(log.read_text())))


def check(done, log, **counts):
    """It was right, libaccel said nothing, and so many of its calls ran there."""
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert not said(done)
    found = ran(log)
    assert {where: sum(n for (place, _), n in found.items() if place == where) for where in ("gpu0", "cpu")} == {
        "gpu0": 0, "cpu": 0, **counts}, found


def in_words(steps):
    return " ".join(steps) if isinstance(steps, list) else None


def check_crowd(done, log, calls):
    """There is one connection, which was made before, and stays. Who comes while another thread has it has the CPU."""
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert not said(done)
    found = ran(log)
    assert sum(found.values()) == calls
    assert found.keys() <= {GPU, ("cpu", "busy"), ("cpu", "no_memory")}
    assert outcomes(parse_log(log.read_text()))[-2:] == 2 * [GPU]


# ---- Children ----


@pytest.mark.parametrize("steps, calls", ((["multiply", "fork", "multiply:2"], 3), (["fork", "multiply:2"], 2), (["multiply", "fork", "fork", "multiply"], 2)),
                         ids=in_words)
def test_fork(steps, calls, client, log):
    check(surroundings(*steps, env=client), log, gpu0=calls)


def test_clone_which_runs_no_handler(client, log):
    check(surroundings("multiply", "clone", "multiply:2", env=client), log, gpu0=4)


def test_posix_spawn(client, log):
    check(surroundings("multiply", "spawn:multiply:2", "multiply", env=client), log, gpu0=4)


@pytest.mark.parametrize("steps, calls", ((["multiply", "vfork", "multiply:2"], 6), (["vfork", "multiply:2"], 5)), ids=in_words)
def test_vfork_whose_child_computes_and_becomes_another_program(steps, calls, client, log):
    """The child has its parent's memory, but is another process: its own call has the CPU, and is not logged if the parent has
    called before."""
    done = surroundings(*steps, env=client)
    assert done.returncode == 0, done.stderr
    found = ran(log)
    assert found[GPU] == calls - 1
    assert sum(found.values()) in (calls - 1, calls)


@pytest.mark.parametrize("steps, calls", ((["daemon", "multiply:3"], 3), (["multiply", "daemon", "multiply:3"], 4)), ids=in_words)
def test_daemon(steps, calls, client, log, folder):
    done = surroundings(*steps, f"run:echo done >{folder}/done", env=client)
    wait_for((folder / "done").exists)
    check(done, log, gpu0=calls)


def test_exec(client, log):
    check(surroundings("multiply:2", "exec:multiply:3", env=client), log, gpu0=5)


def test_programs_that_it_executes_do_not_have_its_connection(client):
    done = surroundings("multiply", "run:ls -l /proc/self/fd", env=client)
    assert done.returncode == 0
    assert "->" in done.stdout
    assert "socket:" not in done.stdout


@forks
@pytest.mark.parametrize("who", ("thread", "main", "crowd"))
def test_children_at_any_time(who, client, log):
    """While other threads' calls are under way; each computes, or becomes another program."""
    done = start("forks_anytime", 100, 48, who, 100, env=client)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert re.fullmatch(r"48 children, 0 wrong\n", done.stdout)
    assert set(ran(log)) == {GPU}


# ---- Threads ----


def test_more_threads_than_there_are_lanes(client, log):
    """Those that get none have the CPU."""
    done = start("steps", "team:80:60:8", env={**client, "OMP_NUM_THREADS": "80", "OMP_THREAD_LIMIT": "80"})
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(" 0 wrong") == 80
    found = ran(log)
    assert sum(found.values()) == 640
    assert {where for where in found if where != GPU} <= {("cpu", "busy"), ("cpu", "no_memory")}


@pytest.mark.parametrize("how", ("return", "exit", "_exit", "abort", "kill", "exec"))
def test_an_end_while_another_thread_is_in_a_call(how, client, server):
    """Nothing waits for it, and the server goes on."""
    steps = ["beside:500:2000", "sleep:300", "exec:dgemm:100:2" if how == "exec" else f"end:{how}"]
    done = start("steps", *steps, env=client, timeout=60)
    assert done.returncode == {"abort": -6, "kill": -15, "exec": 0}.get(how, 7), done.stderr[-300:]
    wait_for(lambda: server.lanes() == 0)
    assert start("steps", "dgemm:100:2", env=client).stdout == "dgemm 100: 2 calls, 0 wrong\n"


# ---- Descriptors ----

STEPS = {
    "closed": ["multiply:2", "close:3", "multiply:2"],
    "closed, while idle": ["multiply:2", "close:3", "run:sleep 1", "multiply:2"],
    "used again": ["files:4096", "multiply:2", "close:3", "take:DATA", "multiply:2", "kept:DATA"],
    "used again, while idle": ["files:4096", "multiply:2", "close:3", "take:DATA", "run:sleep 1", "multiply:2", "kept:DATA"],
    "used again, in a child": ["files:4096", "multiply", "close:3", "take:DATA", "fork", "kept:DATA", "multiply:3", "kept:DATA"],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_descriptors_that_the_program_closes_and_uses_again(steps, client, log, folder):
    """It connects anew, and leaves the program's file alone."""
    data = folder / "data"
    done = surroundings(*(step.replace("DATA", str(data)) for step in steps), env=client)
    check(done, log, gpu0=4)
    assert not data.exists() or data.read_bytes() == b""


def test_a_descriptor_of_the_program_s_own_is_not_taken_for_the_connection(server, log, folder):
    """A call that takes long looks after its server: what it looks at is the program's file then."""
    data = folder / "data"
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as place:
        slow = Server(Path(place), TESTGPU_DELAY_US="200000")
        done = surroundings("files:4096", "multiply", "close:3", f"take:{data}", "multiply", f"kept:{data}",
                            env=slow.client(**LOG, ACCEL_POLICY="gpu", ACCEL_LOG_FILE=str(log)))
        slow.kill()
    check(done, log, gpu0=2)


@pytest.mark.parametrize("numbers", (">&-", "2>&-", "<&- >&- 2>&-"))
def test_started_without_stdin_stdout_or_stderr_it_takes_none_of_these(numbers, client, log):
    free = 3 if "<" in numbers else 0
    done = subprocess.run(["/bin/sh", "-c", f'exec "$0" "$@" {numbers}', TESTS / "surroundings", "multiply:2", f"none-below:{free}", "fork", "multiply",
                           f"none-below:{free}"], env={**clean_env("/tmp"), **client}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ran(log) == {GPU: 3}


@no_runtime
def test_few_descriptors(client, log):
    """A connection that is there goes on; without a number there is none, and the CPU computes."""
    check(surroundings("multiply", "files:3", "multiply:2", env=client), log, gpu0=3)
    log.unlink()
    done = surroundings("files:3", "multiply:2", env={**client, "ACCEL_LOG_FILE": "/dev/null"})
    assert done.returncode == 0, done.stderr


# ---- Folders and users ----


@needs_root
def test_chroot(client, log, folder):
    """A connection goes on. Without one, nothing is to be seen of the server."""
    (folder / "inner").mkdir()
    check(surroundings("multiply", f"chroot:{folder}/inner", "multiply:2", env=client), log, gpu0=3)
    log.unlink()
    done = surroundings(f"chroot:{folder}/inner", "multiply:2", env=client)
    assert done.returncode == 0


@needs_root
def test_chroot_and_threads_that_want_more_connections(client, log, folder):
    (folder / "inner").mkdir()
    done = surroundings("multiply", f"chroot:{folder}/inner", "crowd:50", "multiply:2", env=client)
    check_crowd(done, log, 203)


@needs_root
def test_another_user(client, log):
    """A connection goes on; a server of root's takes no new one of another user."""
    check(surroundings("multiply", f"user:{NOBODY}", "multiply:2", env=client), log, gpu0=3)
    log.unlink()
    done = surroundings("multiply", f"user:{NOBODY}", "fork", "multiply:2", env=client)
    assert done.returncode == 0
    assert [where for where, _ in outcomes(parse_log(log.read_text()))] == ["gpu0", "cpu", "cpu"]


@needs_root
@no_runtime
def test_a_setuid_program_uses_no_server(client, server, folder, log):
    """The variables are somebody else's. It has libaccel all the same, as its own file asks for it."""
    library = Path("/usr/lib/x86_64-linux-gnu/libaccel-served-secure-test.so")
    program = folder / "products"
    program.write_bytes((TESTS / "random_calls").read_bytes())
    env = {**clean_env(str(folder)), **client, "LD_PRELOAD": library.name, "ACCEL_LOG_FILE": "/dev/stderr"}
    os.chmod(server.path.parent, 0o755)
    os.chmod(server.path, 0o777)
    try:
        library.write_bytes((BUILD / "libaccel.so").read_bytes())
        library.chmod(0o4755)
        for mode, is_served in ((0o4755, False), (0o755, True)):
            program.chmod(mode)
            # Of its owner, root, it would be the server's own user, whoever starts it.
            user = {} if is_served else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            done = subprocess.run([program, "-c", "2", "-r", "?gemm"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **user)
            assert done.returncode == 0
            assert "0 wrong" in done.stdout
            assert ("chosen=server" in done.stderr) == is_served
    finally:
        library.unlink(missing_ok=True)


# ---- Sandboxes ----


@no_runtime
@pytest.mark.parametrize("restriction", ("forbid-paths", "end-for-paths"))
def test_a_sandbox_that_is_entered_after_the_first_call(restriction, client, server):
    """Nothing is asked of the system that it forbids: no file, no socket, no look for one. (The log's file would be.)"""
    before = server.metric("calls_total")
    done = surroundings("multiply", restriction, "multiply:200", env={**client, "ACCEL_LOG": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert server.metric("calls_total") == before + 201


@no_runtime
def test_a_sandbox_that_forbids_a_process_to_know_its_own_number(client):
    """It could be a child, which has no connection: the CPU computes."""
    done = surroundings("multiply", "forbid", "multiply:200", env={**client, "ACCEL_LOG": "0"})
    assert done.returncode == 0, done.stderr


@no_runtime
def test_a_child_in_a_sandbox_has_the_cpu(client, log):
    check(surroundings("multiply", "forbid-paths", "multiply:2", "fork", "multiply", env=client), log, gpu0=3, cpu=1)


@no_runtime
@pytest.mark.parametrize("restriction", ("forbid", "forbid-paths"))
def test_a_sandbox_that_is_entered_before_the_first_call(restriction, client):
    done = surroundings(restriction, "multiply:20", env={**client, "ACCEL_LOG": "0"})
    assert done.returncode == 0, done.stderr


@no_runtime
def test_a_sandbox_in_which_threads_want_more_connections(client, log):
    done = surroundings("multiply", "forbid-crowd:200", "multiply:2", env=client)
    check_crowd(done, log, 803)


def test_signals_are_as_without(client):
    done = surroundings("multiply:20", "fork", "multiply:2", "status", env=client)
    assert (done.returncode, done.stdout) == (0, "0 pending, 0 blocked, 0 handled\n")
