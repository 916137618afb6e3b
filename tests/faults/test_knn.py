#!/usr/bin/python3 -B
"""Nearest neighbours of R's packages class and FNN, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn: to the last
bit what the packages compute by themselves, and the same random numbers after it."""

from lib.programs import ROOT
from lib.tap import Tap
from training import Training

tap = Tap()
COMMAND = ["/usr/bin/Rscript", "--vanilla", ROOT / "tests/fixtures/knn/neighbours.R", "few"]
neighbours = Training("neighbours", "knn", COMMAND, lambda own, done, _: done.stdout == own.plain.stdout != "")
if neighbours.check(tap):
    neighbours.device_faults(tap, most=2)
    neighbours.host_faults(tap)
tap.done()
