"""Trains XGBoost with the seeds 0 to 7 on three quarters of scikit-learn's breast cancer and diabetes data; prints a line of JSON: of the rest, each
seed's AUC of the one and RMSE of the other. Argument: rounds."""

import json
import sys

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import roc_auc_score

SEEDS = range(8)


def predicted(x, y, objective, seed):
    parameters = {"objective": objective, "seed": seed, "subsample": 0.5, "colsample_bytree": 0.5, "max_depth": 4, "nthread": 2}
    train = np.arange(len(y)) % 4 > 0
    booster = xgboost.train(parameters, xgboost.DMatrix(x[train], y[train]), int(sys.argv[1]))
    return y[~train], booster.predict(xgboost.DMatrix(x[~train]))


def auc(y, scores):
    return float(roc_auc_score(y, scores))


def rmse(y, values):
    return float(np.sqrt(np.mean((y - values) ** 2)))


tumours, sugar = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
print(json.dumps({"auc": [auc(*predicted(*tumours, "binary:logistic", seed)) for seed in SEEDS],
                  "rmse": [rmse(*predicted(*sugar, "reg:squarederror", seed)) for seed in SEEDS]}))
