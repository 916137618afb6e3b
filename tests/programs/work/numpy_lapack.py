"""NumPy: numpy.linalg, and what is built on it."""

import numpy as np
from cases import (
    adjoint, case, check, dot, hermitian, norm, orthonormal, random, rectangular, residual, wide,
)
from numpy import linalg

N = 120
SPREAD = np.linspace(0.5, 2.0, N)  # singular values, or eigenvalues, far from 0
SIGNED = np.linspace(-1.0, 2.0, N)


def solved(a, x, b):
    residual(dot(a, x) - b, a, x, len(a))


def eigenvalues(values, exact):
    residual(np.sort(wide(values)) - exact, len(values), norm(exact))


def least_squares(a, x, b):
    """The gradient is 0."""
    r = dot(a, x) - b
    residual(dot(adjoint(a), r), len(a), a, a, max(norm(x), norm(b)))


# NumPy computes in double precision, whatever it is given.
for t in ("float64", "complex128"):
    a, b = rectangular(t, N, N, SPREAD), random(t, N, 7)

    case(t, "solve")
    solved(a, linalg.solve(a, b), b)
    x = linalg.solve(a, b[:, 0])
    residual(dot(a, x) - b[:, 0], a, norm(x), N)
    case(t, "solve_stack")
    stack = np.stack([rectangular(t, 40, 40, SPREAD[:40]) for _ in range(5)])
    x = linalg.solve(stack, np.ones((5, 40, 2), t))
    for one, xs in zip(stack, x):
        solved(one, xs, np.ones((40, 2)))
    case(t, "inv")
    x = linalg.inv(a)
    residual(dot(a, x) - np.eye(N), a, x, N)
    case(t, "det")
    # A relative change of A by eps changes the determinant by n cond(A) eps of itself.
    small = rectangular(t, 30, 30, SPREAD[:30])
    residual(wide(linalg.det(small)) - np.prod(SPREAD[:30]), 30, 4, np.prod(SPREAD[:30]))
    case(t, "slogdet")
    sign, log = linalg.slogdet(a)
    residual(np.append(wide(sign) - 1, wide(log) - np.log(SPREAD).sum()), N, 4)

    case(t, "cholesky")
    spd = hermitian(t, SPREAD)
    c = linalg.cholesky(spd)
    residual(dot(c, adjoint(c)) - spd, spd, N)
    check(not np.triu(c, 1).any())
    case(t, "cholesky_refused")
    try:
        linalg.cholesky(hermitian(t, SIGNED))
        check(False)
    except linalg.LinAlgError:
        check(True)

    for m, n in ((130, 70), (70, 130)):
        g = random(t, m, n)
        case(t, "qr")
        q, r = linalg.qr(g)
        residual(dot(q, r) - g, g, m)
        orthonormal(q)
        check(not np.tril(r, -1).any())
        case(t, "qr_complete")
        q, r = linalg.qr(g, mode="complete")
        residual(dot(q, r) - g, g, m)
        orthonormal(q)
        case(t, "qr_r")
        r = linalg.qr(g, mode="r")
        residual(dot(adjoint(r), r) - dot(adjoint(g), g), g, adjoint(g), m)

    h = hermitian(t, SIGNED)
    for uplo in "LU":
        case(t, "eigh")
        w, v = linalg.eigh(h, UPLO=uplo)
        residual(dot(h, v) - v * w, h, N)
        orthonormal(v)
        eigenvalues(w, SIGNED)
        case(t, "eigvalsh")
        eigenvalues(linalg.eigvalsh(h, UPLO=uplo), SIGNED)

    g = random(t, N, N)
    case(t, "eig")
    w, v = linalg.eig(g)
    residual(dot(g, v) - wide(v) * w, g, v, N)
    residual(np.append(w.sum() - np.trace(wide(g)), (w**2).sum() - np.trace(dot(g, g))), N, g, g)
    case(t, "eigvals")
    w = linalg.eigvals(g)
    residual(np.append(w.sum() - np.trace(wide(g)), (w**2).sum() - np.trace(dot(g, g))), N, g, g)

    for m, n in ((130, 70), (70, 130)):
        k = min(m, n)
        g = rectangular(t, m, n, SPREAD[:k])
        for full in (False, True):
            case(t, "svd")
            u, s, vh = linalg.svd(g, full_matrices=full)
            residual(dot(u[:, :k] * s, vh[:k]) - g, g, m)
            orthonormal(u)
            orthonormal(adjoint(vh))
            eigenvalues(s, SPREAD[:k])
        case(t, "svd_values")
        eigenvalues(linalg.svd(g, compute_uv=False), SPREAD[:k])
        case(t, "pinv")
        p = linalg.pinv(g)
        residual(dot(g, p, g) - g, g, p, g, m)
        residual(dot(p, g, p) - p, p, g, p, m)
    case(t, "svd_hermitian")
    u, s, vh = linalg.svd(h, hermitian=True)
    residual(dot(u * s, vh) - h, h, N)
    case(t, "pinv_hermitian")
    p = linalg.pinv(h, hermitian=True)
    residual(dot(h, p, h) - h, h, p, h, N)
    case(t, "matrix_rank")
    check(linalg.matrix_rank(rectangular(t, N, 90, [1] * 37 + [0] * 53)) == 37)
    case(t, "norm_2")
    residual(np.array([wide(linalg.norm(a, 2)) - 2, wide(linalg.cond(a)) - 4]), N, 4)

    for m, n in ((130, 70), (70, 130)):
        case(t, "lstsq")
        g, b = rectangular(t, m, n, SPREAD[:70]), random(t, m, 5)
        x, _, rank, s = linalg.lstsq(g, b, rcond=None)
        least_squares(g, x, b)
        eigenvalues(s, SPREAD[:70])
        check(rank == 70)
    case(t, "lstsq_deficient")
    g = rectangular(t, 130, 70, [1] * 40 + [0] * 30)
    x, _, rank, s = linalg.lstsq(g, b := random(t, 130, 5), rcond=1e-3)
    least_squares(g, x, b)
    # Of all solutions the shortest: in the row space, on which g'g is the identity here.
    residual(dot(adjoint(g), g, x) - x, g, g, x, 130)
    check(rank == 40)

t = "float64"
case(t, "matrix_power")
a = rectangular(t, N, N, SPREAD)
p = linalg.matrix_power(a, -2)
residual(dot(a, a, p) - np.eye(N), a, a, p, N)
case(t, "tensorsolve")
a = rectangular(t, 60, 60, SPREAD[:60]).reshape(6, 10, 4, 15)
x = linalg.tensorsolve(a, b := random(t, 6, 10))
residual((np.tensordot(a, x) - b).ravel(), a.reshape(60, 60), norm(x.ravel()), 60)
case(t, "polyfit")
at = np.linspace(-1, 1, 200)
exact = random(t, 9)
residual(np.polyfit(at, np.polyval(exact, at), 8) - exact, 200, 1e3, norm(exact))
case(t, "roots")
unity = np.roots([1] + [0] * 39 + [-1])
residual(unity**40 - 1, 40, 40)
case(t, "leggauss")
nodes, weights = np.polynomial.legendre.leggauss(60)
residual(np.array([weights.sum() - 2, weights @ nodes**2 - 2 / 3, weights @ nodes**100 - 2 / 101]), 60)
for method in ("svd", "eigh", "cholesky"):
    # The samples are z f' of normal numbers z, and f f' is the covariance.
    case(t, "multivariate_normal_" + method)
    covariance = hermitian(t, SPREAD[:50])
    x = np.random.default_rng(1).multivariate_normal(np.zeros(50), covariance, 50, method=method)
    z = np.random.default_rng(1).standard_normal((50, 50))
    f = linalg.solve(z, x).T
    residual(dot(f, f.T) - covariance, covariance, 50, z, linalg.inv(z))
