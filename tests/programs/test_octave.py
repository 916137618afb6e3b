#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GNU Octave. It hands transposed operands to gemm as they are."""

from programs.harness import WORK, Product, ProductTests, runs_of

products = []
for real, cplx in (("dgemm_", "zgemm_"), ("sgemm_", "cgemm_")):
    products += [
        Product(real, 201, 187, 173),
        Product(real, 203, 189, 171),
        Product(real, 205, 191, 169),
        Product(cplx, 202, 188, 174),
        Product(cplx, 204, 190, 172),
        Product(cplx, 206, 192, 170),
    ]

runs = runs_of(
    {"Octave": (["octave-cli", "--quiet", "--norc", "--no-history",
                 str(WORK / "products.m"), "@OUT@"], products)})


class TestOctave(ProductTests):
    pass
