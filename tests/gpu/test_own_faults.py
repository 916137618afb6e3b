#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Each driver function that kernels of our own need, failing: the call goes to the original, with its answer, and the
log says why. A device that the kernels have no code for is why=unsupported."""

import pytest

from lib.log import lines_for
from lib.programs import LOG, PLAIN, TEST_GPU, start

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
FAULTS = ("cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute",
          "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel",
          "cuLaunchCooperativeKernel", "cuModuleLoadData=CUDA_ERROR_OUT_OF_MEMORY",
          "cuModuleLoadData=CUDA_ERROR_NO_BINARY_FOR_GPU",
          "cuLaunchCooperativeKernel=CUDA_ERROR_LAUNCH_FAILED")


def train(folder, env):
    done = start("/usr/bin/svm-train", "-q", HEART, folder / "model", env=env)
    assert done.returncode == 0, done.stderr
    return done, (folder / "model").read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return train(tmp_path_factory.mktemp("plain"), PLAIN)[1]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_original_trains_bit_for_bit(fault, plain, tmp_path):
    name, _, code = fault.partition("=")
    report = tmp_path / "report"
    done, model = train(tmp_path, {**TEST_GPU, **LOG, "TESTGPU_FAIL": f"{name}:1+{code and '='}{code}",
                                   "TESTGPU_REPORT": str(report)})
    assert model == plain
    assert len(lines_for(done, sym="svm_train", ran="cpu", **({"why": "unsupported"} if "NO_BINARY" in code
                                                              else {}))) == 1
    text = report.read_text()
    assert f"planted function={name} nth=1+" in text
    assert " fired=0" not in text
    assert "testgpu faults n=0" in text
