#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""make deb: a package that lintian finds no error in, whose files are where Debian has them, which installs into a bare
Debian 12 beside Intel's accel-config, and into a bare Debian 13, does nothing until it is asked to, runs NumPy there
without a GPU and on the test GPU, and leaves nothing behind."""

import os
import shutil
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, ROOT
from lib.trees import TREES, files_of, in_tree

VERSION = (ROOT / "VERSION").read_text().strip()
PRELOADS = [path.relative_to(BUILD) for path in (BUILD / "accel-preload").rglob("libaccel.so")]
FILES = {"usr/bin/accel", "usr/lib/x86_64-linux-gnu/libaccel/libaccel.so",
         *(f"usr/lib/x86_64-linux-gnu/libaccel/{path}" for path in PRELOADS),
         "usr/share/bash-completion/completions/accel", "usr/share/zsh/vendor-completions/_accel",
         "usr/share/fish/vendor_completions.d/accel.fish", "usr/share/lintian/overrides/libaccel",
         "usr/share/man/man1/accel.1.gz",
         "usr/share/man/man5/accel.conf.5.gz", "usr/share/man/man7/libaccel.7.gz",
         *(f"usr/lib/systemd/{kind}/accel-serve.{unit}" for kind in ("user", "system") for unit in ("socket", "service"))}
DOCUMENTS = "usr/share/doc/libaccel/"
OTHERS = "accel-config libaccel-config-dev libaccel-config1"


@pytest.fixture(scope="module")
def package():
    """Without the kernels of gpu/own/, which take minutes."""
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="deb-") as folder:
        done = subprocess.run(["make", f"DISTDIR={folder}", "deb"], cwd=ROOT, env={**os.environ, "NVCC": ""}, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-2000:]
        path = Path(folder, f"libaccel_{VERSION}-1_amd64.deb")
        assert path.exists()
        yield path


def test_lintian_finds_no_error(package):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_library_tool_manual_completion_documents(package):
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    listed = subprocess.run(["tar", "-t"], input=done.stdout, stdout=subprocess.PIPE).stdout.decode().split()
    files = {name.removeprefix("./") for name in listed if not name.endswith("/")}
    assert {name for name in files if not name.startswith(DOCUMENTS)} == FILES
    assert {f"{DOCUMENTS}{name}" for name in ("copyright", "changelog.gz", "README.md.gz")} <= files


# before: the tree's files. plain: what the program writes without libaccel. installed: the
# installation's process.
Bare = namedtuple("Bare", "tree before plain installed")


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def bare(package, request):
    """A bare Debian into which the package is installed."""
    tree = request.param
    in_tree(tree, "dpkg --purge libaccel; rm -rf /opt/*")
    before, opt = files_of(tree), TREES / tree / "opt"
    shutil.copy(package, opt / "libaccel.deb")
    shutil.copy(ROOT / "tests/packages/demo.py", opt / "demo.py")
    shutil.copytree(BUILD / "testgpu", opt / "testgpu", ignore=shutil.ignore_patterns("obj"))
    plain = in_tree(tree, "python3 /opt/demo.py")
    beside = f"dpkg --verify {OTHERS} && test -x /usr/bin/accel-config" if tree == "bookworm" else "true"
    return Bare(tree, before, plain, in_tree(tree, f"dpkg --install /opt/libaccel.deb && {beside}"))


def test_it_installs_into_a_bare_debian_beside_accel_config_and_libaccel_config_dev(bare):
    assert bare.installed.returncode == 0, bare.installed.stdout[-300:] + bare.installed.stderr[-800:]


def test_and_is_not_active_until_a_program_asks_for_it(bare):
    done = in_tree(bare.tree, "python3 /opt/demo.py")
    assert done.returncode == 0
    assert done.stdout == bare.plain.stdout
    assert "False" in done.stdout
    assert not done.stderr
    assert not (TREES / bare.tree / "etc/ld.so.preload").exists()


@pytest.mark.parametrize("env, where", [
    pytest.param({}, {"ran": "cpu", "why": "no_gpu"}, id="without a GPU"),
    pytest.param({"ACCEL_CUDA_DIR": "/opt/testgpu", "ACCEL_POLICY": "gpu"}, {"ran": "gpu0"}, id="with a GPU")])
def test_under_accel_run_the_same_numbers(bare, env, where):
    done = in_tree(bare.tree, "accel run -v -- python3 /opt/demo.py", env)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout == bare.plain.stdout.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", **where)


def test_the_tool_says_its_version_and_what_the_build_has_left_out(bare):
    done = in_tree(bare.tree,
                   "accel --version && bash -c 'source /usr/share/bash-completion/completions/accel' && dpkg --verify "
                   "libaccel")
    assert done.returncode == 0, done.stderr[-500:]
    assert VERSION in done.stdout
    assert "\nwithout kernels of its own: built without nvcc\n" in done.stdout


def test_purged_it_leaves_nothing(bare):
    done = in_tree(bare.tree, "dpkg --purge libaccel && rm -rf /opt/*")
    assert done.returncode == 0, done.stderr[-500:]
    assert files_of(bare.tree) == bare.before
