"""statsmodels: a structural time series, by a Kalman filter of small matrices"""

import numpy as np
from inputs import scaled
from statsmodels.tsa.statespace.structural import UnobservedComponents

rng = np.random.default_rng(8)
t = np.arange(scaled(2000, 100))
y = 0.01 * t + np.sin(2 * np.pi * t / 12) + rng.standard_normal(len(t)).cumsum() + rng.standard_normal(len(t))
model = UnobservedComponents(y, "local linear trend", seasonal=12)
for level in np.linspace(0.1, 2, 30):
    print(f"{model.loglike([1, level, 0.01, 0.1]):.10g}")
