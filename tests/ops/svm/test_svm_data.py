#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""libsvm on real data, which R's packages mlbench (letter, Shuttle) and kernlab (spam) have: C from 0.1 to 1e5, gamma
from 1e-4 to 10, all types and kernels, on the test GPU as libsvm solves them. Samples; with TEST_LONG=1 larger ones and
more parameters."""

import pytest

from lib.programs import DEBIAN_PYTHON, LONG, ROOT, start
from ops.svm.judge import check_problems

GRID = ["-c 0.1 -g 1e-4", "-c 10 -g 0.01", "-c 1e3 -g 1", "-c 1e5 -g 1e-4", "-c 1e5 -g 10"]
KINDS = ["-s 1 -n 0.02 -g 0.1", "-s 2 -n 0.1", "-s 3 -c 1", "-s 4 -c 1", "-t 0 -c 1", "-t 1 -c 10 -g 0.1",
         "-t 3 -c 10 -g 0.01"]
# Options that libsvm needs too many iterations for, and those that its check_parameter() refuses:
# nu beyond what rare classes allow.
LEFT_OUT = {"shuttle": ["-s 1 -n 0.02 -g 0.1"], "spam-raw": ["-c 1e5 -g 1e-4", "-t 0 -c 1", "-t 1 -c 10 -g 0.1"]}
SHORT = {"letter": (GRID[1], GRID[4]), "shuttle": (GRID[3], KINDS[4]), "spam": (GRID[0], KINDS[2], KINDS[5]),
         "spam-raw": (GRID[4], KINDS[0])}
ROWS = {"letter": 160, "shuttle": 300, "spam": 120, "spam-raw": 120}


@pytest.mark.parametrize("name", SHORT)
def test_as_libsvm_solves_them(name, tmp_path):
    file, rows = tmp_path / name, ROWS[name] * (3 if LONG else 1)
    made = start("/usr/bin/Rscript", ROOT / "tests/fixtures/svm/export.R", name, rows, file)
    assert made.returncode == 0, made.stderr
    assert len(file.read_text().splitlines()) == rows
    options = [o for o in GRID + KINDS if o not in LEFT_OUT.get(name, [])] if LONG else SHORT[name]
    check_problems(len(options), DEBIAN_PYTHON, 1, f"{tmp_path}/", 0, range(len(options)), "file", file, *options)
