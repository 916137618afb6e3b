#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""SciPy of Debian and from PyPI: scipy.linalg and scipy.linalg.lapack on the GPU."""

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON, debian_has
from programs.harness import WORK
from programs.lapack import LapackTests, runs_of

EXPECTED = {
    "lu_factor": "getrf",
    "lu_solve": "getrs",
    "lu": "getrf",
    "solve": "getrf getrs",
    "solve_transposed": "getrf getrs",
    "inv": "getrf getri",
    "det": "getrf",
    "cholesky": "potrf",
    "cho_factor": "potrf",
    "cho_solve": "potrs",
    "solve_triangular": "trtrs",
    "ldl": "sytrf",
    "ldl_hermitian": "hetrf",
    "qr": "geqrf orgqr",
    "qr_r": "geqrf",
    "qr_pivoting": "orgqr",  # after ?geqp3, which cuSOLVER lacks
    "qr_multiply": "geqrf ormqr",
    "rq": "",  # ?gerqf and ?orgrq
    "eigh": "syevr",
    "eigh_types": "sygvd",
    "eig": "geev",
    "eig_left": "-geev",  # cuSOLVER has no left eigenvectors
    "eigvals": "geev",
    "svd_gesdd": "gesdd",
    "svdvals_gesdd": "gesdd",
    "svd_gesvd": "gesvd",
    "svdvals_gesvd": "gesvd",
    "pinv": "gesdd",
    "null_space": "gesdd",
    "lstsq_gelsd": "gelsd",
    "lstsq_gelss": "gelss",
    "lstsq_gelsy": "-gelsy",  # it pivots columns, which cuSOLVER does not
    "polar": "gesdd",
    "expm": "getrf getrs",
    "sqrtm": "",  # the Schur form: ?gees
    "schur": "",
    "hessenberg": "",  # ?gehrd
    "solve_sylvester": "",  # ?gees, ?trsyl
    "gesv": "gesv",
    "getri": "getrf getri",
    "posv": "posv",
    "potri": "potrf potri",
    "lauum": "lauum",
    "trtri": "trtri",
    "trtrs": "trtrs",
    "sysv": "sysv",
    "gels": "gels",
    "ormqr": "geqrf orgqr ormqr",
    **{f"{what}_{driver}": "sy" + driver for what in ("eigh", "eigvalsh") for driver in ("ev", "evd", "evr", "evx")},
    **{f"{what}_{driver}": "sy" + driver for what in ("eigh", "eigvalsh") for driver in ("gv", "gvd", "gvx")},
    **{f"{what}_{driver}": "sy" + driver for what in ("eigh_index", "eigvalsh_index", "eigh_value")
       for driver in ("evr", "evx")},
    "eigh_index_gvx": "sygvx",
}
# SciPy 1.10 and 1.15 solve with the drivers. 1.15, which Debian 13 has, takes another one for
# pinvh, and has sytrs.
DEBIAN = {**EXPECTED, "solve_pos": "posv", "solve_sym": "sysv", "solve_her": "hesv", "pinvh": "syevr"}
if debian_has("scipy", 1, 15):
    DEBIAN.update(pinvh="syev", sytrs="sytrf sytrs")
# SciPy 1.17 factors, and tries a structure before it looks for another.
WHEEL = {
    **EXPECTED,
    "solve_pos": "potrf potrs",
    "solve_sym": "sytrf sytrs",
    "solve_her": "hetrf hetrs",
    "inv_pos": "potrf potri",
    "inv_sym": "sytrf sytri",
    "inv_her": "hetrf hetri",
    "pinvh": "syev",
    "sytrs": "sytrf sytrs",
}

SCRIPT = [str(WORK / "scipy_lapack.py")]
runs = runs_of({
    "SciPy of Debian": ([DEBIAN_PYTHON, *SCRIPT], DEBIAN),
    "SciPy wheel": ([VENV_PYTHON, *SCRIPT], WHEEL),
})


class TestScipy(LapackTests):
    pass
