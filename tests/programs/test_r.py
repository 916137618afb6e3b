#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""GNU R."""

from programs.harness import WORK, Product, ProductTests, runs_of

products = [
    Product("dgemm_", 207, 193, 163),
    Product("dgemm_", 209, 195, 161),
    Product("zgemm_", 208, 194, 164),
]

runs = runs_of({"R": (["Rscript", "--vanilla", str(WORK / "products.R"), "@OUT@"], products)})


class TestR(ProductTests):
    pass
