"""NumPy: least squares of 20000 equations with 2500 unknowns"""

import numpy as np
from inputs import scaled

rng = np.random.default_rng(4)
a = rng.standard_normal((scaled(20000), scaled(2500)))
b = a.sum(axis=1) + rng.standard_normal(len(a))
x, squares, rank, s = np.linalg.lstsq(a, b, rcond=None)
print(f"{np.linalg.norm(x):.12g} {squares[0]:.12g} {s[0]:.12g} {s[-1]:.10g}", rank)
