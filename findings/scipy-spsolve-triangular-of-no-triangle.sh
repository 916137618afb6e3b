#!/bin/bash
# SciPy 1.17.1 (PyPI): scipy.sparse.linalg.spsolve_triangular takes a matrix with entries on both
# sides of the diagonal, and returns a vector that solves neither the named triangle nor the whole
# matrix, and another one for CSC than for CSR: SuperLU's gstrs, which 1.13.1 did not use yet, takes
# all of it for L. Its documentation promises a LinAlgError "if A is singular or not triangular",
# and 1.13.1 raises it. scipy.linalg.solve_triangular of a dense matrix reads the named triangle
# alone. So a step of Gauss-Seidel by spsolve_triangular(A, b, lower=True) ended with a message
# once, and is wrong without one now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > both.py <<'PYTHON'
import warnings

import numpy as np
import scipy
from scipy.linalg import solve_triangular
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import spsolve_triangular

warnings.simplefilter("ignore")  # CSC is converted
A = np.array([[4.0, 1, 2], [1, 5, 1], [2, 1, 4]])
b = np.array([4.0, 10, 12])
known = {"the lower triangle": solve_triangular(A, b, lower=True), "the upper triangle": solve_triangular(A, b), "A": np.linalg.solve(A, b)}
for lower in True, False:
    for form in csr_array, csc_array:
        try:
            x = spsolve_triangular(form(A), b, lower=lower)
            of = next((name for name, right in known.items() if np.allclose(x, right)), "nothing")
            said = f"{np.array2string(x, precision=3)} solves {of}"
        except np.linalg.LinAlgError as error:
            said = f"LinAlgError: {error}"
        print(f"SciPy {scipy.__version__}, {form.__name__}, lower={lower}: {said}")
PYTHON
for version in 1.13.1:2.2.6 1.17.1:2.4.6; do
    python3 -m venv "${version%:*}"
    "${version%:*}/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: scipy=="${version%:*}" numpy=="${version#*:}"
    OPENBLAS_NUM_THREADS=1 "${version%:*}/bin/python" both.py
done > said
cat said
# Two formats and two triangles
[ "$(grep -c '^SciPy 1.13.1, .*: LinAlgError' said)" = 4 ] && [ "$(grep -c '^SciPy 1.17.1, .* solves nothing$' said)" = 4 ]
