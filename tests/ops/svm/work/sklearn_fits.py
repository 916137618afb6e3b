"""Fits support vector machines by scikit-learn and prints a line of JSON for each. Arguments: names of fits,
or --list for all names.

A line has decision values with and without shrinking, whose difference is what scikit-learn's own answers vary by, predictions,
warnings, and what the model says of itself. Data are those that come with scikit-learn, and Debian's Fashion-MNIST."""

import gzip
import json
import sys
import warnings

import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale


def fashion(rows):
    folder = "/usr/share/datasets/fashion-mnist/train"
    with gzip.open(folder + "-images-idx3-ubyte.gz") as images, gzip.open(folder + "-labels-idx1-ubyte.gz") as labels:
        x = np.frombuffer(images.read(16 + 784 * rows), np.uint8, offset=16).reshape(rows, 784) / 255.0
        return x, np.frombuffer(labels.read(8 + rows), np.uint8, offset=8)


iris_x, iris_y = load_iris(return_X_y=True)
digits_x, digits_y = (part[:240] for part in load_digits(return_X_y=True))
sugar_x, sugar_y = (part[:160] for part in load_diabetes(return_X_y=True))
sugar_x, sugar_y = scale(sugar_x), scale(sugar_y)
digits = digits_x / 16, digits_y
two = digits_x / 16, digits_y % 2
halves = np.where(np.arange(150) % 7 == 0, 0, 0.5 + np.arange(150) % 3)
doubles = np.repeat(iris_x[::2], 3, axis=0), np.repeat(iris_y[::2], 3)

FITS = {
    "rbf": (svm.SVC, {}, iris_x, iris_y),
    "rbf_digits": (svm.SVC, {"C": 10, "gamma": 0.05}, *digits),
    "linear": (svm.SVC, {"kernel": "linear"}, *two),
    "poly": (svm.SVC, {"kernel": "poly", "degree": 2, "coef0": 1}, *two),
    "sigmoid": (svm.SVC, {"kernel": "sigmoid", "gamma": 0.01}, *two),
    "precomputed": (svm.SVC, {"kernel": "precomputed"}, rbf_kernel(iris_x, gamma=0.3), iris_y),
    "nu_svc": (svm.NuSVC, {"nu": 0.2}, iris_x, iris_y),
    "svr": (svm.SVR, {"C": 5}, sugar_x, sugar_y),
    "nu_svr": (svm.NuSVR, {"nu": 0.4}, sugar_x, sugar_y),
    "one_class": (svm.OneClassSVM, {"nu": 0.3}, iris_x, None),
    "sparse": (svm.SVC, {}, sparse.csr_matrix(two[0]), two[1]),
    "sparse_classes": (svm.SVC, {"kernel": "linear", "C": 0.1}, sparse.csr_matrix(digits[0]), digits[1]),
    "sparse_svr": (svm.SVR, {}, sparse.csr_matrix(sugar_x), sugar_y),
    "sparse_nu_svr": (svm.NuSVR, {"kernel": "linear", "C": 0.1}, sparse.csr_matrix(sugar_x), sugar_y),
    "sparse_one_class": (svm.OneClassSVM, {"kernel": "rbf", "nu": 0.3}, sparse.csr_matrix(digits[0]), None),
    "sparse_nu_svc": (svm.NuSVC, {"nu": 0.3}, sparse.csr_matrix(two[0]), two[1]),
    "sample_weight": (svm.SVC, {}, iris_x, iris_y, halves),
    "sample_weight_svr": (svm.SVR, {}, iris_x[:, :3], iris_x[:, 3], halves),
    "sample_weight_nu": (svm.OneClassSVM, {"nu": 0.3}, iris_x, None, halves),
    "precomputed_weight": (svm.SVC, {"kernel": "precomputed"}, rbf_kernel(iris_x, gamma=0.3), iris_y, halves),
    "class_weight": (svm.SVC, {"class_weight": {0: 5, 2: 0.5}}, iris_x, iris_y),
    "balanced": (svm.SVC, {"class_weight": "balanced", "C": 100}, iris_x[30:], iris_y[30:]),
    "duplicates": (svm.SVC, {"C": 1000}, *doubles),
    "break_ties": (svm.SVC, {"break_ties": True, "decision_function_shape": "ovr"}, iris_x, iris_y),
    "verbose": (svm.SVC, {"verbose": True}, iris_x, iris_y),
    "max_iter": (svm.SVC, {"max_iter": 7}, *two),
    "probability": (svm.SVC, {"probability": True, "random_state": 3}, iris_x, iris_y),
    "probability_sparse": (svm.SVC, {"probability": True, "random_state": 4}, sparse.csr_matrix(two[0]), two[1]),
    "probability_nu": (svm.NuSVC, {"nu": 0.2, "probability": True, "random_state": 5}, iris_x, iris_y),
    "fashion": (svm.SVC, {"C": 10}, None, None),
}


def values_of(model, x):
    if hasattr(model, "decision_function"):
        if getattr(model, "decision_function_shape", None) == "ovr" and not model.break_ties:
            model.decision_function_shape = "ovo"
        return model.decision_function(x)
    return model.predict(x)


def fit(name):
    kind, options, x, y, *weight = FITS[name]
    if name == "fashion":
        x, y = fashion(200)
    models = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for shrinking in (True, False):
            model = kind(shrinking=shrinking, **options)
            model.fit(x, y, *weight) if y is not None else model.fit(x, sample_weight=weight[0] if weight else None)
            models.append(model)
    model, other = models
    line = {
        "name": name,
        "values": values_of(model, x).tolist(),
        "others": values_of(other, x).tolist(),
        "predicted": model.predict(x).tolist(),
        "fit_status": int(model.fit_status_),
        "iterations": np.ravel(model.n_iter_).tolist(),
        "support": len(model.support_),
        "support_is_of_x": bool(name.startswith("precomputed") or weight or np.array_equal(
            model.support_vectors_.toarray() if sparse.issparse(x) else model.support_vectors_,
            x[model.support_].toarray() if sparse.issparse(x) else x[model.support_])),
        "of_class": model.n_support_.tolist(),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
    }
    if options.get("probability"):
        line["probabilities"] = [m.predict_proba(x).tolist() for m in models]
    sys.stdout.flush()
    print("\n" + json.dumps(line), flush=True)


if sys.argv[1:] == ["--list"]:
    print(*FITS)
else:
    for name in sys.argv[1:]:
        fit(name)
