"""scikit-learn: estimators whose work is in products, through NumPy and through SciPy's function pointers."""

import warnings

import numpy as np
from report import product_scale, report, size
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances, linear_kernel
from sklearn.neural_network import MLPRegressor

warnings.simplefilter("ignore")
rng = np.random.default_rng(3)
X, Y = rng.uniform(-1, 1, (600, 64)), rng.uniform(-1, 1, (310, 64))
target = X[:, :5] + 0.1 * rng.uniform(-1, 1, (600, 5))

report("linear_kernel", linear_kernel(X, Y), product_scale(X, Y.T))
report("euclidean_distances", euclidean_distances(X, Y, squared=True), 2 * product_scale(X, Y.T))
report("argmin", pairwise_distances_argmin(X, Y), 0)

# The subspace of the first ten components moves by eps * |X| / gap, so its projection of X does
# too.
rank = 10
low = rng.uniform(-1, 1, (600, rank)) @ rng.uniform(-1, 1, (rank, 64)) + 1e-3 * X
pca = PCA(svd_solver="full").fit(low)
projected = pca.transform(low)[:, :rank] @ pca.components_[:rank]
s = pca.singular_values_
report("pca_projection", projected, 64 * s[0] ** 2 / (s[rank - 1] - s[rank]))

# The kernel's entries are at most 1, so cond(K + I) <= n + 1.
ridge = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.05).fit(X, target)
report("kernel_ridge", ridge.predict(Y), 600 * 601 * size(ridge.dual_coef_))

# Nine steps; each adds rounding of at most the inner dimensions times values of order 1.
net = MLPRegressor(hidden_layer_sizes=(48,), activation="tanh", solver="sgd", max_iter=3, random_state=0)
net.fit(X, target)
report("mlp", net.predict(Y), 9 * (64 + 48 + 200))

# Clusters far apart: the labels cannot depend on rounding, and a centre is a mean of the same rows.
centres = 4 * rng.uniform(-1, 1, (7, 64))
blobs = np.repeat(centres, 80, axis=0) + 0.1 * rng.uniform(-1, 1, (560, 64))
means = KMeans(n_clusters=7, init=centres + 0.2, n_init=1).fit(blobs)
report("kmeans_labels", means.labels_, 0)
report("kmeans_centres", means.cluster_centers_, 560 * size(blobs))
