"""Settings with which several test GPUs share calls of any size: by their attributes they are so slow that copies take no time beside
products."""

from lib.programs import LOG, TEST_GPU

ATTRIBUTES = "16=1,13=1"  # one multiprocessor, a clock of 1 kHz


def several(devices, **extra):
    return {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_DEVICES": str(devices), "TESTGPU_ATTRIBUTES": ATTRIBUTES, "ACCEL_DEVICES": "all",
            "ACCEL_START": "wait", **extra}
