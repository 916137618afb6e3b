"""scikit-learn's own tests of what trains by libsvm or liblinear."""

import tempfile
from pathlib import Path

from lib.programs import ROOT, VENV_PYTHON, start

SCRIPT = ROOT / "tests/fixtures/own_tests.py"
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}


def own_tests(library, env):
    """(lines "outcome name" of the tests that train, the same of a run of these with `env`, the finished process of that run)"""
    with tempfile.TemporaryDirectory(prefix="accel-own-tests-") as folder:
        plain, ours = Path(folder, "plain"), Path(folder, "ours")
        start(VENV_PYTHON, "-B", SCRIPT, library, plain, env=ALONE, timeout=1200)
        done = start(VENV_PYTHON, "-B", SCRIPT, library, ours, plain, env={**env, **ALONE}, timeout=1800)
        return plain.read_text().splitlines(), ours.read_text().splitlines(), done
