#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel serve as a process: its options, one server at a place, its ends, a socket that systemd hands over, the
background; accel run --serve, which starts one; accel doctor's row; systemd's units."""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, NO_GPU, ROOT, SHIM, clean_env, start

TOOL = str(BUILD / "accel")
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu")}
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
UNITS = ROOT / "packaging/systemd"
# What systemd does: binds and listens, tells the process of it, and has it there as file 3.
HAND_OVER = """
import os, socket, sys
kind, path, variables, *command = sys.argv[1:]
if kind == "file":
    given = os.open(path, os.O_CREAT | os.O_RDWR)
else:
    domain = socket.AF_INET if kind == "inet" else socket.AF_UNIX
    made = socket.socket(domain, socket.SOCK_SEQPACKET if kind in ("seqpacket", "silent") else socket.SOCK_STREAM)
    made.bind(("127.0.0.1", 0) if kind == "inet" else path)
    if kind != "silent":
        made.listen()
    if "GROUP=" in variables:
        os.chown(path, 0, int(variables.split("=")[1]))
        os.chmod(path, 0o660)
    given = made.fileno()
if given == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(given, 3)
if kind == "nothing":
    os.close(3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="x")
os.environ.update(word.split("=") for word in variables.split())
if "GROUP=" in variables:
    os.setgroups([])
    os.setgid(OTHER_USER)
    os.setuid(OTHER_USER)
os.execv(command[0], command)
""".replace("OTHER_USER", str(OTHER_USER := 64003))


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def listener_at(path):
    """The process that listens there; 0: none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        try:
            asking.connect(str(path))
        except OSError:
            return 0
        return struct.unpack("iII", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Place:
    """A folder for a server's socket, which programs are told of by XDG_RUNTIME_DIR."""

    def __init__(self, folder):
        self.folder, self.socket, self.servers = folder, folder / "accel/serve", []
        self.env = {"XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)}
        self.at = f"--socket={self.socket}"

    def begin(self, *words, command=(TOOL, "serve"), env=GPU, **options):
        """A server, whose first line has come."""
        server = subprocess.Popen([*command, *words], env={**clean_env(str(self.folder)), **self.env, **env}, cwd=ROOT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  **options)
        self.servers.append(server)
        server.said = server.stdout.readline()
        return server

    def serve(self, *words, env=GPU, **options):
        """accel serve to its end."""
        return start(TOOL, "serve", *words, env={**self.env, **env}, timeout=60, **options)

    def run(self, *words, env=GPU):
        return start(TOOL, "run", *words, env={**self.env, **env}, timeout=60)

    def product(self, env={}, **options):
        """A program with a product, where no CUDA is."""
        return start("steps", "dgemm:100:1", env={**SHIM, **self.env, "ACCEL_LOG": "1", "ACCEL_POLICY": "gpu", **env},
                     **options)

    def ends(self, pid):
        """By its signal."""
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: listener_at(self.socket) != pid)


@pytest.fixture
def place():
    folder = Path(tempfile.mkdtemp(prefix="accel-serve-"))
    made = Place(folder)
    yield made
    for server in made.servers:
        server.kill()
        server.wait()
    if pid := listener_at(made.socket):
        made.ends(pid)
    shutil.rmtree(folder)


def is_served(done):
    """Whether the program's products went to a server."""
    return bool(re.search(r"(?m)^accel .*event=gpu .*chosen=server ", done.stderr) and lines_for(done, sym="dgemm_", ran="gpu0"))


# ---- Options ----


@pytest.mark.parametrize("words, line", [
    ("--idle=soon", "--idle=soon: a number of SECONDS is expected, 0 at least"),
    ("--idle=-1", "--idle=-1: a number of SECONDS is expected, 0 at least"),
    ("--idle=99999999999", "--idle=99999999999: a number of SECONDS is expected, 0 at least"),
    ("--socket=", "--socket=: a path of 1 to 107 characters is expected"),
    (f"--socket=/{'x' * 107}", "x: a path of 1 to 107 characters is expected")])
def test_a_wrong_option_is_one_line(place, words, line):
    done = place.serve(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"accel serve: .*\n", done.stderr)
    assert line in done.stderr


def test_a_folder_that_cannot_be_made(place):
    done = place.serve(f"--socket={place.folder}/a/b/serve")
    assert done.returncode == 1
    assert done.stderr == f"accel serve: {place.folder}/a/b/serve: its folder cannot be made: No such file or directory\n"


def test_without_a_gpu_it_says_so_and_leaves_no_socket(place):
    done = place.serve(place.at, env={**GPU, **HIDDEN})
    assert done.returncode == 1
    assert re.fullmatch(r"accel serve: no GPU: .*\n", done.stderr)
    assert not place.socket.exists()


def test_a_relative_path_starts_where_it_was_started(place):
    server = place.begin("--socket=accel/serve", command=("/usr/bin/env", "-C", place.folder, TOOL, "serve"))
    assert server.said == f"accel serve: Test GPU, at {place.socket}\n"
    assert is_served(place.product())


# ---- Its ends, and one at a place ----


def test_it_ends_when_nobody_has_needed_it_for_a_while(place):
    server = place.begin(place.at, "--idle=1")
    assert is_served(place.product())
    assert server.wait(60) == 0
    assert not place.socket.exists()


def test_it_does_not_end_while_a_program_has_it(place):
    server = place.begin(place.at, "--idle=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as held:
        held.connect(str(place.socket))
        time.sleep(1.7)  # a first message may take 2 s
        assert server.poll() is None
    assert server.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_by_a_signal(place, number):
    server = place.begin(place.at)
    server.send_signal(number)
    assert server.wait(60) == 0
    assert server.stderr.read() == ""
    assert not place.socket.exists()


def test_a_second_one_at_the_same_place_ends_and_the_first_goes_on(place):
    server = place.begin(place.at)
    done = place.serve(place.at)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"accel serve: another server is at {place.socket}\n"
    assert listener_at(place.socket) == server.pid
    assert is_served(place.product())


def test_nor_does_it_take_the_place_of_one_without_a_lock(place):
    """As systemd's socket has none."""
    place.socket.parent.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(str(place.socket))
        other.listen()
        done = place.serve(place.at)
        assert done.returncode == 1
        assert done.stderr == f"accel serve: another server is at {place.socket}\n"
        assert listener_at(place.socket) == os.getpid()


def test_the_socket_of_one_that_was_killed_is_taken(place):
    place.begin(place.at).kill()
    wait_until(lambda: not listener_at(place.socket))
    assert place.socket.exists()
    server = place.begin(place.at)
    assert listener_at(place.socket) == server.pid


def test_a_file_that_is_no_socket_stays(place):
    place.socket.parent.mkdir()
    place.socket.write_text("mine\n")
    done = place.serve(place.at)
    assert done.returncode == 1
    assert done.stderr == f"accel serve: {place.socket}: it is there, and no socket\n"
    assert place.socket.read_text() == "mine\n"


def test_the_folder_and_the_socket_are_the_user_s_alone(place):
    place.begin(place.at)
    assert place.socket.stat().st_mode & 0o777 == 0o700
    assert place.socket.parent.stat().st_mode & 0o777 == 0o700


# ---- A socket that systemd hands over ----


def handed(place, kind="seqpacket", variables="", words=()):
    place.socket.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HAND_OVER, kind, str(place.socket), variables, TOOL, "serve", *words]
    return place.begin(command=command, pass_fds=())


def test_it_serves_there_and_leaves_the_socket_alone(place):
    server = handed(place, words=["--idle=1"])
    assert server.said == f"accel serve: Test GPU, at {place.socket}\n"
    assert is_served(place.product())
    assert server.wait(60) == 0
    assert os.listdir(place.socket.parent) == ["serve"], "the socket is systemd's, and no lock is needed"


GROUP, MEMBER = 64001, 64002


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of others")
@pytest.mark.parametrize("groups, served", [([GROUP], True), ([], False)], ids=["a member", "another one"])
def test_who_can_connect_may_use_it(place, groups, served):
    """A socket of root's and of a group, a server of a third account, and a program of a fourth."""
    server = handed(place, "seqpacket", "GROUP=%d" % GROUP)
    assert os.stat(f"/proc/{server.pid}").st_uid == OTHER_USER
    place.folder.chmod(0o755)
    place.socket.parent.chmod(0o755)
    done = place.product(user=MEMBER, group=MEMBER, extra_groups=groups)
    assert is_served(done) == served, done.stderr
    assert done.stdout == "dgemm 100: 1 calls, 0 wrong\n"


@pytest.mark.parametrize("kind, variables, words, line", [
    ("stream", "", [], "the socket that systemd hands over: it is not of SOCK_SEQPACKET (ListenSequentialPacket=)"),
    ("silent", "", [], "the socket that systemd hands over: it does not listen (Accept=no)"),
    ("inet", "", [], "the socket that systemd hands over: it is no Unix socket"),
    ("file", "", [], "the socket that systemd hands over: it is no socket"),
    ("nothing", "", [], "the socket that systemd hands over: Bad file descriptor"),
    ("seqpacket", "LISTEN_FDS=2", [], "systemd hands over other than one socket (LISTEN_FDS)"),
    ("seqpacket", "LISTEN_FDS=0", [], "systemd hands over other than one socket (LISTEN_FDS)"),
    ("seqpacket", "", ["--socket=x"], "--socket is not for a socket that systemd hands over (LISTEN_FDS)")])
def test_what_is_wrong_with_it_is_one_line(place, kind, variables, words, line):
    server = handed(place, kind, variables, words)
    assert (server.wait(60), server.said) == (1, "")
    assert server.stderr.read() == f"accel serve: {line}\n"


def test_variables_for_another_process_are_none_of_its_own(place):
    server = handed(place, variables="LISTEN_PID=1", words=[f"--socket={place.folder}/other"])
    assert server.said == f"accel serve: Test GPU, at {place.folder}/other\n"


# ---- The background ----


def test_detached_it_answers_when_the_command_returns(place):
    done = place.serve(place.at, "--detach")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"accel serve: Test GPU, at {place.socket}\n", "")
    assert is_served(place.product())


def test_detached_it_holds_nothing_of_its_caller_s(place):
    reader, writer = os.pipe()
    # Its stdout and stderr, too: the command's output ends with it.
    done = place.serve(place.at, "--detach", pass_fds=[writer])
    assert done.returncode == 0
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)
    pid = listener_at(place.socket)
    assert os.getsid(pid) == pid
    assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)] == ["/dev/null"] * 3
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_detached_twice_there_is_one(place):
    assert place.serve(place.at, "--detach").returncode == 0
    pid = listener_at(place.socket)
    done = place.serve(place.at, "--detach")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert listener_at(place.socket) == pid


def test_detached_without_a_gpu_it_says_so(place):
    done = place.serve(place.at, "--detach", env={**GPU, **HIDDEN})
    assert done.returncode == 1
    assert re.fullmatch(r"accel serve: no GPU: .*\n", done.stderr)


def test_detached_beside_one_that_does_not_answer(place):
    place.begin(place.at).send_signal(signal.SIGSTOP)
    done = place.serve(place.at, "--detach")
    place.servers[0].send_signal(signal.SIGCONT)
    assert done.returncode == 1
    assert re.fullmatch(rf"accel serve: another server is at {place.socket}: the server does not answer.*\n", done.stderr)


# ---- accel run --serve ----


STEPS = str(BUILD / "tests/steps")


def test_run_starts_one_which_stays(place):
    done = place.run("--serve", "-v", "--policy=gpu", "--", STEPS, "dgemm:100:1")
    assert (done.returncode, done.stdout) == (0, start("steps", "dgemm:100:1").stdout)
    assert is_served(done)
    pid = listener_at(place.socket)
    again = place.run("--serve", "-v", "--policy=gpu", STEPS, "dgemm:100:1")
    assert is_served(again)
    assert listener_at(place.socket) == pid


def test_it_has_no_libaccel_itself(place):
    """As where accel run has started what starts it."""
    assert place.run("--serve", "true", env={**GPU, **SHIM}).returncode == 0
    assert "libaccel.so" not in Path(f"/proc/{listener_at(place.socket)}/maps").read_text()


def test_run_takes_the_one_that_is_there(place):
    server = place.begin(place.at)
    assert is_served(place.run("--serve", "-v", "--policy=gpu", STEPS, "dgemm:100:1"))
    assert listener_at(place.socket) == server.pid


def test_run_starts_it_where_accel_server_says(place):
    other = place.folder / "other"
    try:
        done = place.run("--serve", "-v", "--policy=gpu", STEPS, "dgemm:100:1", env={**GPU, "ACCEL_SERVER": str(other)})
        assert is_served(done)
        assert listener_at(other)
        assert not place.socket.exists()
    finally:
        os.kill(listener_at(other), signal.SIGTERM)
        wait_until(lambda: not listener_at(other))


def test_several_at_once_start_one(place):
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: place.run("--serve", "-v", "--policy=gpu", STEPS, "dgemm:100:1"), range(4)))
    assert all(is_served(done) for done in runs), [done.stderr for done in runs]
    pid = listener_at(place.socket)
    held = [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if str(place.socket).encode() in read_of(entry)]
    assert [int(entry.parent.name) for entry in held] == [pid]


def read_of(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_program_s_output_and_its_end_wait_for_no_server(place):
    """A pipe ends with the program."""
    done = place.run("--serve", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert listener_at(place.socket)


def test_run_with_a_summary(place):
    done = place.run("--serve", "--summary", "--policy=gpu", STEPS, "dgemm:100:1")
    assert done.returncode == 0
    assert re.search(r"accel: dgemm +100 +1 gpu0 ", done.stderr)


@pytest.mark.parametrize("env, line", [
    pytest.param({**GPU, **HIDDEN}, "accel serve: no GPU: ", id="no GPU"),
    pytest.param({**GPU, "ACCEL_SERVER": "off"}, "accel run: --serve: ACCEL_SERVER=off: programs use no server",
                 id="switched off"),
    pytest.param({**GPU, "ACCEL_DEVICES": "all"}, "accel run: --serve: ACCEL_DEVICES is set: programs use no server",
                 id="devices of its own")])
def test_where_none_can_start_the_program_runs_as_without(place, env, line):
    done = place.run("--serve", "--", "sh", "-c", "echo out; exit 7", env=env)
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert re.fullmatch(r"accel .*\n", done.stderr)
    assert done.stderr.startswith(line)
    assert not place.socket.exists()


# ---- accel doctor ----


def row_of(place, env):
    """(state, says, fix) of the server's row, the whole output, and the exit status."""
    done = start(TOOL, "doctor", env={"TESTGPU_DELAY_US": "0", "CUDA_HOME": "/nowhere", **place.env, **env})
    (row,) = re.findall(r"(?m)^(OK|WARN|FAIL) +server +(.*)\n(?: +-> (.*)\n)?", done.stdout)
    assert not done.stderr
    return row, done


def test_doctor_says_that_there_is_none(place):
    row, done = row_of(place, GPU)
    if Path("/run/accel/serve").exists():
        pytest.skip("this machine has a server")
    assert row == ("OK", f"none at {place.socket} or /run/accel/serve: each process starts CUDA itself", "")
    assert done.returncode == 0


def test_doctor_names_the_one_that_is_there_and_has_it_compute(place):
    place.begin(place.at)
    row, done = row_of(place, GPU)
    assert row[0] == "OK"
    assert row[1].startswith(f"{place.socket}: Test GPU, gpu0; it is of this build, and takes operands of ")
    assert re.search(r"(?m)^OK +a call +dgemm of order 256 ran on gpu0 of the server$", done.stdout)
    assert done.returncode == 0


def test_with_a_server_calls_go_to_the_gpu_though_this_process_has_none(place):
    place.begin(place.at)
    _, done = row_of(place, {})
    assert done.returncode == 0
    assert re.search(r"(?m)^WARN +devices ", done.stdout)
    assert "FAIL" not in done.stdout
    assert is_served(place.product())


def test_doctor_fails_all_the_same_where_settings_keep_calls_from_it(place):
    place.begin(place.at)
    _, done = row_of(place, {**GPU, "ACCEL_POLICY": "cpu"})
    assert done.returncode == 1


@pytest.mark.parametrize("env, says", [({"ACCEL_SERVER": "off"}, "switched off by ACCEL_SERVER"),
                                       ({"ACCEL_DEVICES": "0"}, "programs do not use it, as ACCEL_DEVICES is set"),
                                       (HIDDEN, "programs do not use one: CUDA_VISIBLE_DEVICES hides all devices")])
def test_doctor_says_that_programs_do_not_use_it(place, env, says):
    place.begin(place.at)
    row, _ = row_of(place, {**GPU, **env})
    assert row[0] == "OK"
    assert says in row[1]
    assert not is_served(place.product(env))


def test_doctor_says_that_the_one_that_a_setting_names_is_not_there(place):
    row, done = row_of(place, {**GPU, "ACCEL_SERVER": f"{place.folder}/gone"})
    assert row == ("WARN", f"ACCEL_SERVER names {place.folder}/gone, which is not there: processes start CUDA themselves",
                   f"accel serve --socket={place.folder}/gone, or take ACCEL_SERVER out")
    assert done.returncode == 0


def test_doctor_says_that_it_does_not_answer(place):
    server = place.begin(place.at)
    server.send_signal(signal.SIGSTOP)
    row, done = row_of(place, GPU)
    server.send_signal(signal.SIGCONT)
    assert row[0] == "WARN"
    assert row[1].startswith(f"{place.socket}: the server does not answer")
    assert "accel serve" in row[2]
    assert done.returncode == 0


def test_doctor_says_that_it_has_ended(place):
    server = place.begin(place.at)
    server.kill()
    server.wait()
    row, _ = row_of(place, GPU)
    assert row[:2] == ("WARN", f"{place.socket}: no server answers: Connection refused; processes start CUDA themselves")


def test_doctor_names_both_builds(place):
    """A server of another build says so in its first message."""
    place.socket.parent.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(str(place.socket))
        other.listen()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(answer_as_another_build, place, other)
            row, _ = row_of(place, GPU)
    assert row[0] == "WARN"
    assert re.search(r"the server is of another version: 0\.0\.1 old, and this is \S+ \w*; processes start", row[1])
    assert row[2] == "end that server, and start it again with this build: accel serve"


def answer_as_another_build(place, other):
    """The true server's welcome, with another build in it."""
    real = place.begin(f"--socket={place.folder}/real")
    client, _ = other.accept()
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(f"{place.folder}/real")
        asking.send(client.recv(4096))
        welcome = asking.recv(1 << 16)
        client.send(welcome[:8] + b"0.0.1 old".ljust(64, b"\0") + welcome[72:])
    real.terminate()


# ---- A container ----


def test_a_container_needs_the_folder_alone(place):
    """Other namespaces of files, users, processes, networks and IPC, no variable, and nothing of CUDA."""
    server = place.begin(place.at)
    inside = f"mount -t tmpfs none /run; mkdir /run/accel; mount --bind {place.socket.parent} /run/accel; exec \"$@\""
    if start("/usr/bin/unshare", "-rmpni", "--fork", "mount", "-t", "tmpfs", "none", "/run").returncode != 0:
        pytest.skip("nothing can be mounted in a namespace")
    done = start("/usr/bin/unshare", "-rmpni", "--fork", "sh", "-c", inside, "sh", STEPS, "dgemm:100:1",
                 env={**SHIM, "ACCEL_LOG": "1", "ACCEL_POLICY": "gpu", "XDG_RUNTIME_DIR": ""})
    assert is_served(done), done.stderr
    assert server.poll() is None


# ---- systemd's units ----


@pytest.mark.parametrize("kind", ["user", "system"])
def test_units(tmp_path, kind):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    for unit in (UNITS / kind).iterdir():
        (tmp_path / unit.name).write_text(unit.read_text().replace("@bindir@", str(BUILD)))
    done = start(shutil.which("systemd-analyze"), f"--{kind}", "verify", "--man=no", *sorted(tmp_path.iterdir()),
                 env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")


def test_the_units_sockets_are_where_programs_look():
    sockets = {kind: re.search(r"ListenSequentialPacket=(.*)", (UNITS / kind / "accel-serve.socket").read_text())[1]
               for kind in ("user", "system")}
    assert sockets == {"user": "%t/accel/serve", "system": "/run/accel/serve"}
