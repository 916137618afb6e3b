#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Kernels of different blocks run beside each other on two streams, with a workspace each: each stream has its share of
them, whatever a block of a panel needs of the other stream's is there, and results are exact. Not where the program's
cuBLAS takes no workspace, nor where memory is short. The workspace is the same whatever is on the device already; and a
stream context whose cuBLAS did not come back from the other stream serves no further call."""

import re
from collections import Counter
from functools import cache

import pytest

from lib.calibrated import calibrate_copies
from lib.log import lines_for, said
from lib.programs import BUILD, TEST_GPU, TESTS, start

CASES = """dsymm:LU:1500:800:3 zhemm:RL:901:500:2 dtrmm:LLNN:1500:700:0 dtrmm:RUTU:1301:600:3 ctrmm:LUCN:1700:400:0 
    dtrsm:LUTN:1400:700:0 dtrsm:RLNU:1301:600:5 ztrsm:LLCN:1100:400:0 dsyrk:LN:1500:700:0 zher2k+:LC:1200:300:0""".split()


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    calibrate_copies(f"{folder}/model", folder)
    return {**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_RESIDENT": "off", "ACCEL_MODEL": f"{folder}/model"}


@cache
def expected(case):
    return start("triangles", case).stdout


def streams_of(case, env, folder):
    """Runs the case, whose result must be right, and its one call on the GPU; returns the number of kernels by
    stream."""
    trace, report = folder / "trace", folder / "report"
    done = start("triangles", case, env={**env, "TESTGPU_TRACE": str(trace), "TESTGPU_REPORT": str(report)})
    assert done.stdout == expected(case)
    assert lines_for(done)[0]["ran"] == "gpu0"
    assert "testgpu fault " not in report.read_text()
    # It is of one version of cuBLAS, and of some libraries.
    assert not [words for words in said(done) if " has nothing for " not in words]
    return Counter(re.findall(r" run (?!copy|fill)\w+ stream=(\S+)", trace.read_text()))


@pytest.mark.parametrize("delay", ["0", "2000"], ids="each step up to {} us late".format)
@pytest.mark.parametrize("case", CASES)
def test_two_streams(case, delay, env, tmp_path):
    streams = streams_of(case, {**env, "TESTGPU_DELAY_US": delay}, tmp_path)
    assert len(streams) == 2
    assert min(streams.values()) >= 0.2 * sum(streams.values())


@pytest.mark.parametrize("extra", [
    pytest.param({"ACCEL_MEMORY": "8M"}, id="where memory is short"),
    pytest.param({"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}, id="where cuBLAS takes no workspace")])
def test_one_stream(extra, env, tmp_path):
    assert len(streams_of(CASES[0], {**env, **extra}, tmp_path)) == 1


def test_one_workspace_whatever_is_on_the_device_already(env, tmp_path):
    sizes = {}
    for resident in ("off", "hash"):
        trace = tmp_path / resident
        done = start("again", "blocks", 4, env={**env, "ACCEL_RESIDENT": resident, "TESTGPU_TRACE": str(trace)})
        assert done.returncode == 0
        sizes[resident] = set(re.findall(r"cublasSetWorkspace_v2\(.* bytes=(\d+)", trace.read_text()))
        kept = [line for line in lines_for(done) if float(line.get("kept_mb", 0)) > 0]
        assert bool(kept) == (resident == "hash")
    assert sizes["off"] == sizes["hash"]
    assert len(sizes["off"]) == 1


def test_a_ctx_that_is_astray(env, tmp_path):
    """The stream of cuBLAS cannot be set at one time: further calls are right."""
    fired = 0
    for n in range(2, 14):
        report = tmp_path / f"report{n}"
        done = start("random_calls", "-l", TESTS / "liblacking.so", "-f", "y", "-c", 4, "-n", 800, "-s", 1, "-r",
                     "d@(gemm|syrk|symm)",
                     env={**env, "TESTGPU_FAIL": f"cublasSetStream_v2:{n}", "TESTGPU_REPORT": str(report)})
        assert done.returncode == 0, n
        assert done.stdout.endswith(" 0 wrong\n"), n
        assert "testgpu fault " not in report.read_text(), n
        fired += "fired=1" in report.read_text()
    assert fired >= 6
