"""SciPy: an image of 3000 by 3000 is smoothed, sharpened, turned and labelled"""

import numpy as np
from inputs import scaled
from scipy import ndimage, signal

rng = np.random.default_rng(9)
n = scaled(3000, 60)
image = ndimage.gaussian_filter(rng.random((n, n)), 3)
edges = np.hypot(ndimage.sobel(image, 0), ndimage.sobel(image, 1))
turned = ndimage.rotate(image, 30, reshape=False, order=1)
blurred = signal.fftconvolve(image, np.outer(signal.windows.hann(31), signal.windows.hann(31)), mode="same")
_, spots = ndimage.label(ndimage.median_filter(image, 3) > image.mean() + 2 * image.std())
print(f"{edges.sum():.10g} {turned.sum():.10g} {blurred.sum():.10g}", spots)
