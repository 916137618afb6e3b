#!/usr/bin/python3 -B
"""Those of NumPy's own tests that are about products and linear algebra; with TEST_LONG=1 all of NumPy's, SciPy's and scikit-learn's that call
BLAS and take no longer than some minutes."""

import os
from pathlib import Path

run = str(Path(__file__).resolve().parent / "run")
os.execv(run, [run] if os.environ.get("TEST_LONG") == "1" else [run, "--short"])
