#!/usr/bin/python3 -B
"""Random problems of a wide range, which libsvm and the test GPU solve alike: C to 1e5, gamma from 1e-4 to 10, weights, folds, few vectors, equal and empty
ones. Those that libsvm needs too long for are left out."""

import tempfile

from judge import compare_problems
from lib.programs import DEBIAN_PYTHON, LONG, VENV_PYTHON
from lib.tap import Tap

tap = Tap()
DOTS = 60

# 41 has four vectors, and probabilities of a regression; in a fold of PyPI's 46 rounding alone
# decides.
with tempfile.TemporaryDirectory(prefix="accel-wide-") as folder:
    compare_problems(tap, "Debian's libsvm", 140 if LONG else 4, DEBIAN_PYTHON, 1, folder + "/", DOTS, range(200) if LONG else (0, 1, 2, 3, 41), "wide", 10)
    compare_problems(tap, "PyPI's libsvm", 70 if LONG else 2, VENV_PYTHON, 1, folder + "/", DOTS, range(100) if LONG else (45, 46, 47), "wide", 11)
tap.done()
