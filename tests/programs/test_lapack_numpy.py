#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""NumPy of Debian and from PyPI, whose wheel has 64-bit integers and prefixed names: numpy.linalg on the GPU."""

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON
from programs.harness import WORK
from programs.lapack import LapackTests, runs_of

EXPECTED = {
    "solve": "gesv",
    "solve_stack": "gesv",
    "inv": "gesv",
    "det": "getrf",
    "slogdet": "getrf",
    "cholesky": "potrf",
    "cholesky_refused": "-potrf",  # not positive definite: how far it came, LAPACK itself says
    "qr": "geqrf orgqr",
    "qr_complete": "geqrf orgqr",
    "qr_r": "geqrf",
    "eigh": "syevd",
    "eigvalsh": "syevd",
    "eig": "geev",
    "eigvals": "geev",
    "svd": "gesdd",
    "svd_values": "gesdd",
    "pinv": "gesdd",
    "svd_hermitian": "syevd",
    "pinv_hermitian": "syevd",
    "matrix_rank": "gesdd",
    "norm_2": "gesdd",
    "lstsq": "gelsd",
    "lstsq_deficient": "gelsd",
    "matrix_power": "gesv",
    "tensorsolve": "gesv",
    "polyfit": "gelsd",
    "roots": "geev",
    "leggauss": "syevd",
    "multivariate_normal_svd": "gesdd",
    "multivariate_normal_eigh": "syevd",
    "multivariate_normal_cholesky": "potrf",
}

SCRIPT = [str(WORK / "numpy_lapack.py")]
runs = runs_of({
    "NumPy of Debian": ([DEBIAN_PYTHON, *SCRIPT], EXPECTED),
    "NumPy wheel": ([VENV_PYTHON, *SCRIPT], EXPECTED),
})


class TestNumpy(LapackTests):
    pass
