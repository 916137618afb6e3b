"""scikit-learn: a Gaussian process of 7,000 points, with deviations at 3,000 others"""

import numpy as np
from inputs import scaled
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

rng = np.random.default_rng(5)
x = rng.random((scaled(10000), 8))
y = np.sin(6 * x).sum(axis=1) + 0.1 * rng.standard_normal(len(x))
known = scaled(7000)
model = GaussianProcessRegressor(RBF(0.5), alpha=0.01, optimizer=None).fit(x[:known], y[:known])
mean, deviation = model.predict(x[known:], return_std=True)
print(f"{model.log_marginal_likelihood_value_:.10g} {np.linalg.norm(mean):.10g} {deviation.mean():.8g}")
