#!/usr/bin/python3 -B
"""GSL's decompositions, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn: the results, permutations and signs
that GSL alone prints."""

from lib.log import parse_log
from lib.programs import TESTS
from lib.tap import Tap
from training import Training


class Decompositions(Training):
    """GSL's functions alone are for the GPU, not the BLAS that they call."""

    def run(self, env):
        return super().run({"ACCEL_POLICY": "auto", "ACCEL_GPU": "gsl_*", **env})

    def check(self, tap):
        ran = [line["ran"] for line in parse_log(self.device.stderr) if line["sym"].startswith("gsl_")]
        return tap.ok(self.is_right(self.device, self.device_file) and ran == ["gpu0"] * 8 and not self.baseline.misuse, f"{self.name}: on the GPU without a fault",
                      self.device.stdout, self.device.stderr, *self.baseline.misuse[:3])


tap = Tap()
gsl = Decompositions("gsl_calls", "gsl", [TESTS / "gsl_calls", "few"], lambda own, done, _: done.stdout == own.plain.stdout != "" and "WRONG" not in done.stdout)
if gsl.check(tap):
    gsl.device_faults(tap)
    gsl.host_faults(tap)
tap.done()
