"""NumPy: products of all four types, of views and of slices."""

import numpy as np
from report import product_scale, report

rng = np.random.default_rng(1)


def matrix(rows, cols, dtype):
    real = rng.uniform(-1, 1, (rows, cols))
    return (real + 1j * rng.uniform(-1, 1, (rows, cols)) if dtype.startswith("c") else real).astype(dtype)


for dtype in ("float32", "float64", "complex64", "complex128"):
    a, b = matrix(257, 190, dtype), matrix(190, 223, dtype)
    report(dtype + "_plain", a @ b, product_scale(a, b))
    c, d = matrix(180, 241, dtype), matrix(233, 180, dtype)
    report(dtype + "_transposed", c.T @ d.T, product_scale(c.T, d.T))

# A slice with a leading dimension larger than its rows is passed on as it is; one with a step is
# copied by dot.
wide, steps = matrix(211, 300, "float64"), matrix(400, 260, "float64")
left, right = wide[:, 20:220], steps[::2, ::2]
report("sliced", np.dot(left, right), product_scale(left, right))
