"""scikit-learn: Ridge with 4000 features, its alpha by cross-validation"""

import numpy as np
from inputs import scaled
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

rng = np.random.default_rng(6)
x = rng.standard_normal((scaled(8000), scaled(4000)))
y = x[:, :20].sum(axis=1) + 5 * rng.standard_normal(len(x))
search = GridSearchCV(Ridge(solver="cholesky"), {"alpha": [10, 100, 1000]}, cv=4).fit(x, y)
print(search.best_params_["alpha"], *(f"{score:.10f}" for score in search.cv_results_["mean_test_score"]))
