"""NumPy: eigenvalues and eigenvectors of a symmetric matrix of order 5000"""

import numpy as np
from inputs import scaled

rng = np.random.default_rng(2)
n = scaled(5000)
a = rng.standard_normal((n, n))
a += a.T
values, vectors = np.linalg.eigh(a)
print(f"{values[0]:.12g} {values[-1]:.12g} {np.abs(values).sum():.12g}")
again = (vectors * values) @ vectors.T
print(f"{np.linalg.norm(again):.12g}", np.allclose(a, again, atol=1e-8 * n))
