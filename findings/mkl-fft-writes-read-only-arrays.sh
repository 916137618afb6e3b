#!/bin/bash
# mkl_fft 2.3.2 (PyPI, oneMKL 2026.2.0): its functions write their result into an array out= that
# is read-only (NumPy's flag WRITEABLE is off), up to the bytes of an immutable bytes object, with
# which Python may have computed a hash before; numpy.fft raises "output array is read-only". Into
# one whose elements are not aligned, as those of a field of a packed structured array are, fft,
# ifft, fftn and rfftn put a wrong result, without a message; rfft, irfft and irfftn a right one.
# mkl_fft.interfaces.numpy_fft does the same. Programs that keep memory read-only so that its copy
# on a device stays true cannot take the flag for a promise.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: numpy==2.4.6 mkl-fft==2.3.2 mkl==2026.2.0
cat > "$folder/out.py" <<'PYTHON'
import mkl_fft
import mkl_fft.interfaces.numpy_fft
import numpy as np

line = np.arange(16.0) + 1j
square = line.reshape(4, 4)
half, half_square = np.fft.rfft(line.real), np.fft.rfft2(square.real)
inputs = {"fft": line, "ifft": line, "rfft": line.real.copy(), "irfft": half, "fftn": square, "rfftn": square.real.copy(), "irfftn": half_square}


def write(function, array, out):
    try:
        function(array, out=out)
    except ValueError as error:
        return str(error)
    return "written" if out.any() else "left"


for name, array in inputs.items():
    right = getattr(np.fft, name)(array)
    constant = bytes(right.nbytes)
    read_only = np.frombuffer(constant, right.dtype).reshape(right.shape)
    assert not read_only.flags.writeable
    of_numpy = write(getattr(np.fft, name), array, read_only)
    of_mkl = write(getattr(mkl_fft, name), array, read_only)
    field = np.zeros(right.shape, np.dtype([("one byte", "u1"), ("value", right.dtype)]))["value"]
    getattr(mkl_fft, name)(array, out=field)
    print(f"{name}: read-only: NumPy {of_numpy}, mkl_fft {of_mkl}, the bytes changed: {any(constant)}; not aligned: {'right' if np.allclose(field, right) else 'wrong'}")
read_only = np.zeros(16, complex)
read_only.setflags(write=False)
print("interfaces.numpy_fft.fft:", write(mkl_fft.interfaces.numpy_fft.fft, line, read_only))
PYTHON
MKL_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/out.py" > "$folder/said"
cat "$folder/said"
for name in fft ifft rfft irfft fftn rfftn irfftn; do
    case $name in
    fft | ifft | fftn | rfftn) result=wrong ;;
    *) result=right ;;
    esac
    echo "$name: read-only: NumPy output array is read-only, mkl_fft written, the bytes changed: True; not aligned: $result"
done > "$folder/expected"
echo "interfaces.numpy_fft.fft: written" >> "$folder/expected"
diff "$folder/said" "$folder/expected"
