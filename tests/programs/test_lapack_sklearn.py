#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""scikit-learn of Debian and from PyPI: fits that are linear algebra, in SciPy's LAPACK and NumPy's, on the GPU."""

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON, debian_has
from programs.harness import WORK
from programs.lapack import LapackTests, runs_of


def expected(solve, inverse, pinvh):
    """What SciPy's solve(assume_a="pos"), inv and pinvh call."""
    return {
        "linear_regression": "gelsd",
        "linear_regression_weighted": "gelsd",
        "ridge_cholesky": solve,
        "ridge_svd": "gesdd",
        "ridge_wide": solve,
        "kernel_ridge": solve,
        "bayesian_ridge": "gesdd",
        "pca": "gesdd",
        "kernel_pca": "syevr",
        "factor_analysis": "gesdd " + inverse,
        "covariance": pinvh,
        "gaussian_process": "potrf potrs",
        "gaussian_process_deviation": "trtrs",
        "mixture_full": "potrf trtrs",
        "mixture_tied": "potrf trtrs",
        "lda_svd": "gesdd",
        "lda_lsqr": "gelsd",
        "lda_eigen": "sygvd",
        "qda": "gesdd",
    }


SCRIPT = [str(WORK / "sklearn_lapack.py")]
runs = runs_of({
    "scikit-learn of Debian": ([DEBIAN_PYTHON, *SCRIPT],
                               expected("posv", "getrf getri", "syev" if debian_has("scipy", 1, 15) else "syevr")),
    "scikit-learn wheel": ([VENV_PYTHON, *SCRIPT], expected("potrf potrs", "getrf getri", "syev")),
})


class TestSklearn(LapackTests):
    pass
