"""Trains a classifier by support vectors."""

from sklearn.datasets import load_digits
from sklearn.svm import SVC

images, digits = load_digits(return_X_y=True)
print(SVC(gamma=0.001).fit(images, digits).score(images, digits))
