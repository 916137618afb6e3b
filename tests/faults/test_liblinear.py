#!/usr/bin/python3 -B
"""train() of liblinear, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn: the program prints each line
once, as without libaccel, and has the library's own model or the one that the GPU makes without a fault. A signal that ends it ends it."""

import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, ROOT, VENV_PYTHON
from lib.tap import Tap
from training import OUTPUT, Training

HEART = Path("/usr/share/doc/liblinear-tools/examples/heart_scale")
NEWEST = max(BUILD.glob("liblinear/*"))

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-linear-faults-")
classes = Path(folder.name, "classes")  # three, and few elements: the rows are sparse on the device
classes.write_text("".join(f"{i % 3} {' '.join(line.split()[1 + i % 9:4 + i % 9])}\n" for i, line in enumerate(HEART.read_text().splitlines()[:90])))


def is_same(training, done, file):
    """Whether the lines are the library's and the model is that of where all trainings ran; a cross-validation has none."""
    ran = {line["ran"] for line in parse_log(done.stderr)}
    models = {training.device_file} if ran == {"gpu0"} else {training.plain_file} if ran == {"cpu"} else {training.device_file, training.plain_file}
    return done.stdout == training.plain.stdout and file in models


PROGRAM = "/usr/bin/liblinear-train"
COMMANDS = {"liblinear-train": [PROGRAM, "-s", "0", "-B", "1", HEART, OUTPUT],
            "liblinear-train, classes": [PROGRAM, "-s", "2", classes, OUTPUT],
            "liblinear-train -v 3": [PROGRAM, "-s", "11", "-v", "3", HEART],
            f"liblinear {NEWEST.name}": [VENV_PYTHON, "-B", ROOT / "tests/fixtures/liblinear/train.py", next(NEWEST.glob("liblinear/clib*.so")),
                                         NEWEST.name.replace(".", "")[:3], "4", "1", OUTPUT],
            f"liblinear {NEWEST.name}, folds": [VENV_PYTHON, "-B", ROOT / "tests/fixtures/liblinear/cross.py", next(NEWEST.glob("liblinear/clib*.so")), "13", "1", "few"]}
trainings = [Training(name, "liblinear", command, is_same) for name, command in COMMANDS.items()]
for training in trainings:
    if training.check(tap):
        training.device_faults(tap, start_up=training is trainings[0])
        training.host_faults(tap)
trainings[0].signals(tap)
tap.done()
