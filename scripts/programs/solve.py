"""NumPy: two dense systems of order 12000"""

import numpy as np
from inputs import scaled

rng = np.random.default_rng(1)
n = scaled(12000)
a = rng.random((n, n))
b = rng.random((n, 10))
for shift in (1, 2):
    a.flat[::n + 1] += shift * n / 4
    x = np.linalg.solve(a, b)
    print(f"{np.linalg.norm(x):.12g} {np.abs(x).max():.12g}")
