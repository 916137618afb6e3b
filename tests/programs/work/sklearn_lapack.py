"""scikit-learn: estimators whose fit is linear algebra. What they find is put back into what they solve."""

import warnings

import numpy as np
from cases import case, check, dot, norm, orthonormal, random, rectangular, residual
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA, FactorAnalysis, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.mixture import GaussianMixture

warnings.simplefilter("ignore")
T = "float64"
M, N = 300, 40
X = rectangular(T, M, N, np.linspace(5.0, 20.0, N))
Y = random(T, M, 3)
centred, target = X - X.mean(axis=0), Y - Y.mean(axis=0)
classes = np.repeat(np.arange(4), M // 4)
groups = random(T, M, N) + 2 * random(T, 4, N)[classes]


def gradient(a, w, b, alpha=0.0):
    """Of |a w - b|^2 + alpha |w|^2, in the largest singular value, which is 20 for X."""
    residual(dot(a.T, dot(a, w) - b) + alpha * w, M, 20, max(20 * norm(w), norm(b)))


case(T, "linear_regression")
gradient(centred, LinearRegression().fit(X, Y).coef_.T, target)
case(T, "linear_regression_weighted")
weights = np.linspace(1, 2, M)
w = LinearRegression().fit(X, Y, sample_weight=weights)
root = np.sqrt(weights)[:, None]
gradient(np.hstack([X, np.ones((M, 1))]) * root, np.vstack([w.coef_.T, w.intercept_]), Y * root)
for solver in ("cholesky", "svd"):
    case(T, "ridge_" + solver)
    gradient(centred, Ridge(alpha=2.0, solver=solver).fit(X, Y).coef_.T, target, 2.0)
case(T, "ridge_wide")  # more features than samples: the dual problem
wide_x = X.T - X.T.mean(axis=0)
y = random(T, N, 3)
w = Ridge(alpha=2.0, solver="cholesky", fit_intercept=False).fit(wide_x, y).coef_.T
residual(dot(wide_x.T, dot(wide_x, w) - y) + 2 * w, wide_x, wide_x.T, M, norm(y))
case(T, "kernel_ridge")
ridge = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.5).fit(X, Y)
kernel = RBF(1.0)(X)
residual(dot(kernel + np.eye(M), ridge.dual_coef_) - Y, kernel, ridge.dual_coef_, M)
case(T, "bayesian_ridge")
model = BayesianRidge(fit_intercept=False).fit(X, Y[:, 0])
gradient(X, model.coef_, Y[:, 0], model.lambda_ / model.alpha_)

case(T, "pca")
pca = PCA(svd_solver="full").fit(X)
orthonormal(pca.components_.T)
covariance = dot(centred.T, centred)
residual(dot(covariance, pca.components_.T) - pca.components_.T * pca.singular_values_**2, covariance, M)
case(T, "kernel_pca")
model = KernelPCA(n_components=20, kernel="linear", eigen_solver="dense").fit(X)
gram = dot(centred, centred.T)
values, vectors = model.eigenvalues_, model.eigenvectors_
residual(dot(gram, vectors) - vectors * values, gram, M)
orthonormal(vectors)
case(T, "factor_analysis")
model = FactorAnalysis(n_components=5, svd_method="lapack", max_iter=20, tol=0).fit(X)
precision = model.get_precision()
residual(dot(precision, model.get_covariance()) - np.eye(N), precision, model.get_covariance(), N)
case(T, "covariance")
model = EmpiricalCovariance().fit(X)
residual(dot(model.precision_, model.covariance_) - np.eye(N), model.precision_, model.covariance_, N)

case(T, "gaussian_process")
process = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None).fit(X, Y[:, 0])
kernel = process.kernel_(X) + process.alpha * np.eye(M)
residual(dot(process.L_, process.L_.T) - kernel, kernel, M)
residual(dot(kernel, process.alpha_) - Y[:, 0], kernel, norm(process.alpha_), M)
case(T, "gaussian_process_deviation")
inside = X[:50] + 0.1
_, deviation = process.predict(inside, return_std=True)
cross = RBF(2.0)(inside, X)
variance = 1.1 - np.sum(cross * dot(cross, np.linalg.inv(kernel)), axis=1)
residual(deviation**2 - variance, np.linalg.inv(kernel), kernel, M)

for kind in ("full", "tied"):
    case(T, "mixture_" + kind)
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0, max_iter=5, tol=0).fit(X[:, :8])
    covariances = mixture.covariances_[None] if kind == "tied" else mixture.covariances_
    factors = mixture.precisions_cholesky_[None] if kind == "tied" else mixture.precisions_cholesky_
    for covariance, factor in zip(covariances, factors):
        residual(dot(factor.T, covariance, factor) - np.eye(8), 8, factor, factor.T, covariance)

for solver in ("svd", "lsqr", "eigen"):
    case(T, "lda_" + solver)
    lda = LinearDiscriminantAnalysis(solver=solver, store_covariance=True).fit(groups, classes)
    check(lda.score(groups, classes) > 0.9)
    if solver == "lsqr":
        residual(dot(lda.covariance_, lda.coef_.T) - lda.means_.T, lda.covariance_, lda.coef_.T, M)
    if solver == "eigen":  # what it uses are all of them, normalised by the covariance within
        s = lda.scalings_
        residual(dot(s.T, lda.covariance_, s) - np.eye(N), s.T, s, lda.covariance_, M)
    if solver == "svd":  # the same, of the directions that the classes span, except for a factor
        s = lda.scalings_[:, :3]
        product = dot(s.T, lda.covariance_, s)
        residual(product - np.eye(3) * product[0, 0], s.T, s, lda.covariance_, M)
case(T, "qda")
qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(groups, classes)
for covariance, rotation, scaling in zip(qda.covariance_, qda.rotations_, qda.scalings_):
    orthonormal(rotation)
    residual(dot(covariance, rotation) - rotation * scaling, covariance, M)
