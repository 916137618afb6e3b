"""scikit-learn: PCA of 60,000 images of Fashion-MNIST by singular values"""

from inputs import images, scaled
from sklearn.decomposition import PCA

x, _ = images(scaled(60000, 900))
pca = PCA(n_components=50, svd_solver="full").fit(x)
print(*(f"{ratio:.10f}" for ratio in pca.explained_variance_ratio_))
