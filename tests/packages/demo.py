# NumPy's products and eigenvalues, as a user has them; says whether libaccel is in the process.
import ctypes

import numpy as np

a = np.arange(90000.0).reshape(300, 300) % 7
print((a @ a)[2, 3], round(float(np.linalg.eigvalsh(a + a.T)[0]), 6), hasattr(ctypes.CDLL(None), "accel_version"))
