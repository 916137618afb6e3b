#!/bin/bash
# numpy 2.4.6 from PyPI (OpenBLAS 0.3.31, pthreads): dgemm with two threads honours fesetround() in
# the calling thread's part of the product alone; OpenBLAS's own thread rounds to nearest, as it did
# when it was started. So about half of the elements of a product rounded down equal those of one
# rounded up, with no word about it: lower and upper bounds are none. With one thread all differ.
# oneMKL 2026.2.0 (OpenMP hands the mode on to its threads) gives bounds everywhere, also with two.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install --no-cache-dir numpy==2.4.6 mkl==2026.2.0
cat > "$folder/bounds.py" <<'EOF'
import ctypes, sys
import numpy as np
name, path, prefix, suffix, integer = sys.argv[1:]
library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
dgemm = getattr(library, prefix + "dgemm" + suffix)
libm = ctypes.CDLL("libm.so.6")
UP, DOWN, NEAREST = 0x800, 0x400, 0  # x86-64
n = 600
rng = np.random.default_rng(0)
a, b = rng.random((n, n)), rng.random((n, n))
at = lambda array: ctypes.c_void_p(array.ctypes.data)

def product(mode):
    c = np.zeros((n, n))
    order, one, zero = np.array(n, integer), np.array(1.0), np.array(0.0)
    libm.fesetround(mode)
    dgemm(b"N", b"N", at(order), at(order), at(order), at(one), at(a), at(order), at(b), at(order), at(zero), at(c), at(order),
          ctypes.c_size_t(1), ctypes.c_size_t(1))
    libm.fesetround(NEAREST)
    return c

product(NEAREST)  # threads are there
print(name, round(100 * (product(UP) > product(DOWN)).mean()))
EOF
site=$(echo "$folder"/venv/lib/python3*/site-packages)
openblas=$(echo "$site"/numpy.libs/libscipy_openblas64_*.so)
mkl=$folder/venv/lib/libmkl_rt.so.3
"$folder/venv/bin/python" -c 'import numpy; print("numpy", numpy.__version__)'
bounds() { # THREADS ARGUMENTS: the percentage of elements that are bounds
    local threads=$1
    shift
    LD_LIBRARY_PATH=$folder/venv/lib OPENBLAS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads \
        MKL_DYNAMIC=FALSE "$folder/venv/bin/python" "$folder/bounds.py" "$@" | tail -1
}
one=$(bounds 1 OpenBLAS "$openblas" scipy_ _64_ int64)
two=$(bounds 2 OpenBLAS "$openblas" scipy_ _64_ int64)
other=$(bounds 2 oneMKL "$mkl" '' _ int32)
echo "percentage of elements whose upper bound is above the lower one:"
echo "1 thread: $one; 2 threads: $two; 2 threads: $other"
[ "${one#* }" -ge 99 ] && [ "${two#* }" -ge 30 ] && [ "${two#* }" -le 70 ] && [ "${other#* }" -ge 99 ]
