#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GNU Octave: its linear algebra on the GPU."""

from programs.harness import WORK
from programs.lapack import LapackTests, runs_of

# Solvers look at the condition number first; ?trcon is not intercepted.
EXPECTED = {
    "solve": "getrf gecon getrs",
    "divide": "getrf gecon getrs",
    "solve_spd": "potrf pocon potrs",
    "solve_triangular": "trtrs",
    "inv_triangular": "trtri",
    "inv": "getrf getri gecon",
    "inv_spd": "potrf pocon potri",
    "det": "getrf gecon",
    "lu": "getrf",
    "chol": "potrf",
    "chol_refused": "-potrf",  # not positive definite: how far it came, LAPACK itself says
    "cholinv": "potrf potri",
    "chol2inv": "potrf potri",
    "qr": "geqrf orgqr",
    "qr_economy": "geqrf orgqr",
    "qr_r": "geqrf",
    "qr_pivoting": "orgqr",  # after ?geqp3, which cuSOLVER lacks
    "solve_rectangular": "gelsd",
    "svd_gesvd": "gesvd",
    "svd_values_gesvd": "gesvd",
    "svd_gesdd": "gesdd",
    "svd_values_gesdd": "gesdd",
    "pinv": "gesvd",
    "lscov": "gesvd",
    "ols": "potrf trtrs",
    "norm_2": "gesvd",
    "rank_null_orth": "gesvd",
    "eig_symmetric": "syev",
    "eig_symmetric_values": "syev",
    "eig_generalized": "potrf sygv",
    "eig_generalized_values": "potrf sygv",
    "eig": "",  # ?geevx, which balances
    "eig_values": "",
    "eig_left": "",
    "eig_generalized_full": "potrf pocon potrs",  # and ?ggev
    "schur": "",  # ?geesx
    "hess": "",  # ?gehrd
    "sqrtm": "",  # ?geesx
    "expm": "getrf gecon getrs",
    "sylvester": "",  # ?geesx, ?trsyl
    "polyfit": "orgqr trtrs",  # after ?geqp3
    "roots": "",  # ?geevx
}

runs = runs_of({"Octave": (["octave-cli", "--quiet", "--norc", "--no-history", str(WORK / "lapack.m")], EXPECTED)})


class TestOctave(LapackTests):
    pass
