"""Fits of scikit-learn's estimators that use liblinear: prints what each prints, and its results as a line of JSON; writes the coefficients to
FILE, if there is one, so that scikit-learn's own may be compared."""

import json
import sys
import warnings

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, LinearSVR

warnings.simplefilter("always")
x, y = load_digits(return_X_y=True)
x, y = x[:300] / 16, y[:300]
weight = np.random.default_rng(1).random(300)
some = weight * (weight > 0.3)
iris = load_iris(return_X_y=True)

FITS = {
    "logistic": (LogisticRegression(solver="liblinear"), x, y > 4, None),
    "logistic_weight": (LogisticRegression(solver="liblinear", C=3, fit_intercept=False, intercept_scaling=2), x, y > 4, some),
    "logistic_sparse": (LogisticRegression(solver="liblinear", class_weight="balanced"), csr_matrix(x * (x > 0.8)), y == 3, None),
    "svc": (LinearSVC(dual=False), *iris, None),
    "svc_digits": (LinearSVC(dual=False, class_weight={1: 3, 2: 0.5}), x, y, weight),
    "svc_max_iter": (LinearSVC(dual=False, max_iter=2), x, y, None),
    "svc_float32": (LinearSVC(dual=False), x.astype(np.float32), y == 0, None),
    "svr": (LinearSVR(dual=False, loss="squared_epsilon_insensitive", epsilon=0.2), x, y, some),
    "svc_dual": (LinearSVC(dual=True, random_state=0), x, y == 0, None),
    "logistic_l1": (LogisticRegression(solver="liblinear", penalty="l1", random_state=0), x, y == 0, None),
}
for name, (estimator, data, target, sample_weight) in FITS.items():
    with warnings.catch_warnings(record=True) as said:
        fitted = estimator.fit(data, target, sample_weight=sample_weight)
    result = {"name": name, "coef": fitted.coef_.tolist(), "intercept": np.ravel(fitted.intercept_).tolist(),
              "n_iter": np.ravel(fitted.n_iter_).tolist(), "warnings": [f"{w.category.__name__}" for w in said],
              "labels": fitted.predict(data).tolist()}
    print(json.dumps(result), flush=True)
