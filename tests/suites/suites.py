"""What is run of each suite. Paths are below site-packages."""

# Tests that call BLAS, for every `make check`: some minutes in all.
SMALL = {
    "numpy": [
        "numpy/linalg",
        "numpy/matrixlib",
        "numpy/polynomial",
        "numpy/_core/tests/test_multiarray.py::TestDot",
        "numpy/_core/tests/test_multiarray.py::TestVdot",
        "numpy/_core/tests/test_multiarray.py::TestMatmul",
        "numpy/_core/tests/test_multiarray.py::TestMatmulOperator",
        "numpy/_core/tests/test_multiarray.py::TestMatmulInplace",
        "numpy/_core/tests/test_multiarray.py::TestInner",
        "numpy/_core/tests/test_numeric.py",
        "numpy/_core/tests/test_einsum.py",
        "numpy/_core/tests/test_multithreading.py",
        "numpy/_core/tests/test_regression.py",
    ],
    "scipy.linalg": ["scipy/linalg"],
    "sklearn": [],
}

ALL = {
    "numpy": ["numpy"],
    "scipy.linalg": ["scipy/linalg"],
    "sklearn": ["sklearn"],
}

# More of SciPy that calls BLAS: run by name alone.
MORE = {
    "scipy": [
        "scipy/cluster", "scipy/integrate", "scipy/interpolate", "scipy/optimize", "scipy/signal", "scipy/sparse",
        "scipy/spatial", "scipy/stats",
    ],
}
