#!/usr/bin/python3 -B
"""NumPy of Debian and from PyPI: row-major products through CBLAS, so m, n and k are NumPy's own."""

import platform

from harness import WORK, Product, main
from lib.programs import DEBIAN_PYTHON, VENV_PYTHON


def products(name):
    for letter in "sdcz":
        yield Product(name % letter, 257, 223, 190)
        yield Product(name % letter, 241, 233, 180)
    yield Product(name % "d", 211, 130, 200)


script = [str(WORK / "numpy_products.py"), "@OUT@"]
programs = [
    ("NumPy of Debian", [DEBIAN_PYTHON, *script], list(products("cblas_%sgemm"))),
    # The wheel's OpenBLAS has 64-bit integers and prefixed names.
    ("NumPy wheel", [VENV_PYTHON, *script], list(products("scipy_cblas_%sgemm64_"))),
]
if platform.machine() == "aarch64":
    print("# the wheel is not fetched for this machine: NumPy of Debian alone")
    programs.pop()
main(*programs)
