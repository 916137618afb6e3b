#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""scikit-learn of Debian and from PyPI. Its own extension modules call SciPy's function pointers."""

from lib.programs import DEBIAN_PYTHON, VENV_PYTHON
from programs.harness import WORK, Product, ProductTests, runs_of


def products(numpy, scipy):
    return [
        Product(numpy, 600, 310, 64, times=2),  # linear_kernel, euclidean_distances
        Product(scipy, 256, 256, 64, times=None),  # pairwise_distances_argmin, in chunks of 256
        Product(numpy, 600, 64, 64, times=None),  # PCA.transform
        Product(numpy, 600, 64, 10, times=2),  # its projection, and the data of that rank
        Product(numpy, 310, 5, 600),  # KernelRidge.predict
        Product(numpy, 310, 48, 64),  # MLPRegressor.predict, layer 1
        Product(numpy, 310, 5, 48),  # layer 2
        Product(scipy, 7, 256, 64, times=None),  # KMeans, in chunks of 256
    ]


SCRIPT = [str(WORK / "sklearn_products.py"), "@OUT@"]
runs = runs_of({
    "scikit-learn of Debian": ([DEBIAN_PYTHON, *SCRIPT], products("cblas_dgemm", "dgemm_")),
    "scikit-learn wheel": ([VENV_PYTHON, *SCRIPT], products("scipy_cblas_dgemm64_", "scipy_dgemm_")),
})


class TestSklearn(ProductTests):
    pass
