"""Settings with which several test GPUs share calls of any size: by their attributes they are so slow that copies take no time beside
products."""

from lib.calibrated import keys, lines, put
from lib.programs import LOG, TEST_GPU

ATTRIBUTES = "16=1,13=1"  # one multiprocessor, a clock of 1 kHz


def several(devices, **extra):
    return {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": str(devices), "TESTGPU_ATTRIBUTES": ATTRIBUTES, "ACCEL_DEVICES": "all",
            "ACCEL_START": "wait", **extra}


def behind_slow_links(devices, folder, **extra):
    """The same with fast products and slow links: each byte that a part does not need makes it faster. folder: an empty one, for the calibration."""
    put(folder + "/slow-links", {keys(folder)["gpu"]: "up_gbps=0.001\ndown_gbps=0.1\nkernels_ms=0.001\nsolver_ms=0.001\n" + lines(0.001)})
    return several(devices, TESTGPU_ATTRIBUTES="", ACCEL_MODEL=folder + "/slow-links", **extra)
