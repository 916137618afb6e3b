"""Operations of PyTorch on the CPU, in four types: prints each one's residual, scaled as the tests of LAPACK do, products as the number
of elements that are wrong. With an argument, the folder of a cuBLAS and cuSOLVER that take the place of those that PyTorch brings."""

import ctypes
import os
import sys

if len(sys.argv) > 1:
    sys.setdlopenflags(os.RTLD_LAZY)  # the stand-ins lack functions that PyTorch does not call here
    for name in "libcublas.so.13", "libcusolver.so.12":
        ctypes.CDLL(f"{sys.argv[1]}/{name}", mode=os.RTLD_LAZY)

import torch

N = 120
torch.manual_seed(1)


def integers(*shape):
    """Matrices whose products are exact."""
    return torch.randint(-3, 4, shape).to(TYPE)


def wrong(x, y):
    return int((x != y.to(TYPE)).sum())


def exact(x):
    return x.to(torch.complex128 if TYPE.is_complex else torch.float64)


def scaled(x, y, *factors):
    """|x - y| by the norms of the factors, n and eps."""
    size = torch.tensor(1.0)
    for factor in factors:
        size = size * torch.linalg.matrix_norm(factor.detach(), 1)
    return float(torch.linalg.matrix_norm(x - y, 1) / (size * N * torch.finfo(TYPE).eps))


def say(name, value):
    print(f"{str(TYPE)[6:]} {name} {value:.3g}")


def products():
    a, b, c = integers(N, N), integers(N, N), integers(N, N)
    right = (a[:, :, None] * b[None]).sum(1)  # without BLAS
    say("mm wrong", wrong(torch.mm(a, b), right))
    say("addmm wrong", wrong(torch.addmm(c, a, b, beta=2, alpha=3), 2 * c + 3 * right))
    x, y = torch.stack([a, b, c]), torch.stack([b, b, b])
    say("bmm wrong", wrong(torch.bmm(x, y)[0], right))
    say("baddbmm wrong", wrong(torch.baddbmm(x, x, y, beta=2)[0], 2 * a + right))
    if not TYPE.is_complex:
        linear = torch.nn.Linear(N, N, dtype=TYPE)
        with torch.no_grad():
            linear.weight.copy_(b.T)
            linear.bias.copy_(c[0])
        say("Linear wrong", wrong(linear(a).detach(), right + c[0]))
        linear(a).sum().backward()
        say("backward wrong", wrong(linear.weight.grad, a.sum(0).expand(N, N)))


def factorisations():
    a, b = torch.randn(N, N, dtype=TYPE), torch.randn(N, N, dtype=TYPE)
    one = torch.eye(N, dtype=TYPE)
    s = a @ a.mH + N * one
    w, v = torch.linalg.eigh(s)
    say("eigh", scaled(v * w @ v.mH, s, s))
    say("eigh orthogonal", scaled(v.mH @ v, one))
    u, w, v = torch.linalg.svd(a)
    say("svd", scaled(u * w @ v, a, a))
    x = torch.linalg.solve(a, b)
    say("solve", scaled(a @ x, b, a, x))
    x = torch.linalg.inv(a)
    say("inv", scaled(a @ x, one, a, x))
    x = torch.linalg.cholesky(s)
    say("cholesky", scaled(x @ x.mH, s, s))
    say("cholesky_solve", scaled(s @ torch.cholesky_solve(b, x), b, s, torch.cholesky_solve(b, x)))
    q, r = torch.linalg.qr(a)
    say("qr", scaled(q @ r, a, a))
    say("qr orthogonal", scaled(q.mH @ q, one))
    for driver in "gels", "gelsd":
        x = torch.linalg.lstsq(a, b, driver=driver).solution
        say(f"lstsq {driver}", scaled(a @ x, b, a, x))
    w, v = torch.linalg.eig(a)
    say("eig", scaled(a.to(v.dtype) @ v, v * w, a, v))


for TYPE in torch.float64, torch.float32, torch.complex128, torch.complex64:
    products()
    factorisations()
