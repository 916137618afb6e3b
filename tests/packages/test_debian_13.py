#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A bare Debian 13, with gcc 14, glibc 2.41, Python 3.13 and OpenBLAS 0.3.29: make demo builds libaccel there without a
warning, and runs NumPy and Octave; OLD_GLIBC=1 builds there what runs with glibc 2.31. Tests of calls, of what must
stay as it is, and of NumPy, R 4.5 and Octave 9 pass there, built by the compiler of there; and those which that
compiler or LAPACK 3.12 has failed before: what a start touches, and the lengths of workspaces."""

import os
import re
import shutil
import subprocess

import pytest

from lib.log import lines_for
from lib.programs import BUILD, ROOT, leave_out
from lib.trees import TREES, in_tree

SOURCE, OLD = TREES / "trixie/usr/src/libaccel", TREES / "bullseye/opt"
# Test files that run there, and what is chosen of them: there are no wheels.
TESTED = {"tests/ops/test_calls.py": "", "tests/shim/test_behaviour.py": "", "tests/shim/test_footprint.py": "",
          "tests/programs/test_numpy.py": "-k Debian", "tests/programs/test_r.py": "",
          "tests/programs/test_octave.py": "", "tests/unit/run": "tests/ops/lapack/test_least_lengths.c"}
PROGRAMS = ["random_calls", "random_calls64", "cuda_program", "liblacking.so", "liblacking64.so", "libwrong_gemmt.so",
            "forks", "lookups", "libasker.so", "bad_arguments", "bad_arguments_longjmp", "steps",
            "test_least_lengths"]


def build(*arguments, targets=("all",)):
    return in_tree("trixie", " ".join(("cd /usr/src/libaccel && make -s -j2 WERROR=-Werror NVCC=", *arguments, *targets)),
                   timeout=900)


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
    """All that make demo needs is there: it installs nothing. NVCC= has it fetch no compiler of kernels."""
    return build(targets=["demo"])


def test_make_demo_builds_without_a_warning(built):
    assert built.returncode == 0, built.stderr[-2000:]
    assert "warning:" not in built.stderr


def test_make_demo_says_what_ran_where(built):
    numpy, octave = built.stdout.split("The same library under GNU Octave:")
    assert len(re.findall(r"(?m)^3000 x 3000 float(?:32|64) 1500\.0$", numpy)) == 2
    assert "sym=cblas_dgemm" in numpy and "sym=dgemm_" in octave
    assert re.search(r"(?m)^accel .* ran=cpu why=no_gpu", numpy) and re.search(r"(?m)^1000$", octave)
    assert "There is no GPU here that can be used" in octave


@pytest.mark.parametrize("env, where", [
    pytest.param({}, {"ran": "cpu", "why": "no_gpu"}, id="without a GPU"),
    pytest.param({"ACCEL_CUDA_DIR": "/usr/src/libaccel/testgpu", "ACCEL_POLICY": "gpu"}, {"ran": "gpu0"}, id="with a GPU")])
def test_numpy_of_there_computes_the_same(built, env, where):
    plain = in_tree("trixie", "python3 /usr/src/libaccel/tests/packages/demo.py")
    done = in_tree("trixie", "/usr/src/libaccel/build/accel run -v -- python3 /usr/src/libaccel/tests/packages/demo.py", env)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout == plain.stdout.replace("False", "True")
    assert lines_for(done, sym="cblas_dgemm", **where)


@pytest.fixture(scope="module")
def tested(built, source):
    """Programs of the tests, with this machine's headers of CUDA; and this machine's test GPU, which has a BLAS inside."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", BUILD / "cuda"]
    headers = next(f"{home}/include" for home in homes if home and os.path.exists(f"{home}/include/cufft.h"))
    shutil.copytree(headers, source / "cuda")
    done = build("CUDA_INCLUDE=cuda", targets=[f"build/tests/{name}" for name in PROGRAMS])
    assert done.returncode == 0, done.stderr[-2000:]
    for name in ("testgpu", "testgpu-cuda12"):
        shutil.copytree(BUILD / name, source / "build" / name, ignore=shutil.ignore_patterns("obj"), dirs_exist_ok=True)


@pytest.mark.parametrize("file", TESTED)
def test_tests_pass_there(tested, file):
    runner = "python3 -B tests/tap.py" if file.endswith(".py") else ""
    done = in_tree("trixie", f"cd /usr/src/libaccel && {runner} {file} {TESTED[file]}", timeout=600)
    for what in re.findall(r"# (?:left out:|SKIP) (.*)", done.stdout):
        leave_out(f"{file}: {what}")
    assert done.returncode == 0, "\n".join(re.findall(r"(?m)^(?:not ok|#  ).*", done.stdout)) + done.stderr[-800:]
    assert re.search(r"(?m)^ok\b(?!.*# SKIP)", done.stdout)


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
