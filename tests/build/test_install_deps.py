#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""scripts/install-deps with an apt-get and a dpkg that only write down how they are called: what an installation that
was cut off has left is finished before apt-get, which refuses everything until then."""

import os
import subprocess

import pytest

from lib.programs import ROOT

WRITTEN = """#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
[ "${0##*/}" != "$FAILS" ] || exit 1
"""


@pytest.fixture
def install(tmp_path):
    """What runs it, and returns the process and the calls of apt-get and dpkg; left: of an installation that was cut
    off; fails: which program; more: of the environment."""
    calls, updates = tmp_path / "calls", tmp_path / "admin/updates"
    updates.mkdir(parents=True)
    for name in ("apt-get", "dpkg", "dpkg-query", "sudo"):
        (tmp_path / name).write_text(WRITTEN if name != "sudo" else '#!/bin/sh\nexec "$@"\n')
        (tmp_path / name).chmod(0o755)

    def install(left=True, fails="", word="fuzz", **more):
        calls.write_text("")
        if left:
            (updates / "0000").touch()
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "FAILS": fails,
               "DPKG_ADMINDIR": str(tmp_path / "admin"), **more}
        done = subprocess.run(["scripts/install-deps", word], cwd=ROOT, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, env=env)
        return done, [line for line in calls.read_text().splitlines() if not line.startswith("dpkg-query ")]

    return install


def test_what_is_missing_is_installed(install):
    done, made = install(left=False)
    assert done.returncode == 0
    assert [line.split()[:3] for line in made] == [["apt-get", "-q", "update"], ["apt-get", "-q", "install"]]
    assert not done.stderr


def test_after_what_an_interrupted_installation_has_left_and_a_line_says_so(install):
    _, made = install(left=False)
    done, after = install()
    assert done.returncode == 0
    assert after == ["dpkg --configure -a", *made]
    assert done.stderr == "install-deps: an earlier installation was interrupted; finishing it first: dpkg " \
                          "--configure -a\n"


def test_apt_get_has_the_last_word_of_packages_that_dpkg_cannot_configure(install):
    _, made = install(left=False)
    done, after = install(fails="dpkg")
    assert done.returncode == 0
    assert after == ["dpkg --configure -a", *made]
    assert "could not be configured" in done.stderr


def test_a_failure_of_apt_get_s_is_the_script_s(install):
    _, made = install(left=False)
    done, after = install(fails="apt-get")
    assert done.returncode != 0
    assert after == ["dpkg --configure -a", made[0]]


@pytest.mark.parametrize("nvcc, fetched", [({}, True), ({"NVCC": ""}, False)], ids=["by default", "NVCC="])
def test_a_compiler_for_the_kernels_is_fetched_unless_none_is_wanted(install, tmp_path, nvcc, fetched):
    """From no index: it cannot be had here."""
    done, made = install(left=False, word="build", CUDA_HOME=str(tmp_path), PATH=f"{tmp_path}:/usr/bin:/bin",
                         BUILD=str(tmp_path / "build"), PIP_NO_INDEX="1", PIP_FIND_LINKS="", **nvcc)
    assert done.returncode == 0
    assert ("python3-venv" in made[-1]) == fetched
    assert ("no nvcc to be had" in done.stderr) == fetched
