"""What the programs share: their sizes, which PROGRAM_SCALE (1) makes smaller, and the images of Fashion-MNIST in the
folder PROGRAM_DATA."""

import gzip
import os
from pathlib import Path

import numpy as np


def scaled(number, least=2):
    return max(least, round(number * float(os.environ.get("PROGRAM_SCALE", "1"))))


def images(count, dtype=np.float64):
    """The first so many images of 784 pixels from 0 to 1, and their labels."""
    folder = Path(os.environ["PROGRAM_DATA"])
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + 784 * count), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + count), np.uint8, offset=8)
    return pixels.astype(dtype) / 255, labels.astype(int)
