"""What the LAPACK programs in Python share: the marks that lapack.py reads, matrices with a known answer, residuals.

A residual is printed in units of eps of the case's type, times the norms and sizes that it is relative to. Norms
are largest column sums. It is computed in double precision, whatever the type.
"""

import sys

import numpy as np

TYPES = ("float32", "float64", "complex64", "complex128")
rng = np.random.default_rng(6)
current = eps = None


def case(dtype, name):
    """What follows calls LAPACK for this."""
    global current, eps
    current, eps = f"{dtype}_{name}", float(np.finfo(dtype).eps)
    print("case", current, file=sys.stderr, flush=True)


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def dot(*factors):
    value = wide(factors[0])
    for factor in factors[1:]:
        value = value @ wide(factor)
    return value


def adjoint(x):
    return x.conj().T


def norm(x):
    x = np.abs(wide(x))
    return float(x.sum(axis=0).max()) if x.ndim == 2 else float(x.max())


def residual(difference, *scale):
    """scale: numbers, and matrices for their norms."""
    unit = eps * float(np.prod([s if np.isscalar(s) else norm(s) for s in scale]))
    print("residual", current, repr(norm(difference) / unit))


def orthonormal(q):
    residual(dot(adjoint(q), q) - np.eye(q.shape[1]), len(q))


def check(good):
    """What rounding cannot change."""
    print("residual", current, "0.0" if good else "inf")


def random(dtype, *shape):
    real = rng.uniform(-1, 1, shape)
    return (real + 1j * rng.uniform(-1, 1, shape) if dtype[0] == "c" else real).astype(dtype)


def reflected(a, v):
    """(I - 2 v v') a: orthogonal, made without LAPACK."""
    return a - np.outer(2 * v / np.vdot(v, v).real, v.conj() @ a)


def hermitian(dtype, values):
    """A dense Hermitian matrix of these eigenvalues."""
    a = wide(np.diag(np.asarray(values, dtype)))
    for _ in range(3):
        v = wide(random(dtype, len(a)))
        a = adjoint(reflected(adjoint(reflected(a, v)), v))
    return ((a + adjoint(a)) / 2).astype(dtype)


def rectangular(dtype, m, n, values):
    """A dense m x n matrix of these singular values. The determinant of a square one is their product."""
    a = np.zeros((m, n), wide(np.zeros(0, dtype)).dtype)
    np.fill_diagonal(a, values)
    for _ in range(2):
        a = reflected(a, wide(random(dtype, m)))
        a = adjoint(reflected(adjoint(a), wide(random(dtype, n))))
    return a.astype(dtype)
