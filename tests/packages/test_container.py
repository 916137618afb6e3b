#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""packaging/container/Containerfile: buildah builds the image, and a container of it runs NumPy under libaccel, without
a GPU, on the test GPU, and by a server in another container. The base images of the registries cannot be had here: a bare Debian 12 stands in for each,
also for NVIDIA's, which is an Ubuntu."""

import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, ROOT
from lib.served import wait_for
from lib.trees import TREES

VERSION = (ROOT / "VERSION").read_text().strip()
RECIPE = ROOT / "packaging/container/Containerfile"


@pytest.fixture(scope="module")
def folder():
    folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="container-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def buildah(folder):
    """What runs buildah, with images that stand in for the base images."""
    def buildah(*words, timeout=1200):
        return subprocess.run(["buildah", "--root", folder / "images", "--runroot", folder / "run", "--storage-driver",
                               "vfs", *map(str, words)],
                              cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout)

    bases = re.findall(r"(?m)^FROM (\S+)", RECIPE.read_text())
    assert len(bases) == 2
    base = buildah("from", "scratch").stdout.strip()
    done = buildah("copy", "--quiet", base, TREES / "bookworm", "/")
    assert done.returncode == 0, done.stderr[-500:]
    for name in bases:
        assert buildah("commit", "--quiet", base, name).returncode == 0
    buildah("rm", base)
    return buildah


@pytest.fixture(scope="module")
def sources(folder):
    """The unpacked archive."""
    subprocess.run(["make", f"DISTDIR={folder}", "dist"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["tar", "-xzf", f"libaccel-{VERSION}.tar.gz"], cwd=folder, check=True)
    return folder / f"libaccel-{VERSION}"


@pytest.fixture(scope="module")
def container(buildah, sources):
    """One of the image, which is built."""
    done = buildah("bud", "--isolation", "chroot", "--pull-never", "--layers=false", "--file", RECIPE, "--tag",
                   "libaccel", sources)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1500:]
    return buildah("from", "--pull-never", "localhost/libaccel").stdout.strip()


def test_folders_of_earlier_builds_are_not_copied(buildah, container, sources):
    """A working tree has more than the sources."""
    (sources / "build").mkdir()
    (sources / "build/left").touch()
    scratch = buildah("from", "scratch").stdout.strip()
    done = buildah("copy", "--quiet", "--contextdir", sources, "--ignorefile", sources / ".dockerignore", scratch,
                   sources, "/source")
    assert done.returncode == 0, done.stderr[-500:]
    copied = {path.name for path in Path(buildah("mount", scratch).stdout.strip(), "source").iterdir()}
    assert {"Makefile", "packaging", "tests"} <= copied
    assert "build" not in copied


def test_a_container_runs_its_program_under_libaccel(buildah, container):
    entry = buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.Entrypoint}}",
                    "localhost/libaccel").stdout.strip()
    assert entry == "[accel run --]"


@pytest.fixture(scope="module")
def in_container(buildah, container):
    """What runs a program as the entry point would: buildah run leaves that out."""
    def in_container(*words, folders=(), **env):
        settings = [f"--env={key}={value}" for key, value in env.items()]
        mounts = [word for mount in folders for word in ("-v", mount)]
        return buildah("run", "--isolation", "chroot", *settings, "-v", f"{BUILD}/testgpu:/testgpu:ro", "-v",
                       f"{ROOT}/tests/packages:/tests:ro", *mounts, container, "--", *words)

    return in_container


@pytest.fixture(scope="module")
def plain(in_container):
    """What NumPy, which is in the image, writes without libaccel."""
    done = in_container("python3", "/tests/demo.py")
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


def test_libaccel_is_not_active_by_itself(plain):
    assert "False" in plain


@pytest.mark.parametrize("env, where", [
    pytest.param({}, {"ran": "cpu", "why": "no_gpu"}, id="without a GPU"),
    pytest.param({"ACCEL_CUDA_DIR": "/testgpu", "ACCEL_POLICY": "gpu"}, {"ran": "gpu0"}, id="with a GPU")])
def test_under_accel_run_it_computes_the_same(in_container, plain, env, where):
    done = in_container("accel", "run", "--", "python3", "/tests/demo.py", ACCEL_LOG="1", **env)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout == plain.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", **where)


SERVE = "accel serve --idle=0 & until [ -e /run/accel/end ]; do sleep 0.2; done; kill $!; wait $!"


def test_a_server_in_one_container_serves_another(in_container, plain, folder):
    """Both have the server's folder; one has CUDA."""
    shared = folder / "accel"
    shared.mkdir()
    folders = [f"{shared}:/run/accel"]
    with ThreadPoolExecutor() as pool:
        server = pool.submit(in_container, "sh", "-c", SERVE, folders=folders, ACCEL_CUDA_DIR="/testgpu")
        wait_for(lambda: (shared / "serve").exists() or server.done(), 60)
        done = in_container("accel", "run", "--", "python3", "/tests/demo.py", folders=folders, ACCEL_LOG="1", ACCEL_POLICY="gpu")
        (shared / "end").touch()
        assert server.result().returncode == 0, server.result().stderr[-800:]
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout == plain.replace("False", "True")
    assert " chosen=server " in done.stderr
    assert lines_for(done, sym="cblas_dgemm", ran="gpu0")
