#!/usr/bin/python3 -B
"""The part of NumPy's own tests that is small enough for every run of the test suite; with TEST_LONG=1 such parts of SciPy's and
scikit-learn's, too."""

import os
from pathlib import Path

run = str(Path(__file__).resolve().parent / "run")
os.execv(run, [run] if os.environ.get("TEST_LONG") == "1" else [run, "numpy"])
