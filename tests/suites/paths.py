"""What is run of each suite. Paths are below site-packages."""

# For `make test`: every routine of LAPACK that NumPy has, and each way to a product; not those that
# take most (norms and condition numbers, which are made of these routines, and dot products of 2^31
# elements). Of the tests of stacked matrices, which make ten thousand calls each, that of one
# routine.
NOT_STACKED = ("test_sq_cases", "test_empty_sq_cases", "test_generalized_empty_sq_cases", "test_types")
SHORT = {
    "numpy": [
        "numpy/linalg/tests/test_linalg.py::TestSolve",
        *(f"numpy/linalg/tests/test_linalg.py::{name}::{test}" for name in ("TestInv", "TestDet", "TestEig", "TestSVD") for test in NOT_STACKED),
        "numpy/linalg/tests/test_linalg.py::TestEigh",
        "numpy/linalg/tests/test_linalg.py::TestLstsq",
        "numpy/linalg/tests/test_linalg.py::TestQR",
        "numpy/linalg/tests/test_linalg.py::TestCholesky",
        "numpy/linalg/tests/test_linalg.py::TestMultiDot",
        "numpy/_core/tests/test_multiarray.py::TestDot::test_all",
        "numpy/_core/tests/test_multiarray.py::TestDot::test_vecobject",
        "numpy/_core/tests/test_multiarray.py::TestDot::test_dot_2args",
        "numpy/_core/tests/test_multiarray.py::TestDot::test_dot_array_order",
        "numpy/_core/tests/test_multiarray.py::TestDot::test_accelerate_framework_sgemv_fix",
        "numpy/_core/tests/test_multiarray.py::TestMatmul",
        "numpy/_core/tests/test_multiarray.py::TestInner",
        "numpy/_core/tests/test_multithreading.py",
    ],
}

# Tests that call BLAS, for `make test-all`: about six minutes in all.
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
    "sklearn": [
        "sklearn/cluster/tests/test_k_means.py",
        "sklearn/covariance",
        "sklearn/cross_decomposition",
        "sklearn/decomposition/tests/test_factor_analysis.py",
        "sklearn/decomposition/tests/test_fastica.py",
        "sklearn/decomposition/tests/test_incremental_pca.py",
        "sklearn/decomposition/tests/test_nmf.py",
        "sklearn/decomposition/tests/test_truncated_svd.py",
        "sklearn/gaussian_process/tests/test_gpr.py",
        "sklearn/gaussian_process/tests/test_kernels.py",
        "sklearn/linear_model/tests/test_base.py",
        "sklearn/linear_model/tests/test_least_angle.py",
        "sklearn/linear_model/tests/test_ridge.py",
        "sklearn/manifold/tests/test_locally_linear.py",
        "sklearn/metrics/tests/test_pairwise.py",
        "sklearn/mixture",
        "sklearn/neighbors/tests/test_nca.py",
        "sklearn/neural_network",
        "sklearn/tests/test_discriminant_analysis.py",
        "sklearn/tests/test_kernel_approximation.py",
        "sklearn/tests/test_kernel_ridge.py",
        "sklearn/tests/test_random_projection.py",
        "sklearn/utils/tests/test_extmath.py",
    ],
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
