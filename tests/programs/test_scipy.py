#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""SciPy of Debian and from PyPI."""

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON
from programs.harness import WORK, Product, ProductTests, runs_of


def products(prefix):
    return [
        Product(prefix + "dgemm_", 210, 230, 170),
        Product(prefix + "dgemm_", 205, 225, 165),
        Product(prefix + "zgemm_", 200, 220, 160),
        Product(prefix + "sgemm_", 155, 215, 195),
        # The number of products depends on the version's choice of the approximant.
        Product(prefix + "dgemm_", 150, 150, 150, times=None),
        Product(prefix + "zgemm_", 140, 140, 140, times=None),
    ]


SCRIPT = [str(WORK / "scipy_products.py"), "@OUT@"]
runs = runs_of({
    "SciPy of Debian": ([DEBIAN_PYTHON, *SCRIPT], products("")),
    "SciPy wheel": ([VENV_PYTHON, *SCRIPT], products("scipy_")),
})


class TestScipy(ProductTests):
    pass
