#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""svm-train and svm-predict, when a CUDA call, an allocation of device memory, or one of host memory fails, each in
turn: they print and write what libsvm alone does, or an equal model; rand() is drawn as without libaccel. A signal
that ends them ends them."""

import re
from pathlib import Path

import pytest

from faults.training import ENDING, OUTPUT, Training, TrainingTests, check_signal
from lib.programs import start

HEART = Path("/usr/share/doc/liblinear-tools/examples/heart_scale")
# What stands behind -b 1 depends on rand(): a training that was given up must leave it where it
# was.
OPTIONS = {"svm-train": [], "svm-train -b 1": ["-b", "1"], "svm-train -v 3": ["-v", "3"], "svm-train -s 4": ["-s", "4"]}
PREDICTS = "svm-predict"


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[-+]\d+)?", text)]


def is_same(training, done, _):
    """Whether the printed lines are those of libsvm, their numbers within its own tolerance."""
    text, plain = done.stdout, training.plain.stdout
    words = [re.sub(r"(?m)^[.*]+$", "*", re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "N", each)) for each in (text, plain)]
    pairs = list(zip(numbers(text), numbers(plain)))
    return words[0] == words[1] and all(abs(a - b) <= 5e-3 * max(1, abs(b)) for a, b in pairs)


def predicts_same(training, done, file):
    pairs = list(zip(file.split(), training.plain_file.split()))
    return len(pairs) == 12 and len(file.split()) == 12 and all(abs(float(a) - float(b)) <= 1e-9 for a, b in pairs)


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Trainings, and predictions, of which the first puts the support vectors on the device. Of regression: each
    value is in the file."""
    folder, rows = tmp_path_factory.mktemp("svm"), HEART.read_text().splitlines(keepends=True)
    data, few, model = folder / "data", folder / "few", folder / "model"
    data.write_text("".join(rows[:100]))
    few.write_text("".join(rows[:12]))
    start("/usr/bin/svm-train", "-q", "-s", "3", "-p", "0.01", HEART, model)
    return {**{name: ["/usr/bin/svm-train", *options, data, OUTPUT] for name, options in OPTIONS.items()},
            PREDICTS: ["/usr/bin/svm-predict", few, model, OUTPUT]}


@pytest.fixture(scope="module", params=(*OPTIONS, PREDICTS))
def training(request, commands):
    command = commands[request.param]
    if request.param == PREDICTS:
        # What a prediction lacks, the next one may have.
        return Training("libsvm", command, predicts_same, host_most=100, lost=1)
    return Training("libsvm", command, is_same, start_up=request.param == "svm-train")


class TestTraining(TrainingTests):
    pass


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
@pytest.mark.parametrize("name", ("svm-train", PREDICTS))
def test_signal_ends_the_program(name, number, commands, tmp_path):
    check_signal(commands[name], number, tmp_path)
