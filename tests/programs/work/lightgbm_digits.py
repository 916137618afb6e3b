"""Trains boosters of LightGBM on scikit-learn's digits; prints digests of what they predict, and how much of that is right."""

import hashlib
import pickle

import lightgbm
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)


def digest(numbers):
    return hashlib.md5(numbers.tobytes()).hexdigest()


model = lightgbm.LGBMClassifier(n_estimators=5, max_depth=4, n_jobs=2, random_state=0, subsample=0.8, verbose=-1)
model.fit(x, y)
again = pickle.loads(pickle.dumps(model))
parameters = {"objective": "multiclass", "num_class": 10, "num_threads": 2, "verbose": -1}
booster = lightgbm.train(parameters, lightgbm.Dataset(x, y), 3, valid_sets=[lightgbm.Dataset(x, y)])
print(digest(model.predict_proba(x)), digest(again.predict_proba(x)), digest(booster.predict(x)))
print("cuda" in booster.model_to_string(), round((model.predict(x) == y).mean(), 4))
