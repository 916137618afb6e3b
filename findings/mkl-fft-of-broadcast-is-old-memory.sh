#!/bin/bash
# mkl_fft 2.3.2 (PyPI, oneMKL 2026.2.0): fft2, ifft2, fftn and irfft2 of a broadcast array (a stride
# of zero, as np.broadcast_to and np.meshgrid(copy=False) make) return memory that
# nobody has written: oneMKL refuses the strides when the plan is committed, and that status is
# dropped. Neither an exception nor a warning tells. mkl_fft.fft of the same array raises
# "Inconsistent configuration parameters", and numpy.fft computes all of them. After
# mkl_fft.patch_numpy_fft() it is numpy.fft.fft2 that answers so. Who stands between a program and
# its FFT has to ask for the strides first: there is no error to fall back on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: numpy==2.4.6 mkl-fft==2.3.2 mkl==2026.2.0
cat > "$folder/broadcast.py" <<'PYTHON'
import warnings
import mkl_fft
import numpy as np

warnings.simplefilter("error")
rows = np.broadcast_to(np.arange(1.0, 5) + 0j, (3, 4))
right = np.fft.fft2(rows)
old, wrong = 0, 0
for name in "fft2", "ifft2", "fftn", "irfft2":
    expected = getattr(np.fft, name)(rows)
    freed = np.full_like(expected, 7)  # NumPy keeps small blocks, and gives them out again
    del freed
    got = getattr(mkl_fft, name)(rows)
    old += bool((got == 7).any())
    wrong += not np.allclose(got, expected)
    print(f"{name}: wrong {not np.allclose(got, expected)}, has what was freed before {bool((got == 7).any())}")
    assert np.allclose(getattr(mkl_fft, name)(rows.copy()), expected)
try:
    mkl_fft.fft(rows)
    said = "nothing"
except ValueError as error:
    said = str(error)
print("fft says:", said)
mkl_fft.patch_numpy_fft()
patched = np.fft.fft2(rows)
print("numpy.fft.fft2, patched: wrong", not np.allclose(patched, right))
assert wrong == 4 and old > 0 and "Inconsistent configuration parameters" in said and not np.allclose(patched, right)
PYTHON
MKL_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/broadcast.py"
