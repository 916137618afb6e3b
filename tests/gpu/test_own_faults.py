#!/usr/bin/python3 -B
"""Each driver function that kernels of our own need, failing: the call goes to the original, with its answer, and the log says why. A device
that the kernels have no code for is why=unsupported."""

import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import LOG, PLAIN, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
LAUNCHES = ("cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel",
            "cuLaunchCooperativeKernel")

with tempfile.TemporaryDirectory(prefix="accel-own-") as folder:

    def train(name, env):
        model = Path(folder, name)
        done = start("/usr/bin/svm-train", "-q", HEART, str(model), env=env)
        return done, model.read_bytes() if model.exists() else None

    _, plain = train("plain", PLAIN)
    for name, code in [*((name, "") for name in LAUNCHES), ("cuModuleLoadData", "=CUDA_ERROR_OUT_OF_MEMORY"), ("cuModuleLoadData", "=CUDA_ERROR_NO_BINARY_FOR_GPU"),
                       ("cuLaunchCooperativeKernel", "=CUDA_ERROR_LAUNCH_FAILED")]:
        report = Path(folder, "report")
        report.unlink(missing_ok=True)
        done, model = train("model", {**TEST_GPU, **LOG, "TESTGPU_FAIL": f"{name}:1+{code}", "TESTGPU_REPORT": str(report)})
        text = report.read_text()
        planted = f"planted function={name} nth=1+" in text and " fired=0" not in text
        why = "unsupported" if "NO_BINARY" in code else None
        lines = lines_for(done, sym="svm_train", ran="cpu", **({"why": why} if why else {}))
        tap.ok(planted and done.returncode == 0 and model == plain and len(lines) == 1 and "testgpu faults n=0" in text,
               f"{name}{code} fails: the original trains, bit for bit", done.stderr, text[-800:])
tap.done()
