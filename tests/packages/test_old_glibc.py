#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""OLD_GLIBC=1: the library and the tool ask for nothing that glibc 2.28 lacks, need glibc's libraries alone, and run:
here, and with the oldest glibc that there is a bare system of, 2.31."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, TEST_GPU, start
from lib.trees import TREES, in_tree

GLIBC = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "ld-linux-x86-64.so.2"}
PROGRAM = DEBIAN_PYTHON, ROOT / "tests/packages/demo.py"


@pytest.fixture(scope="module")
def built():
    """The folder of a build."""
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="glibc-") as folder:
        done = subprocess.run(["make", "-j2", f"BUILD={folder}", "OLD_GLIBC=1", "NVCC=", "all"], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-1500:]
        yield Path(folder)


def said_of(file):
    return subprocess.run(["readelf", "-W", "--dyn-syms", "-d", file], text=True, stdout=subprocess.PIPE).stdout


each_file = pytest.mark.parametrize("name", ["libaccel.so", "accel"])


@each_file
def test_nothing_is_newer_than_glibc_2_28(built, name):
    """packaging/glibc/ has what was."""
    wanted = re.findall(r"UND (\w+)@GLIBC_([\d.]+)", said_of(built / name))
    assert len(wanted) > 60
    assert not [symbol for symbol in wanted if tuple(map(int, symbol[1].split("."))) > (2, 28)]


@each_file
def test_it_needs_glibc_alone(built, name):
    assert set(re.findall(r"Shared library: \[(.*)\]", said_of(built / name))) <= GLIBC


def test_it_runs_calls_on_the_gpu_here(built):
    done = start(*PROGRAM, env={**TEST_GPU, "LD_PRELOAD": str(built / "libaccel.so"), "ACCEL_LOG": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == start(*PROGRAM).stdout.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", ran="gpu0")


# ---- A bare system with glibc 2.31 ----


@pytest.fixture(scope="module")
def plain(built):
    """What a program writes there without libaccel, which is in its /opt."""
    opt = TREES / "bullseye/opt"
    for path in opt.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (built / "libaccel.so", built / "accel", ROOT / "tests/packages/demo.py"):
        shutil.copy(path, opt)
    done = in_tree("bullseye", "python3 /opt/demo.py; getconf GNU_LIBC_VERSION")
    assert done.returncode == 0, done.stderr
    assert "glibc 2.31" in done.stdout
    return done.stdout


def test_there_numpy_computes_the_same_under_accel_run(plain):
    done = in_tree("bullseye", "/opt/accel run -v -- python3 /opt/demo.py; getconf GNU_LIBC_VERSION")
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", ran="cpu", why="no_gpu")


def test_accel_doctor_and_accel_config_work_there(plain):
    done = in_tree("bullseye", "/opt/accel --version && /opt/accel config && ! /opt/accel doctor")
    assert done.returncode == 0, done.stderr
    assert "libcuda.so.1" in done.stdout


def test_an_error_of_the_system_is_described_there(plain):
    done = in_tree("bullseye", "ACCEL_LOG=1 ACCEL_LOG_FILE=/none/log LD_PRELOAD=/opt/libaccel.so python3 /opt/demo.py")
    assert "No such file or directory" in done.stderr
