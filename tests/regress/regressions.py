"""Regressions of statsmodels: least squares, generalised linear models, principal components, vector autoregression."""

import numpy as np
import statsmodels.api as sm
from statsmodels.multivariate.pca import PCA
from statsmodels.tsa.api import VAR

rng = np.random.default_rng(1)
X = sm.add_constant(rng.standard_normal((800, 40)))
beta = rng.standard_normal(41) / 10
y = X @ beta + rng.standard_normal(800)


def show(name, values):
    for value in np.ravel(values):
        print(f"{name} {value:.8g}")


for name, fit in {
    "ols": sm.OLS(y, X).fit(),
    "ols_qr": sm.OLS(y, X).fit(method="qr"),
    "wls": sm.WLS(y, X, weights=rng.uniform(0.5, 2, 800)).fit(),
    "gls_ar": sm.GLSAR(y, X, rho=2).iterative_fit(4),
    "logit": sm.Logit((y > 0).astype(float), X).fit(disp=0),
    "poisson": sm.GLM(rng.poisson(np.exp(X @ beta)), X, family=sm.families.Poisson()).fit(),
}.items():
    show(name, fit.params)
    show(f"{name}_se", fit.bse)
pca = PCA(X[:, 1:], ncomp=8)
show("pca", pca.eigenvals[:8])
series = np.cumsum(rng.standard_normal((300, 6)), axis=0)
var = VAR(np.diff(series, axis=0)).fit(3)
show("var", var.params)
show("var_sigma", var.sigma_u)
