#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Random problems of a wide range, which libsvm and the test GPU solve alike: C to 1e5, gamma from 1e-4 to 10, weights,
folds, few vectors, equal and empty ones. Those that libsvm needs too long for are left out."""

from lib.programs import DEBIAN_PYTHON, LONG, VENV_PYTHON
from ops.svm.judge import check_problems

DOTS = 60

# 41 has four vectors, and probabilities of a regression; in a fold of PyPI's 46 rounding alone
# decides.


def test_debians_libsvm(tmp_path):
    check_problems(140 if LONG else 4, DEBIAN_PYTHON, 1, f"{tmp_path}/", DOTS, range(200) if LONG else (0, 1, 2, 3, 41),
                   "wide", 10)


def test_pypis_libsvm(tmp_path):
    check_problems(70 if LONG else 2, VENV_PYTHON, 1, f"{tmp_path}/", DOTS, range(100) if LONG else (45, 46, 47),
                   "wide", 11)
