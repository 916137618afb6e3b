"""SciPy: scipy.linalg, and LAPACK through its wrappers where no function of its own calls a routine."""

import inspect

import numpy as np
from cases import (
    TYPES, adjoint, case, check, dot, hermitian, norm, orthonormal, random, rectangular, residual, wide,
)
from scipy import linalg
from scipy.linalg import lapack

N = 110
SPREAD = np.linspace(0.5, 2.0, N)  # singular values, or eigenvalues, far from 0
SIGNED = np.linspace(-1.0, 2.0, N)
FEW = 24  # for what stays on the CPU, and calls BLAS on the GPU column by column
NEW = "assume_a" in inspect.signature(linalg.inv).parameters  # SciPy 1.17


def solved(a, x, b):
    residual(dot(a, x) - b, a, x, len(a))


def inverse(a, x):
    residual(dot(a, x) - np.eye(len(a)), a, x, len(a))


def near(values, exact):
    residual(np.sort(wide(values)) - exact, N, norm(exact))


def eigenpairs(a, w, v, b=None):
    """a v = b v w, v orthonormal in the inner product of b."""
    bv = wide(v) if b is None else dot(b, v)
    residual(dot(a, v) - bv * w, a, v, max(1, 0 if b is None else norm(b)), N)
    residual(dot(adjoint(v), bv) - np.eye(len(w)), N, v, adjoint(v), 1 if b is None else norm(b))


def triangle(x, lower):
    return np.tril(x) if lower else np.triu(x)


for t in TYPES:
    cplx = t[0] == "c"
    letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[t]
    routine = lambda name: getattr(lapack, letter + name)
    a, b = rectangular(t, N, N, SPREAD), random(t, N, 6)
    spd, h = hermitian(t, SPREAD), hermitian(t, SIGNED)
    symmetric = a + a.T
    few = rectangular(t, FEW, FEW, SPREAD[:FEW])
    few_spd, few_h = hermitian(t, SPREAD[:FEW]), hermitian(t, SIGNED[:FEW])

    # Linear systems.
    case(t, "lu_factor")
    lu, pivots = linalg.lu_factor(a)
    rows = np.arange(N)
    for i, p in enumerate(pivots):
        rows[[i, p]] = rows[[p, i]]
    residual(dot(np.tril(lu, -1) + np.eye(N), np.triu(lu)) - a[rows], a, N)
    case(t, "lu_solve")
    for trans, op in ((0, a), (1, a.T), (2, adjoint(a))):
        solved(op, linalg.lu_solve((lu, pivots), b, trans=trans), b)
    case(t, "lu")
    for m, n in ((120, 80), (80, 120)):
        g = random(t, m, n)
        p, l, u = linalg.lu(g)
        residual(dot(p, l, u) - g, g, l, m)
        check(abs(l).max() <= 1.5)
    case(t, "solve")
    solved(a, linalg.solve(a, b), b)
    if not cplx:
        case(t, "solve_transposed")
        solved(a.T, linalg.solve(a, b, transposed=True), b)
    structures = [("pos", spd), ("sym", symmetric)] + [("her", few_h)] * cplx
    for assume, x in structures:
        for lower in (False, True):
            case(t, "solve_" + assume)
            c = b[: len(x)]
            solved(x, linalg.solve(triangle(x, lower), c, assume_a=assume, lower=lower), c)
    case(t, "inv")
    inverse(a, linalg.inv(a))
    if NEW:
        for assume, x in structures:
            case(t, "inv_" + assume)
            inverse(x, linalg.inv(x, assume_a=assume))
    case(t, "det")
    small = rectangular(t, 30, 30, SPREAD[:30])
    residual(wide(linalg.det(small)) - np.prod(SPREAD[:30]), 30, 4, np.prod(SPREAD[:30]))
    case(t, "cholesky")
    for lower in (False, True):
        c = linalg.cholesky(spd, lower=lower)
        residual((dot(c, adjoint(c)) if lower else dot(adjoint(c), c)) - spd, spd, N)
    for lower in (False, True):
        case(t, "cho_factor")
        factor = linalg.cho_factor(spd, lower=lower)
        case(t, "cho_solve")
        solved(spd, linalg.cho_solve(factor, b), b)
    case(t, "solve_triangular")
    for lower in (False, True):
        tri = triangle(a, lower) + 4 * np.eye(N, dtype=t)
        for trans, op in ((0, tri), (1, tri.T), (2, adjoint(tri))):
            solved(op, linalg.solve_triangular(tri, b, trans=trans, lower=lower), b)
        ones = tri.copy()
        np.fill_diagonal(ones, 1)
        ones = np.where(np.eye(N), ones, ones / N).astype(t)
        solved(ones, linalg.solve_triangular(ones, b, lower=lower, unit_diagonal=True), b)
    for hermitian_too in (True, False) if cplx else (False,):
        case(t, "ldl_hermitian" if hermitian_too else "ldl")
        for lower in (False, True):
            x = few_h if hermitian_too else symmetric
            l, d, _ = linalg.ldl(x, lower=lower, hermitian=hermitian_too)
            residual(dot(l, d, adjoint(l) if hermitian_too else l.T) - x, x, l, l.T, N)

    # QR.
    for m, n in ((130, 70), (70, 130)):
        g = random(t, m, n)
        for mode in ("full", "economic"):
            case(t, "qr")
            q, r = linalg.qr(g, mode=mode)
            residual(dot(q, r) - g, g, m)
            orthonormal(q)
            check(not np.tril(r, -1).any())
        case(t, "qr_r")
        r = linalg.qr(g, mode="r")[0]
        residual(dot(adjoint(r), r) - dot(adjoint(g), g), g, adjoint(g), m)
        case(t, "qr_multiply")
        c = random(t, 20, m)
        cq, r = linalg.qr_multiply(g, c, mode="right")
        residual(dot(cq, r) - dot(c, g), c, g, m)
    for m, n in ((FEW, 16), (16, FEW)):
        g = random(t, m, n)
        case(t, "qr_pivoting")
        q, r, order = linalg.qr(g, pivoting=True)
        residual(dot(q, r) - g[:, order], g, m)
        orthonormal(q)
        case(t, "rq")
        r, q = linalg.rq(g, mode="economic")
        residual(dot(r, q) - g, g, m)
        orthonormal(adjoint(q))

    # Eigenvalues.
    for driver in ("ev", "evd", "evr", "evx"):
        for lower in (False, True):
            case(t, "eigh_" + driver)
            w, v = linalg.eigh(triangle(h, lower), lower=lower, driver=driver)
            eigenpairs(h, w, v)
            near(w, SIGNED)
            case(t, "eigvalsh_" + driver)
            near(linalg.eigh(triangle(h, lower), lower=lower, driver=driver, eigvals_only=True), SIGNED)
    case(t, "eigh")
    eigenpairs(h, *linalg.eigh(h))
    for driver in ("evr", "evx"):
        case(t, "eigh_index_" + driver)
        w, v = linalg.eigh(h, subset_by_index=[7, 40], driver=driver)
        eigenpairs(h, w, v)
        near(w, SIGNED[7:41])
        case(t, "eigvalsh_index_" + driver)
        w = linalg.eigh(h, subset_by_index=[N - 9, N - 1], driver=driver, eigvals_only=True)
        near(w, SIGNED[-9:])
        case(t, "eigh_value_" + driver)
        w, v = linalg.eigh(h, subset_by_value=[-0.01 - SIGNED[50], 0.01 + SIGNED[50]], driver=driver)
        wanted = SIGNED[(SIGNED > -0.01 - SIGNED[50]) & (SIGNED <= 0.01 + SIGNED[50])]
        eigenpairs(h, w, v)
        near(w, wanted)
    for driver in ("gv", "gvd", "gvx"):
        for lower in (False, True):
            case(t, "eigh_" + driver)
            w, v = linalg.eigh(triangle(h, lower), triangle(spd, lower), lower=lower, driver=driver)
            eigenpairs(h, w, v, spd)
        case(t, "eigvalsh_" + driver)
        near(linalg.eigh(h, spd, driver=driver, eigvals_only=True), np.asarray(w, float))
    case(t, "eigh_index_gvx")
    w, v = linalg.eigh(h, spd, subset_by_index=[3, 30])
    eigenpairs(h, w, v, spd)
    case(t, "eigh_types")
    for kind in (2, 3):
        w, v = linalg.eigh(h, spd, type=kind, driver="gvd")
        left, right = (dot(h, spd, v), v) if kind == 2 else (dot(spd, h, v), v)
        residual(left - wide(right) * w, h, spd, v, N)
    g = random(t, N, N)
    trace = np.array([np.trace(wide(g)), np.trace(dot(g, g))])
    case(t, "eig")
    w, v = linalg.eig(g)
    residual(dot(g, v) - wide(v) * w, g, v, N)
    residual(np.array([w.sum(), (wide(w) ** 2).sum()]) - trace, N, g, g)
    case(t, "eigvals")
    w = linalg.eigvals(g)
    residual(np.array([w.sum(), (wide(w) ** 2).sum()]) - trace, N, g, g)
    case(t, "eig_left")
    w, left, v = linalg.eig(few, left=True)
    residual(dot(few, v) - wide(v) * w, few, v, FEW)
    residual(dot(adjoint(few), left) - wide(left) * w.conj(), adjoint(few), left, FEW)

    # Singular values.
    for m, n in ((130, 70), (70, 130)):
        k = min(m, n)
        g = rectangular(t, m, n, SPREAD[:k])
        for driver in ("gesdd", "gesvd"):
            for full in (False, True):
                case(t, "svd_" + driver)
                u, s, vh = linalg.svd(g, full_matrices=full, lapack_driver=driver)
                residual(dot(u[:, :k] * s, vh[:k]) - g, g, m)
                orthonormal(u)
                orthonormal(adjoint(vh))
                near(s, SPREAD[:k])
            case(t, "svdvals_" + driver)
            near(linalg.svd(g, compute_uv=False, lapack_driver=driver), SPREAD[:k])
        case(t, "pinv")
        p = linalg.pinv(g)
        residual(dot(g, p, g) - g, g, p, g, m)
        case(t, "null_space")
        space = linalg.null_space(rectangular(t, m, n, [1] * 50 + [0] * 20), rcond=1e-3)
        orthonormal(space)
        check(space.shape == (n, n - 50))
        for driver in ("gelsd", "gelss"):
            case(t, "lstsq_" + driver)
            x, _, rank, s = linalg.lstsq(g, c := random(t, m, 4), lapack_driver=driver)
            residual(dot(adjoint(g), dot(g, x) - c), m, g, g, max(norm(x), norm(c)))
            check(rank == 70)
            near(s, SPREAD[:70])
        case(t, "lstsq_gelsy")
        g = rectangular(t, m - 50, n - 50, SPREAD[:20])
        x, _, rank, _ = linalg.lstsq(g, c := random(t, m - 50, 4), lapack_driver="gelsy")
        residual(dot(adjoint(g), dot(g, x) - c), m, g, g, max(norm(x), norm(c)))
        check(rank == 20)
    case(t, "pinvh")
    p = linalg.pinvh(h)
    residual(dot(h, p, h) - h, h, p, h, N)
    case(t, "polar")
    u, p = linalg.polar(a)
    residual(dot(u, p) - a, a, N)
    orthonormal(u)

    # Functions of a matrix, and equations.
    case(t, "expm")
    e, f = linalg.expm(h), linalg.expm(-h)
    residual(dot(e, f) - np.eye(N), e, f, N)
    case(t, "sqrtm")
    root = linalg.sqrtm(few_spd)
    residual(dot(root, root) - few_spd, root, root, FEW)
    case(t, "schur")
    s, q = linalg.schur(few)
    residual(dot(q, s, adjoint(q)) - few, few, FEW)
    orthonormal(q)
    case(t, "hessenberg")
    s, q = linalg.hessenberg(few, calc_q=True)
    residual(dot(q, s, adjoint(q)) - few, few, FEW)
    orthonormal(q)
    case(t, "solve_sylvester")
    x = linalg.solve_sylvester(few_spd, few_spd, few)
    residual(dot(few_spd, x) + dot(x, few_spd) - few, few_spd, x, 2 * FEW)

    # Routines that SciPy itself does not call, or not in every version.
    org = "un" if cplx else "or"
    case(t, "gesv")
    lu, pivots, x, info = routine("gesv")(a, b)
    solved(a, x, b)
    case(t, "getri")
    inverse(a, routine("getri")(*routine("getrf")(a)[:2])[0])
    case(t, "posv")
    for lower in (0, 1):
        solved(spd, routine("posv")(spd, b, lower=lower)[1], b)
    case(t, "potri")
    for lower in (0, 1):
        x = triangle(routine("potri")(routine("potrf")(spd, lower=lower)[0], lower=lower)[0], lower)
        inverse(spd, x + adjoint(x) - np.diag(np.diag(x)))
    case(t, "lauum")
    for lower in (0, 1):
        # lauum writes L'L over L.
        x = triangle(spd, lower)
        y = triangle(routine("lauum")(x.copy(), lower=lower)[0], lower)
        residual(y - triangle(dot(adjoint(x), x) if lower else dot(x, adjoint(x)), lower), x, adjoint(x), N)
    case(t, "trtri")
    for lower in (0, 1):
        tri = triangle(a, lower) + 4 * np.eye(N, dtype=t)
        inverse(tri, routine("trtri")(tri, lower=lower)[0])
    case(t, "trtrs")
    solved(np.triu(spd), routine("trtrs")(spd, b)[0], b)
    case(t, "sysv")
    for lower in (0, 1):
        solved(symmetric, routine("sysv")(symmetric, b, lower=lower)[2], b)
    if hasattr(lapack, letter + "sytrs"):
        case(t, "sytrs")
        ldu, pivots, _ = routine("sytrf")(symmetric)
        solved(symmetric, routine("sytrs")(ldu, pivots, b)[0], b)
    case(t, "gels")
    for trans in ("N", "C" if cplx else "T"):
        for m, n in ((130, 70), (70, 130)):
            g, c = rectangular(t, m, n, SPREAD[:70]), random(t, 130, 4)
            op = g if trans == "N" else adjoint(g)
            x = routine("gels")(g, c, trans=trans)[1][: op.shape[1]]
            residual(dot(adjoint(op), dot(op, x) - c[: len(op)]), m, op, op, max(norm(x), norm(c)))
    case(t, "ormqr")
    g, c = random(t, 130, 70), random(t, 130, 20)
    qr, tau, _, _ = routine("geqrf")(g)
    for trans in ("N", "C" if cplx else "T"):
        x, _, _ = routine(org + "mqr")("L", trans, qr, tau, c, 130 * 64)
        q, _, _ = routine(org + "gqr")(qr, tau)
        # Q is known by its first columns: Q'Q c = c in that space.
        part = dot(adjoint(q), x) if trans == "N" else wide(x)[:70]
        residual(part - (wide(c)[:70] if trans == "N" else dot(adjoint(q), c)), c, 130)
