#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GNU R: its linear algebra on the GPU."""

from programs.harness import WORK
from programs.lapack import LapackTests, runs_of

EXPECTED = {
    "solve": "gesv",
    "inverse": "gesv",
    "qr": "",  # ?geqp3, which cuSOLVER lacks
    "qr_vectors": "ormqr",
    "qr_products": "ormqr",
    "qr_coefficients": "ormqr trtrs",
    "svd": "gesdd",
    "svd_values": "gesdd",
    "eigen_symmetric": "syevr",
    "eigen_symmetric_values": "syevr",
    "eigen_symmetric_complex": "syev",
    "eigen_symmetric_values_complex": "syev",
    "eigen": "geev",
    "eigen_values": "geev",
    "det": "getrf",
    "chol": "potrf",
    "chol_refused": "-potrf",  # not positive definite: how far it came, LAPACK itself says
    "chol2inv": "potrf potri",
    "chol_pivoting": "",  # dpstrf
    "backsolve": "potrf",
    "norm_2": "gesdd",
    "kappa": "gesdd getrf gecon",
    "qr_linpack": "",  # R's qr and lm use its own LINPACK, dqrdc2, unless told otherwise
    "lm": "",
    "prcomp": "gesdd",
    "cmdscale": "syevr",
    "library": "",
    "packed_solve": "pptrf pptrs",
    "packed_inverse": "pptrf pptri",
    "packed_condition": "pptrf",  # ?ppcon
}

runs = runs_of({"R": (["Rscript", "--vanilla", str(WORK / "lapack.R")], EXPECTED)})


class TestR(LapackTests):
    pass
