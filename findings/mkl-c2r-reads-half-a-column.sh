#!/bin/bash
# oneMKL 2026.2.0 (PyPI's mkl), transforms of complex to real in two dimensions, by its FFTW
# functions: of the columns of the spectrum that have their own conjugates in them (the first one,
# and that of the Nyquist frequency), many sizes read the upper half alone, others all of it, as
# FFTW 3.3.10 and NumPy do for every size: 12 x 16 and 16 x 15 the half, 16 x 16 and 24 x 20 all.
# If the spectrum is that of a real image, nobody sees it. But where a filter has no such
# symmetry, MKL's result is not FFTW's, by percents, and the next size hides it: half a pixel's
# shift by exp(-pi i k / n), with an even number of columns, is an ordinary case. Neither manual
# says what is read. A comparison of two FFT libraries, or a check of a GPU's result against the
# CPU's, has to know of it: to differ is no error there.
# Needs apt-get of Debian 12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q libfftw3-double3=3.3.10-1 > apt.log 2>&1 || { cat apt.log; exit 2; }
dpkg -x libfftw3-double3_*.deb debian
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: numpy==2.4.6 mkl==2026.2.0
cat > shift.py <<'PYTHON'
import ctypes
import glob
import sys
import numpy as np

library = ctypes.CDLL(glob.glob(sys.argv[1])[0])
library.fftw_plan_dft_c2r_2d.restype = ctypes.c_void_p
at = lambda array: ctypes.c_void_p(array.ctypes.data)


def to_real(spectrum, rows, columns):
    source, image = spectrum.copy(), np.zeros((rows, columns))
    plan = library.fftw_plan_dft_c2r_2d(rows, columns, at(source), at(image), 64)  # FFTW_ESTIMATE
    library.fftw_execute(ctypes.c_void_p(plan))
    library.fftw_destroy_plan(ctypes.c_void_p(plan))
    return image / image.size


for rows, columns in (12, 16), (15, 16), (16, 15), (16, 16), (24, 20), (25, 20), (24, 21), (64, 64), (64, 66):
    image = np.random.default_rng(0).random((rows, columns))
    spectrum = np.fft.rfft2(image)
    assert np.allclose(to_real(spectrum, rows, columns), image)
    # Half a pixel to the right; and a filter of rows of negative frequency alone
    shifted = spectrum * np.exp(-1j * np.pi * np.arange(columns // 2 + 1) / columns)
    sided = spectrum * np.where(np.arange(rows) <= rows // 2, 1, 0.5)[:, None]
    same = ["as NumPy" if np.allclose(to_real(what, rows, columns), np.fft.irfft2(what, (rows, columns))) else "other" for what in (shifted, sided)]
    print(f"{rows} x {columns}: shifted {same[0]}, one-sided filter {same[1]}")
PYTHON
{
    echo "FFTW 3.3.10:"
    venv/bin/python shift.py debian/usr/lib/x86_64-linux-gnu/libfftw3.so.3
    echo "oneMKL 2026.2.0:"
    MKL_NUM_THREADS=1 LD_LIBRARY_PATH=venv/lib venv/bin/python shift.py 'venv/lib/libmkl_rt.so.*'
} > said
cat said
diff said - <<'END'
FFTW 3.3.10:
12 x 16: shifted as NumPy, one-sided filter as NumPy
15 x 16: shifted as NumPy, one-sided filter as NumPy
16 x 15: shifted as NumPy, one-sided filter as NumPy
16 x 16: shifted as NumPy, one-sided filter as NumPy
24 x 20: shifted as NumPy, one-sided filter as NumPy
25 x 20: shifted as NumPy, one-sided filter as NumPy
24 x 21: shifted as NumPy, one-sided filter as NumPy
64 x 64: shifted as NumPy, one-sided filter as NumPy
64 x 66: shifted as NumPy, one-sided filter as NumPy
oneMKL 2026.2.0:
12 x 16: shifted other, one-sided filter other
15 x 16: shifted other, one-sided filter other
16 x 15: shifted as NumPy, one-sided filter other
16 x 16: shifted as NumPy, one-sided filter as NumPy
24 x 20: shifted as NumPy, one-sided filter as NumPy
25 x 20: shifted as NumPy, one-sided filter as NumPy
24 x 21: shifted as NumPy, one-sided filter other
64 x 64: shifted as NumPy, one-sided filter as NumPy
64 x 66: shifted as NumPy, one-sided filter as NumPy
END
