#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GSL's decompositions, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn:
the results, permutations and signs that GSL alone prints."""

import pytest

from faults.training import Training, TrainingTests
from lib.log import parse_log
from lib.programs import TESTS


class Decompositions(Training):
    """GSL's functions alone are for the GPU, not the BLAS that they call."""

    def run(self, env):
        return super().run({"ACCEL_POLICY": "auto", "ACCEL_GPU": "gsl_*", **env})

    def check_places(self, _):
        assert [line["ran"] for line in parse_log(self.device.stderr) if line["sym"].startswith("gsl_")] == ["gpu0"] * 8


@pytest.fixture(scope="module")
def training():
    return Decompositions("gsl", [TESTS / "gsl_calls", "few"],
                          lambda own, done, _: done.stdout == own.plain.stdout != "" and "WRONG" not in done.stdout)


class TestGsl(TrainingTests):
    pass
