"""SciPy: BLAS through f2py, and the matrix exponential, which reaches BLAS through function pointers."""

import math

import numpy as np
from report import product_scale, report, size
from scipy import linalg
from scipy.linalg import blas

rng = np.random.default_rng(2)


def matrix(rows, cols, dtype="float64"):
    real = rng.uniform(-1, 1, (rows, cols))
    return np.asfortranarray(real + 1j * rng.uniform(-1, 1, (rows, cols)) if dtype[0] == "c" else real, dtype)


a, b, c = matrix(210, 170), matrix(170, 230), matrix(210, 230)
report("dgemm", blas.dgemm(1.5, a, b, -0.5, c), 1.5 * product_scale(a, b) + 0.5 * size(c))
a, b = matrix(165, 205), matrix(225, 165)
report("dgemm_transposed", blas.dgemm(1.0, a, b, trans_a=1, trans_b=1), product_scale(a.T, b))
a, b = matrix(160, 200, "complex128"), matrix(160, 220, "complex128")
report("zgemm_conjugated", blas.zgemm(2 - 1j, a, b, trans_a=2), math.sqrt(5) * product_scale(a.T, b))
a, b = matrix(155, 195, "float32"), matrix(195, 215, "float32")
report("sgemm", blas.sgemm(1.0, a, b), product_scale(a, b))

# A product adds n * eps * |factors| at most, and squaring lets an error grow with the norm of the
# result, which is at most exp(|A|_1). Fewer than 12 products are made for norms of this size.
for name, x in (("expm", matrix(150, 150) / 40), ("expm_complex", matrix(140, 140, "complex128") / 50)):
    norm = np.abs(x).sum(axis=0).max()
    report(name, linalg.expm(x), 12 * len(x) * math.exp(norm))
