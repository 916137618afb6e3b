#!/bin/bash
# scikit-learn 1.9.1 from PyPI: ARDRegression on the data of its own example "L1-based models for
# Sparse Signals" (25 rows, 100 features) has no repeatable end. Where each inverse of its iteration
# (scipy.linalg.pinvh) is changed by one unit in the last place at most, as another BLAS would, the
# fit takes 14 iterations or all 300, after which it stops without a warning, and the printed R² is
# 0.541 to 0.544. OpenBLAS's kernels alone (OPENBLAS_CORETYPE) take 20 to 102.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cat > "$folder/fits.py" <<'PYTHON'
import warnings
import numpy as np
import sklearn.linear_model._bayes as bayes
from sklearn.linear_model import ARDRegression
from sklearn.metrics import r2_score

rng = np.random.RandomState(0)
rows, features, used = 50, 100, 10
time = np.linspace(-2, 2, rows)
freqs = 2 * np.pi * np.sort(rng.rand(features)) / 0.01
true = np.where(np.arange(features) < used, (-1.0) ** np.arange(features) * np.exp(-np.arange(features) / 10), 0)
y = np.sin(np.outer(time, freqs)) @ true
X = np.zeros((rows, features))
for i in range(features):
    X[:, i] = np.sin(freqs[i] * time + 2 * (rng.random_sample() - 0.5))
    X[:, i] += 0.2 * rng.normal(0, 1, rows)
y += 0.2 * rng.normal(0, 1, rows)

inverse, noise = bayes.pinvh, np.random.default_rng(1)
bayes.pinvh = lambda m: (lambda r: r * (1 + 1.1e-16 * noise.integers(-1, 2, r.shape)))(inverse(m))
warnings.simplefilter("error")
fits = [ARDRegression().fit(X[:25], y[:25]) for _ in range(40)]
scores = [r2_score(y[25:], fit.predict(X[25:])) for fit in fits]
steps = sorted(fit.n_iter_ for fit in fits)
print("iterations:", *steps)
print(f"R²: {min(scores):.4f} to {max(scores):.4f}")
assert steps[0] < 100 and steps[-1] == 300 and max(scores) - min(scores) > 1e-3
PYTHON
OPENBLAS_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/fits.py"
