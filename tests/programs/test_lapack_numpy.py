#!/usr/bin/python3 -B
"""NumPy of Debian and from PyPI, whose wheel has 64-bit integers and prefixed names: numpy.linalg on the GPU."""

from harness import WORK
from lapack import main
from lib.programs import DEBIAN_PYTHON, VENV_PYTHON

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

script = [str(WORK / "numpy_lapack.py")]
main(
    ("NumPy of Debian", [DEBIAN_PYTHON, *script], EXPECTED),
    ("NumPy wheel", [VENV_PYTHON, *script], EXPECTED),
)
