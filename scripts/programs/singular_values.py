"""NumPy: singular values and vectors of a matrix of 4000 by 3000"""

import numpy as np
from inputs import scaled

rng = np.random.default_rng(3)
a = rng.standard_normal((scaled(4000), scaled(3000)))
u, s, vt = np.linalg.svd(a, full_matrices=False)
print(f"{s[0]:.12g} {s[-1]:.10g} {s.sum():.12g}")
print(np.allclose(a, (u * s) @ vt, atol=1e-9 * len(a)))
