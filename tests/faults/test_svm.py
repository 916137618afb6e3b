#!/usr/bin/python3 -B
"""svm-train and svm-predict, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn: they print and write what
libsvm alone does, or an equal model; rand() is drawn as without libaccel. A signal that ends them ends them."""

import re
import tempfile
from pathlib import Path

from lib.programs import start
from lib.tap import Tap
from training import OUTPUT, Training

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
ROWS = 100
# What stands behind -b 1 depends on rand(): a training that was given up must leave it where it
# was.
CASES = {"svm-train": [], "svm-train -b 1": ["-b", "1"], "svm-train -v 3": ["-v", "3"], "svm-train -s 4": ["-s", "4"]}

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-svm-faults-")
data = Path(folder.name, "data")
data.write_text("".join(Path(HEART).read_text().splitlines(keepends=True)[:ROWS]))


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[-+]\d+)?", text)]


def is_same(training, done, _):
    """Whether the printed lines are those of libsvm, their numbers within its own tolerance."""
    text, plain = done.stdout, training.plain.stdout
    words = [re.sub(r"(?m)^[.*]+$", "*", re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "N", each)) for each in (text, plain)]
    pairs = list(zip(numbers(text), numbers(plain)))
    return words[0] == words[1] and all(abs(a - b) <= 5e-3 * max(1, abs(b)) for a, b in pairs)


trainings = [Training(name, "libsvm", ["/usr/bin/svm-train", *options, data, OUTPUT], is_same) for name, options in CASES.items()]
# Predictions, of which the first puts the support vectors on the device. Of regression: each value
# is in the file.
model, few = Path(folder.name, "model"), Path(folder.name, "few")
few.write_text("".join(Path(HEART).read_text().splitlines(keepends=True)[:12]))
start("/usr/bin/svm-train", "-q", "-s", "3", "-p", "0.01", HEART, model)


def predicts_same(training, done, file):
    pairs = list(zip(file.split(), training.plain_file.split()))
    return len(pairs) == 12 and len(file.split()) == 12 and all(abs(float(a) - float(b)) <= 1e-9 for a, b in pairs)


predictions = Training("svm-predict", "libsvm", ["/usr/bin/svm-predict", few, model, OUTPUT], predicts_same)
for program in [*trainings, predictions]:
    if program.check(tap):
        program.device_faults(tap, start_up=program is trainings[0])
        # What a prediction lacks, the next one may have.
        program.host_faults(tap, **{"most": 100, "lost": 1} if program is predictions else {})
trainings[0].signals(tap)
predictions.signals(tap)
tap.done()
