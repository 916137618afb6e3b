#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Some examples of each of the gallery's collections, as `make gallery` runs all: without libaccel, with it and no GPU, and on the test GPU. Kernels with
one wrong element each are noticed by what an example of each language prints or draws."""

from math import isfinite
from pathlib import Path
from struct import iter_unpack

import pytest

from gallery.examples import PYTHON, examples, of_demos, write_demos
from gallery.judge import judge
from gallery.runs import run
from lib.programs import RUNTIME

pytestmark = pytest.mark.skipif(bool(RUNTIME) or not Path(PYTHON).exists(), reason="no examples, which `make gallery-sample` fetches, or a sanitizer's runtime")
LIMIT = 60
SAMPLE = (
    "scikit-learn/linear_model/plot_ols_ridge.py",
    "scikit-learn/decomposition/plot_pca_iris.py",
    "scikit-learn/covariance/plot_lw_vs_oas.py",
    "statsmodels/python/ols.py",
    "statsmodels/python/chi2_fitting.py",
    "scipy/examples/plot_boundary_modes.py",
    "scipy/stats/hypothesis_levene.md",
    "R/MASS/lda",
    "R/boot/Imp.Estimates",
    "R/cluster/fanny",
    "Octave/7.3.0/polynomial/spline",
    "Octave/packages/statistics-1.5.3/pcacov",
)
SPOILT = ("statsmodels/python/ols.py", "R/MASS/lda", "Octave/packages/statistics-1.5.3/pcacov")


def one(name):
    found = examples(name)
    assert found, f"there is no example {name}"
    return found[0]


@pytest.fixture(scope="module", params=SAMPLE)
def judged(request):
    return judge(one(request.param), LIMIT)[0]


def test_prints_and_draws_the_same(judged):
    assert judged["verdict"] in ("same", "rounding", "sensitive"), judged
    assert judged["numbers"] > 0


def test_calls_ran_on_the_gpu(judged):
    assert judged["gpu"] > 0, judged


@pytest.mark.parametrize("name", SPOILT)
def test_wrong_results_are_noticed(name):
    """The runs of other kernels, which would show that the example is not sensitive, are played."""
    seen = {}

    def run_once(example, mode, limit, extra={}):
        mode = mode if mode in ("no GPU", "test GPU") else "plain"
        if mode not in seen:
            seen[mode] = run(example, mode, limit, extra)
        return seen[mode]

    assert judge(one(name), LIMIT, run_once, {"TESTGPU_WRONG": "1+"})[0]["verdict"] == "DIFFERS on the GPU"


def test_demos_wait_for_nobody_and_draw_no_hidden_number(tmp_path):
    """A line's own limits have the least positive number that it draws, which is Inf without one."""
    write_demos(tmp_path / "f", ["plot ([0, 0, 0]); pause ();\ndisp (7)\n"])
    shown = run(of_demos("f", tmp_path / "f"), "plain", LIMIT)
    assert (shown.end, shown.texts["stdout"]) == ("ok", ["-- demo 01", "7"])
    numbers = [number for data in shown.arrays.values() for number, in iter_unpack("<d", data[128:])]
    assert len(numbers) >= 10 and all(map(isfinite, numbers))
