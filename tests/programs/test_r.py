#!/usr/bin/python3 -B
"""GNU R."""

from harness import WORK, Product, main

products = [
    Product("dgemm_", 207, 193, 163),
    Product("dgemm_", 209, 195, 161),
    Product("zgemm_", 208, 194, 164),
]

main(("R", ["Rscript", "--vanilla", str(WORK / "products.R"), "@OUT@"], products))
