"""Trains boosters of XGBoost on scikit-learn's digits; prints digests of what they predict, and how much of that is right."""

import hashlib
import pickle

import xgboost
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)


def digest(numbers):
    return hashlib.md5(numbers.tobytes()).hexdigest()


model = xgboost.XGBClassifier(n_estimators=5, max_depth=4, n_jobs=2, random_state=0, subsample=0.8)
model.fit(x, y, eval_set=[(x, y)], verbose=False)
again = pickle.loads(pickle.dumps(model))
booster = xgboost.train({"objective": "multi:softprob", "num_class": 10, "nthread": 2}, xgboost.DMatrix(x, y), 3)
print(digest(model.predict_proba(x)), digest(again.predict_proba(x)), digest(booster.predict(xgboost.DMatrix(x))))
print("cuda" in booster.save_config(), round((model.predict(x) == y).mean(), 4))
