#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""train() of liblinear, when a CUDA call, an allocation of device memory, or one of host memory fails, each in turn:
the program prints each line once, as without libaccel, and has the library's own model or the one that the GPU makes
without a fault. A signal that ends it ends it."""

from pathlib import Path

import pytest

from faults.training import ENDING, OUTPUT, Training, TrainingTests, check_signal
from lib.log import parse_log
from lib.programs import BUILD, ROOT, VENV_PYTHON

HEART = Path("/usr/share/doc/liblinear-tools/examples/heart_scale")
FIXTURES = ROOT / "tests/fixtures/liblinear"
PROGRAM = "/usr/bin/liblinear-train"
CLASSES, LIBRARY, VERSION = "CLASSES", "LIBRARY", "VERSION"  # stand for what is made or found when a test runs
COMMANDS = {"liblinear-train": [PROGRAM, "-s", "0", "-B", "1", HEART, OUTPUT],
            "liblinear-train, classes": [PROGRAM, "-s", "2", CLASSES, OUTPUT],
            "liblinear-train -v 3": [PROGRAM, "-s", "11", "-v", "3", HEART],
            "the newest liblinear": [VENV_PYTHON, "-B", FIXTURES / "train.py", LIBRARY, VERSION, "4", "1", OUTPUT],
            "the newest liblinear, folds": [VENV_PYTHON, "-B", FIXTURES / "cross.py", LIBRARY, "13", "1", "few"]}


def is_same(training, done, file):
    """Whether the lines are the library's and the model is that of where all trainings ran; a cross-validation has
    none."""
    ran = {line["ran"] for line in parse_log(done.stderr)}
    models = {training.device_file} if ran == {
        "gpu0"
    } else {training.plain_file} if ran == {"cpu"} else {training.device_file, training.plain_file}
    return done.stdout == training.plain.stdout and file in models


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Data of three classes with few elements: the rows are sparse on the device."""
    path = tmp_path_factory.mktemp("data") / "classes"
    path.write_text("".join(f"{i % 3} {' '.join(line.split()[1 + i % 9:4 + i % 9])}\n"
                            for i, line in enumerate(HEART.read_text().splitlines()[:90])))
    return path


@pytest.fixture(scope="module", params=COMMANDS)
def training(request, classes):
    newest = max(BUILD.glob("liblinear/*"))
    found = {
        CLASSES: classes, LIBRARY: next(newest.glob("liblinear/clib*.so")), VERSION: newest.name.replace(".", "")[:3]
    }
    command = [found.get(word, word) for word in COMMANDS[request.param]]
    return Training("liblinear", command, is_same, start_up=request.param == "liblinear-train")


class TestTraining(TrainingTests):
    pass


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_signal_ends_the_program(number, tmp_path):
    check_signal(COMMANDS["liblinear-train"], number, tmp_path)
