"""PyTorch on CPU tensors: a system of order 6000, a Cholesky factorisation, products"""

import torch
from inputs import scaled

torch.manual_seed(10)
n = scaled(6000)
a = torch.rand(n, n, dtype=torch.float64)
b = torch.rand(n, 10, dtype=torch.float64)
x = torch.linalg.solve(a + n * torch.eye(n, dtype=torch.float64), b)
product = a @ a.T
factor = torch.linalg.cholesky(product + torch.eye(n, dtype=torch.float64))
print(f"{x.norm():.12g} {product.norm():.12g} {factor.diagonal().log().sum():.10g}")
