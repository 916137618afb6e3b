#!/bin/bash
# scikit-learn 1.9.1 from PyPI: LassoLarsIC counts as degrees of freedom all coefficients above
# 2.2e-16, whatever their size. One that LARS brings back to zero is 0 or about 2e-15 by rounding,
# beside others of 33. On the data of the example "Lasso model selection", where each number of X is
# changed by one unit in the last place at most, AIC at one alpha is 4794.66 or, by 2, 4796.66.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cat > "$folder/counts.py" <<'PYTHON'
import collections
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoLarsIC
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True)
X = np.hstack([X, np.random.RandomState(42).randn(len(X), 14)])
X = StandardScaler().fit_transform(X)
noise, found = np.random.default_rng(0), collections.Counter()
for _ in range(200):
    changed = X * (1 + 1.2e-16 * noise.integers(-1, 2, X.shape))
    found[round(float(LassoLarsIC(criterion="aic").fit(changed, y).criterion_[24]), 2)] += 1
print(*(f"AIC {value}: {times} of 200 fits" for value, times in sorted(found.items())), sep="\n")
assert set(found) == {4794.66, 4796.66}
PYTHON
OPENBLAS_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/counts.py"
