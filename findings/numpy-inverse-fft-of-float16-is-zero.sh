#!/bin/bash
# NumPy 2.4.6 (PyPI): the inverse transforms of numpy.fft of a float16 array return complex64, but
# take 1/n in float16, in which n is infinite from 65520 on: ifft of a longer array is zero
# throughout. Of a shorter one it is wrong by up to 5e-4, thousands of times complex64's rounding
# (of 3 ones, 0.99975586 instead of 1). norm="ortho" and "forward" scale so, too. irfft and hfft
# return float16, and infinity above 65504. NumPy 1.26.4 computes all of that in float64, as the
# documentation of 2.4 still says of float32; of float16 it says nothing. There is no message but a
# RuntimeWarning of an overflow in a cast, for lengths from 65520 on and infinite results.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > half.py <<'PYTHON'
import warnings
import numpy as np

warned = []
warnings.showwarning = lambda message, kind, *where: warned.append(f"{kind.__name__}: {message}")
print("NumPy", np.__version__)
pulse = np.zeros(70000, np.float16)
pulse[0] = 1
back = np.fft.ifft(pulse)
print("ifft of a pulse of 70000:", "all zeros" if not back.any() else "right" if np.allclose(back, 1 / 70000, rtol=1e-5) else "wrong")
print("warnings:", *warned)
three = np.fft.ifft(np.ones(3, np.float16))
print(f"ifft of 3 ones: {three[0].real:.8f}, {'exact to 1e-6' if abs(three[0] - 1) < 1e-6 else 'off'}")
some = np.random.default_rng(0).standard_normal(1000).astype(np.float16)
right = np.fft.ifft(some.astype(np.float64))
off = abs(np.fft.ifft(some) - right).max() / abs(right).max()
print("ifft of 1000 numbers:", "exact to 1e-6" if off < 1e-6 else "off by 1e-4 to 1e-3" if 1e-4 < off < 1e-3 else off)
sums = np.fft.irfft(np.full(3, 30000, np.float16), norm="forward")
print("irfft of 3 times 30000, not scaled:", "infinite" if np.isinf(sums[0]) else int(sums[0]))
PYTHON
for version in 1.26.4 2.4.6; do
    python3 -m venv $version
    $version/bin/pip install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: numpy==$version
    $version/bin/python half.py
done > said
cat said
diff said - <<'END'
NumPy 1.26.4
ifft of a pulse of 70000: right
warnings:
ifft of 3 ones: 1.00000000, exact to 1e-6
ifft of 1000 numbers: exact to 1e-6
irfft of 3 times 30000, not scaled: 120000
NumPy 2.4.6
ifft of a pulse of 70000: all zeros
warnings: RuntimeWarning: overflow encountered in cast
ifft of 3 ones: 0.99975586, off
ifft of 1000 numbers: off by 1e-4 to 1e-3
irfft of 3 times 30000, not scaled: infinite
END
