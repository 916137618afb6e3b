#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""NumPy of Debian and from PyPI: row-major products through CBLAS, so m, n and k are NumPy's own."""

import platform

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON
from programs.harness import WORK, Product, ProductTests, runs_of


def products(name):
    for letter in "sdcz":
        yield Product(name % letter, 257, 223, 190)
        yield Product(name % letter, 241, 233, 180)
    yield Product(name % "d", 211, 130, 200)


SCRIPT = [str(WORK / "numpy_products.py"), "@OUT@"]
PROGRAMS = {"NumPy of Debian": ([DEBIAN_PYTHON, *SCRIPT], list(products("cblas_%sgemm")))}
if platform.machine() != "aarch64":  # for which the wheel is not fetched
    # The wheel's OpenBLAS has 64-bit integers and prefixed names.
    PROGRAMS["NumPy wheel"] = [VENV_PYTHON, *SCRIPT], list(products("scipy_cblas_%sgemm64_"))
runs = runs_of(PROGRAMS)


class TestNumpy(ProductTests):
    pass
