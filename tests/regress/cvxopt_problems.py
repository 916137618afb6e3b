"""Convex problems with one solution each, by CVXOPT's own solvers: a quadratic, a linear and a semidefinite one. Prints the solutions."""

from cvxopt import lapack, matrix, normal, setseed, solvers, spdiag

# As close as the digits that are printed.
solvers.options.update(show_progress=False, abstol=1e-9, reltol=1e-9, feastol=1e-9)
setseed(4)


def show(name, x):
    for i, value in enumerate(x):
        print(f"{name} {i} {value + 0.0:.4f}")


n, m = 60, 90
factor = normal(n, n)
q = normal(n, 1)
g = normal(m, n)
h = matrix(1.0, (m, 1))
p = factor.T * factor + spdiag(matrix(1.0, (n, 1)))
show("quadratic", solvers.qp(p, q, g, h)["x"])

box = matrix([[spdiag(matrix(1.0, (n, 1)))], [spdiag(matrix(-1.0, (n, 1)))]][0])
bounds = matrix(1.0, (n, 1))
show("linear", solvers.coneqp(1e-3 * p, q, matrix([box, -box]), matrix([bounds, bounds]))["x"])

# The least shift that makes a symmetric matrix definite is its least eigenvalue.
a = normal(30, 30)
a = a + a.T
shift = solvers.sdp(matrix(1.0), Gs=[matrix(-matrix(spdiag(matrix(1.0, (30, 1)))), (900, 1))], hs=[a])["x"]
values = matrix(0.0, (30, 1))
lapack.syev(+a, values)
show("semidefinite", [shift[0]])
show("eigenvalue", values)
