"""scikit-learn: LogisticRegression of ten classes on 60,000 images of Fashion-MNIST"""

import warnings

from inputs import images, scaled
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("ignore")  # it says that it has not converged
x, y = images(scaled(60000, 500))
model = LogisticRegression(C=0.01, max_iter=60).fit(x, y)
print(f"{model.score(x, y):.6f} {abs(model.coef_).sum():.6g}")
