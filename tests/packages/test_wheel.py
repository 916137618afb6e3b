#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""make wheel: what pip installs beside PyPI's NumPy into a fresh environment runs that NumPy under libaccel, does
nothing unasked, and leaves nothing when it is uninstalled; auditwheel finds that its tag is true."""

import os
import re
import runpy
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT

VERSION = (ROOT / "VERSION").read_text().strip()
TOOLS = BUILD / "packages-venv/bin"
DEMO = ROOT / "tests/packages/demo.py"


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="wheel-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def run(folder):
    """What runs a program as a user's shell does, without what this test was given."""
    return lambda *words, **env: subprocess.run([*map(str, words)],
                                                env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **env}, text=True,
                                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)


@pytest.fixture(scope="module")
def wheel(folder):
    """For all architectures, the kernels of gpu/own/ take minutes."""
    done = subprocess.run(["make", f"DISTDIR={folder}", "wheel"], cwd=ROOT,
                          env={**os.environ, "OWN_ARCHITECTURES": "80"}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-2000:]
    path = folder / f"libaccel-{VERSION}-py3-none-manylinux_2_28_x86_64.whl"
    assert path.exists()
    return path


def test_auditwheel_the_tag_is_true_and_no_older_one_would_be(wheel, run):
    done = run(TOOLS / "auditwheel", "show", wheel)
    assert done.returncode == 0, done.stderr[-500:]
    assert 'consistent with the following platform tag: "manylinux_2_28_x86_64"' in " ".join(done.stdout.split())


def test_what_the_tag_s_glibc_lacks_is_told(folder):
    """make-wheel makes no wheel of it: a function that 2.34 moved, and a way to write relocations that 2.36 brought."""
    too_new = runpy.run_path(str(ROOT / "packaging/make-wheel"), run_name="make_wheel")["too_new"]
    program = """#include <pthread.h>
        static pthread_attr_t attributes, *one = &attributes;
        int main(void) { size_t bytes; return pthread_attr_getstacksize(one, &bytes); }"""
    subprocess.run(["gcc", "-x", "c", "-pie", "-fPIE", "-Wl,-z,pack-relative-relocs", "-o", folder / "new", "-"],
                   input=program, text=True, check=True)
    assert {"pthread_attr_getstacksize@GLIBC_2.34", "GLIBC_ABI_DT_RELR"} <= set(too_new(folder / "new"))


def test_check_wheel_contents_finds_nothing(wheel, run):
    # W007: there is no Python code.
    done = run(TOOLS / "check-wheel-contents", "--ignore", "W007", wheel)
    assert done.returncode == 0, done.stdout[-800:] + done.stderr[-300:]


def files_of(venv):
    return {path for path in venv.rglob("*") if "__pycache__" not in path.parts}


# before: the environment's files. plain: what NumPy writes without libaccel.
Environment = namedtuple("Environment", "venv python accel before plain installed")


@pytest.fixture(scope="module")
def environment(folder, wheel, run):
    """A fresh environment with PyPI's NumPy, into which the wheel is installed."""
    venv = folder / "venv"
    run(DEBIAN_PYTHON, "-m", "venv", venv)
    run(venv / "bin/pip", "install", "--no-index", "--find-links", TOOLS.parent / "wheels", "numpy")
    before, plain = files_of(venv), run(venv / "bin/python", DEMO)
    installed = run(venv / "bin/pip", "install", "--no-index", wheel)
    return Environment(venv, venv / "bin/python", venv / "bin/accel", before, plain, installed)


def test_pip_installs_it_beside_pypi_s_numpy(environment):
    assert environment.installed.returncode == 0, environment.installed.stderr[-500:]
    assert "False" in environment.plain.stdout, environment.plain.stderr[-500:]


def test_it_has_the_kernels_of_our_own(environment, run):
    said = run(environment.accel, "--version").stdout
    assert "\nwith kernels of its own\n" in said
    assert re.search(r"(?m)^commit [0-9a-f]{12}$", said) or not (ROOT / ".git").exists()


def test_it_is_not_active_until_a_program_asks_for_it(environment, run):
    done = run(environment.python, DEMO)
    assert done.stdout == environment.plain.stdout
    assert not done.stderr


@pytest.mark.parametrize("env, where", [
    pytest.param({"CUDA_VISIBLE_DEVICES": "-1"}, {"ran": "cpu", "why": "no_gpu"}, id="without a GPU"),
    pytest.param({"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"}, {"ran": "gpu0"}, id="with a GPU")])
def test_under_accel_run_the_same_numbers(environment, run, env, where):
    done = run(environment.accel, "run", "-v", "--", environment.python, DEMO, **env)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout == environment.plain.stdout.replace("False", "True")
    assert lines_for(done, sym="scipy_cblas_dgemm64_", **where)


def test_by_a_path_that_musl_s_linker_does_not_follow(environment, run):
    done = run(environment.accel, "run", "printenv", "LD_PRELOAD")
    assert re.search(r"/libaccel/accel-preload/\$PLATFORM/\.\./\.\./libaccel\.so\n$", done.stdout)


def test_also_through_a_link_as_pipx_and_others_make(environment, run, tmp_path):
    (tmp_path / "accel").symlink_to(environment.accel)
    done = run(tmp_path / "accel", "run", "--", environment.python, DEMO, CUDA_VISIBLE_DEVICES="-1")
    assert done.stdout == environment.plain.stdout.replace("False", "True"), done.stderr[-500:]


def test_uninstalled_it_leaves_no_file(environment, run):
    done = run(environment.venv / "bin/pip", "uninstall", "-y", "libaccel")
    assert done.returncode == 0, done.stderr[-500:]
    assert not [path for path in files_of(environment.venv) - environment.before if path.is_file()]
