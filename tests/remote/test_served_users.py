#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A server for the users of a machine: the socket's group and mode say who may connect, a program gives its data to a server
of its own user or of root alone, and nobody sees what others do."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, LOG, SHIM, clean_env, start

TOOL = str(BUILD / "accel")
GROUP, ALICE, BOB = 64001, 64002, 64003
ACCOUNT = "daemon"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of several users")


class Place:
    """A folder that all may enter, with servers."""

    def __init__(self, folder):
        self.folder, self.socket, self.servers = folder, folder / "accel/serve", []

    def env(self, **more):
        return {**clean_env(str(self.folder)), "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0", **more}

    def serve(self, *words, before=(), **options):
        """A server that has said where it is, or has ended."""
        server = subprocess.Popen([*before, TOOL, "serve", f"--socket={self.socket}", "--idle=0", *words], env=self.env(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.servers.append(server)
        server.said = server.stdout.readline()
        return server

    def program(self, *steps, user, groups=(), **env):
        """Its calls, where no CUDA is."""
        return start("steps", *steps, env={**SHIM, **LOG, "ACCEL_POLICY": "gpu", "ACCEL_CUDA_DIR": "/nowhere", "ACCEL_SERVER": str(self.socket), **env},
                     user=user, group=user, extra_groups=list(groups))

    def top(self, *words, user=0):
        done = subprocess.run([TOOL, "top", "--once", f"--socket={self.socket}", *words], env=clean_env("/tmp"), user=user, group=user, extra_groups=[],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.stdout


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="accel-users-") as folder:
        os.chmod(folder, 0o755)
        made = Place(Path(folder))
        yield made
        for server in made.servers:
            server.kill()
            server.communicate()


def is_served(done):
    calls = outcomes(lines_for(done, sym="dgemm_"))
    assert " 0 wrong" in done.stdout
    return bool(calls) and set(calls) == {("gpu0", "forced")}



# ---- Who may connect ----

@pytest.mark.parametrize("words, alice, bob", [
    ([], False, False),
    ([f"--group={GROUP}"], True, False),
    ([f"--group={GROUP}", "--mode=600"], False, False),
    (["--mode=666"], True, True)], ids=str)
def test_the_socket_says_who(place, words, alice, bob):
    """Alice is of the group, Bob is not; root may always."""
    server = place.serve(*words)
    assert server.said == f"accel serve: Test GPU, at {place.socket}\n"
    assert is_served(place.program("dgemm:100:2", user=0))
    assert is_served(place.program("dgemm:100:2", user=ALICE, groups=[GROUP])) == alice
    assert is_served(place.program("dgemm:100:2", user=BOB)) == bob


def test_without_others_the_folder_is_its_user_s_alone(place):
    place.serve()
    assert place.socket.parent.stat().st_mode & 0o777 == 0o700


def test_who_can_connect_is_asked_all_the_same(place):
    """The socket's mode is not all: without --mode and --group, the server is its user's and root's."""
    place.serve()
    place.socket.parent.chmod(0o755)
    place.socket.chmod(0o666)
    done = place.program("dgemm:100:2", user=ALICE)
    assert not is_served(done)
    assert any("the server does not answer" in line for line in said(done))


@pytest.mark.parametrize("mode, owner, says", [
    (0o775, 0, "others can write to its folder"),
    (0o750, 0, "others cannot reach it: its folder needs mode 755"),
    (0o755, BOB, "its folder is another user's")])
def test_a_folder_that_is_none_for_others(place, mode, owner, says):
    place.socket.parent.mkdir()
    place.socket.parent.chmod(mode)
    os.chown(place.socket.parent, owner, owner)
    server = place.serve("--mode=666")
    assert server.wait(60) == 1
    assert server.stderr.read() == f"accel serve: {place.socket}: {says}\n"
    assert not place.socket.exists()


# ---- Whom programs trust ----

def test_an_account_of_its_own(place):
    """Root listens, so programs know that the socket is root's; the server is another account's."""
    server = place.serve("--mode=666", f"--account={ACCOUNT}")
    status = Path(f"/proc/{server.pid}/status").read_text()
    assert server.said == f"accel serve: Test GPU, at {place.socket}\n"
    for kind in ("Uid", "Gid"):
        assert len(set(re.search(rf"(?m)^{kind}:\t(.*)$", status)[1].split())) == 1
        assert not re.search(rf"(?m)^{kind}:.*\t0\b", status)
    for user in (0, ALICE, BOB):
        assert is_served(place.program("dgemm:100:2", user=user))


def test_a_server_of_another_user_gets_no_data(place):
    """Whatever the mode of its socket."""
    place.socket.parent.mkdir()
    os.chown(place.socket.parent, BOB, BOB)
    server = place.serve("--mode=666", user=BOB, group=BOB, extra_groups=[])
    assert server.said.startswith("accel serve: Test GPU")
    for user in (0, ALICE):
        done = place.program("dgemm:100:2", user=user)
        assert not is_served(done)
        assert f"accel: {place.socket}: the server is another user's: calls do not go there" in said(done)
    assert is_served(place.program("dgemm:100:2", user=BOB))


def test_users_without_a_number_are_not_one_user(place):
    """In a user namespace, all that have none there have the same."""
    namespace = ["/usr/bin/unshare", "--user", "--map-root-user"]
    if start(*namespace, "true").returncode != 0:
        pytest.skip("there are no user namespaces")
    place.serve("--mode=666", before=namespace)
    assert is_served(place.program("dgemm:100:2", user=0))
    for user in (ALICE, 65534):
        assert not is_served(place.program("dgemm:100:2", user=user))


# ---- What others do ----

def test_each_sees_its_own_calls_alone(place):
    place.serve("--mode=666")
    for user, calls in ((ALICE, 3), (BOB, 5)):
        assert is_served(place.program(f"dgemm:100:{calls}", user=user))
    calls = {user: re.search(r"(?m)^ *all +\d+ +(\d+) ", place.top(user=user))[1] for user in (0, ALICE, BOB, GROUP)}
    assert calls == {0: "8", ALICE: "3", BOB: "5", GROUP: "0"}


def test_results_are_right_where_memory_changes_hands(place):
    """Triangles, factorisations and products of two users, one beside the other."""
    server = place.serve("--mode=666")
    env = {**clean_env("/tmp"), **SHIM, "ACCEL_POLICY": "gpu", "ACCEL_CUDA_DIR": "/nowhere", "ACCEL_SERVER": str(place.socket), "ACCEL_RESIDENT": "hash"}
    steps = ["dsyrk:400:6", "solve:300:6", "dgemm:500:6"]
    programs = [subprocess.Popen([BUILD / "tests/steps", *(steps * 2)], env=env, user=user, group=user, extra_groups=[], stdout=subprocess.PIPE, text=True)
                for user in (ALICE, BOB, ALICE)]
    for program in programs:
        stdout, _ = program.communicate(timeout=120)
        assert (program.returncode, stdout.count(" 0 wrong")) == (0, 6)
    assert server.poll() is None


# ---- Options ----

@pytest.mark.parametrize("words, line", [
    ("--mode=888", "--mode=888: a mode from 0 to 777 is expected"),
    ("--mode=", "--mode=: a mode from 0 to 777 is expected"),
    ("--mode=1777", "--mode=1777: a mode from 0 to 777 is expected"),
    ("--group=no such", "--group=no such: there is no such group"),
    ("--account=no such", "--account=no such: there is no such user"),
    ("--memory=0", "--memory=0: a number of MIB is expected, 1 at least")])
def test_a_wrong_option_is_one_line(place, words, line):
    done = start(TOOL, "serve", words, env=place.env())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"accel serve: {line}\n")


def test_only_root_gives_it_away(place):
    done = start(TOOL, "serve", f"--account={ACCOUNT}", env=place.env(), user=ALICE, group=ALICE, extra_groups=[])
    assert (done.returncode, done.stderr) == (2, f"accel serve: --account={ACCOUNT}: only root can give it away\n")
