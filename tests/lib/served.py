"""Servers (`accel serve`) that own the test GPU, and programs that they serve."""

import atexit
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from lib.programs import BUILD, SHIM, clean_env

ACCEL = BUILD / "accel"
# Without CUDA. A folder that is there in a chroot, too: of one that is not, there is a line.
AUTO = {**SHIM, "OPENBLAS_NUM_THREADS": "1", "ACCEL_CUDA_DIR": "/"}


def wait_for(what, seconds=20):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


class Server:
    """One at a path of its own, until it is stopped."""

    def __init__(self, folder, *options, **env):
        self.path, self.options = folder / "serve", ("--idle=0", *options)
        self.env = {**clean_env(str(folder)), "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0", **env}
        self.begin()

    def begin(self):
        self.process = subprocess.Popen([ACCEL, "serve", f"--socket={self.path}", *self.options], env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert re.fullmatch(rf"accel serve: (\d+ x )?Test GPU, at {self.path}\n", line), line + self.process.stderr.read()

    def client(self, **env):
        return {**AUTO, "ACCEL_SERVER": str(self.path), **env}

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """By SIGTERM; what it has written to stderr."""
        self.process.terminate()
        stderr = self.process.communicate(timeout=60)[1]
        assert self.process.returncode == 0, stderr
        assert not self.path.exists()
        return stderr

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def metric(self, name):
        done = subprocess.run([ACCEL, "top", f"--socket={self.path}", "--metrics"], env=clean_env("/tmp"), stdout=subprocess.PIPE, text=True, check=True)
        return float(re.search(rf"(?m)^accel_serve_{name} (\S+)", done.stdout)[1])

    def memory(self):
        """Bytes that it alone has."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return sum(int(kib) for kib in re.findall(r"(?m)^Private_\w+: +(\d+)", rollup)) << 10

    def lanes(self):
        """How many it has mapped."""
        return Path(f"/proc/{self.process.pid}/maps").read_text().count("memfd:accel-lane")


# ---- make test-served: a server in place of the test GPU in each program ----

# Of a program's settings, those of the device.
OF_DEVICE = re.compile(r"(TESTGPU_\w+|ACCEL_MEMORY|ACCEL_CUDA_DIR)$")
# settings -> the server that has them
shared = {}
lock = threading.Lock()


class Shared:
    """A server for all programs of a test's file with the same settings of the device."""

    def __init__(self, settings):
        self.settings = settings
        self.folder = tempfile.TemporaryDirectory(prefix="accel-serve-")
        self.server = None

    def path(self):
        """None: there can be none, as with a fault of CUDA's start."""
        if not self.server or self.server.process.poll() is not None:
            try:
                self.server = Server(Path(self.folder.name), "--idle=300", "--chunked=0", **self.settings)
            except AssertionError:
                return None
        return str(self.server.path)

    def fault(self, ends=False):
        """What is wrong with it; a device that is to fail may end it."""
        if not self.server or "TESTGPU_FAIL" in self.settings:
            return ""
        process = self.server.process
        if ends:
            process.terminate()
        elif process.poll() is None:
            return ""
        said = process.communicate(timeout=60)[1]
        return f"accel serve has ended with {process.returncode}: {said[-300:]}" if said or process.returncode else ""


def end_all():
    faults = list(filter(None, (one.fault(ends=True) for one in shared.values())))
    for one in shared.values():
        if one.server:
            one.server.kill()
        one.folder.cleanup()
    if faults:
        print(*faults, sep="\n", file=sys.stderr, flush=True)
        os._exit(1)


def through_server(env):
    """The environment of a program that would have one test GPU in its process: without CUDA, and a server that has it. Any
    other stays as it is."""
    folder = env.get("ACCEL_CUDA_DIR", "")
    several = {"ACCEL_DEVICES", "TESTGPU_DEVICES", "ACCEL_C2C"} & env.keys()
    if Path(folder).parent != BUILD or "ACCEL_SERVER" in env or several or env.get("ACCEL") == "0":
        return env
    settings = {name: value for name, value in env.items() if OF_DEVICE.match(name)}
    key = tuple(sorted(settings.items()))
    with lock:
        if not shared:
            atexit.register(end_all)
        if key not in shared:
            shared[key] = Shared(settings)
        path = shared[key].path()
    if not path:
        return env
    return {**{name: value for name, value in env.items() if name not in settings}, "ACCEL_CUDA_DIR": "/", "ACCEL_SERVER": path}


def check_servers():
    """None has ended by itself."""
    with lock:
        faults = list(filter(None, (one.fault() for one in shared.values())))
    assert not faults, faults
