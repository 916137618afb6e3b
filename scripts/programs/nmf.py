"""scikit-learn: NMF of 60,000 images of Fashion-MNIST, by 80 multiplicative updates"""

import warnings

from inputs import images, scaled
from sklearn.decomposition import NMF

warnings.simplefilter("ignore")  # it says that it has not converged
x, _ = images(scaled(60000))
model = NMF(n_components=scaled(50, 10), init="random", random_state=7, solver="mu", max_iter=80, tol=0).fit(x)
print(f"{model.reconstruction_err_:.8g} {abs(model.components_).sum():.8g}")
