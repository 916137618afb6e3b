#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A bare Debian 13, with gcc 14, glibc 2.41, Python 3.13 and OpenBLAS 0.3.29: libaccel builds there without a warning, and
runs NumPy; OLD_GLIBC=1 builds there what runs with glibc 2.31."""

import shutil
import subprocess

import pytest

from lib.log import lines_for
from lib.programs import BUILD, ROOT
from lib.trees import TREES, in_tree

SOURCE, OLD = TREES / "trixie/usr/src/libaccel", TREES / "bullseye/opt"


def build(*arguments):
    return in_tree("trixie", " ".join(("cd /usr/src/libaccel && make -s -j2 WERROR=-Werror NVCC=", *arguments, "all")), timeout=900)


@pytest.fixture(scope="module")
def source():
    """The tracked files, as they are."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True).stdout
    for name in names.rstrip("\0").split("\0"):
        target = SOURCE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    shutil.copytree(BUILD / "testgpu", SOURCE / "testgpu", ignore=shutil.ignore_patterns("obj"))
    return SOURCE


@pytest.fixture(scope="module")
def built(source):
    return build()


def test_it_builds_without_a_warning(built):
    assert built.returncode == 0, built.stderr[-2000:]
    assert "warning:" not in built.stderr


@pytest.mark.parametrize("env, where", [
    pytest.param({}, {"ran": "cpu", "why": "no_gpu"}, id="without a GPU"),
    pytest.param({"ACCEL_CUDA_DIR": "/usr/src/libaccel/testgpu", "ACCEL_POLICY": "gpu"}, {"ran": "gpu0"}, id="with a GPU")])
def test_numpy_of_there_computes_the_same(built, env, where):
    plain = in_tree("trixie", "python3 /usr/src/libaccel/tests/packages/demo.py")
    done = in_tree("trixie", "/usr/src/libaccel/build/accel run -v -- python3 /usr/src/libaccel/tests/packages/demo.py", env)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout == plain.stdout.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", **where)


def test_built_there_for_old_glibcs_it_runs_with_glibc_2_31(source):
    done = build("OLD_GLIBC=1", "BUILD=build-old")
    assert done.returncode == 0, done.stderr[-2000:]
    for path in (source / "build-old/libaccel.so", source / "build-old/accel", ROOT / "tests/packages/demo.py"):
        shutil.copy(path, OLD)
    done = in_tree("bullseye", "/opt/accel run -v -- python3 /opt/demo.py; getconf GNU_LIBC_VERSION")
    assert done.returncode == 0, done.stderr
    assert "glibc 2.31" in done.stdout
    assert "True" in done.stdout
    assert lines_for(done, sym="cblas_dgemm", ran="cpu", why="no_gpu")
