"""scikit-learn: k-means of 60,000 images of Fashion-MNIST"""

import numpy as np
from inputs import images, scaled
from sklearn.cluster import KMeans

x, _ = images(scaled(60000), np.float32)
model = KMeans(n_clusters=20, init=x[:20], n_init=1, max_iter=20, tol=0).fit(x)
print(f"{model.inertia_:.6g}", *(f"{size:.3g}" for size in np.sort(np.linalg.norm(model.cluster_centers_, axis=1))))
