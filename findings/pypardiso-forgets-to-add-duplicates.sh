#!/bin/bash
# pypardiso 0.4.7 (PyPI, oneMKL 2026.2.0): spsolve of a CSR matrix in which an element is stored
# in parts (4 as 2 and 2: csr_matrix((data, indices, indptr)), as finite elements are assembled)
# gives a wrong vector without a message. SciPy says that duplicates are summed, and its own
# spsolve and toarray() do so; pypardiso sorts the indices, in the caller's matrix, and passes the
# parts on, and PARDISO, whose checker is off, does not add them. With sum_duplicates() before it
# is right. A solver that takes CSR's three arrays, on a GPU or not, owes a look at
# has_canonical_format.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: numpy==2.4.6 scipy==1.17.1 mkl==2026.2.0 pypardiso==0.4.7
cat > "$folder/parts.py" <<'PYTHON'
import warnings
import numpy as np
import pypardiso
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve

warnings.simplefilter("error", RuntimeWarning)
right = np.ones(3)


def parts():
    return csr_matrix((np.array([2.0, 1, 2, 1, 5, 6]), np.array([0, 1, 0, 0, 1, 2]), np.array([0, 3, 5, 6])), shape=(3, 3))


full = parts().toarray()
known = np.linalg.solve(full, right)
whole = parts()
whole.sum_duplicates()
caller = parts()
before = caller.indices.copy()
wrong = pypardiso.spsolve(caller, right)
said = {
    "SciPy's spsolve": np.allclose(spsolve(parts().tocsc(), right), known) and np.allclose(spsolve(parts(), right), known),
    "pypardiso after sum_duplicates()": np.allclose(pypardiso.spsolve(whole, right), known),
    "pypardiso": np.allclose(wrong, known),
}
print("\n".join(f"{name}: {'right' if is_right else 'wrong'}" for name, is_right in said.items()))
print("pypardiso's solution", wrong.round(4), "the right one", known.round(4))
print("the caller's indices", before, "are then", caller.indices)
assert list(said.values()) == [True, True, False] and not np.array_equal(before, caller.indices)
PYTHON
MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/parts.py"
