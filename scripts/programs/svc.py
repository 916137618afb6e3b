"""scikit-learn: SVC on 2,800 images of Fashion-MNIST"""

from inputs import images, scaled
from sklearn.svm import SVC

x, y = images(scaled(3000, 400))
known = len(x) - 200
model = SVC(C=10, gamma=0.02).fit(x[:known], y[:known])
print(f"{model.score(x[known:], y[known:]):.6f} {len(model.support_)} {abs(model.dual_coef_).sum():.8g}")
