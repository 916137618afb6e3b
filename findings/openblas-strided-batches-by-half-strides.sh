#!/bin/bash
# gemm_batch_strided of OpenBLAS 0.3.34.481 (PyPI's scipy-openblas32 0.3.34.481.3): the complex ones
# take strides as counts of real numbers, so that the second matrix begins in the middle of the
# first one's; and the Fortran names refuse letters in lower case, which BLAS takes. (Ubuntu 26.04's
# 0.3.32 refuses right calls, as for "parameter number 8".)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/batch.py" <<'EOF'
import ctypes, glob, sys
path = glob.glob(sys.argv[1] + "/lib/*/site-packages/scipy_openblas32/lib/libscipy_openblas.so")[0]
library = ctypes.CDLL(path)
def doubles(*values):
    return (ctypes.c_double * len(values))(*values)
# Two products of 1 x 1: (1+2j) (1+0j) and (3+4j) (1+0j).
a, b, c = doubles(1, 2, 3, 4), doubles(1, 0, 1, 0), doubles(0, 0, 0, 0)
library.scipy_cblas_zgemm_batch_strided(102, 111, 111, 1, 1, 1, doubles(1, 0), a, 1, 1, b, 1, 1, doubles(0, 0), c, 1, 1, 2)
print("zgemm", complex(c[0], c[1]), complex(c[2], c[3]))
def number(value):
    return ctypes.byref(ctypes.c_int(value))
def letter(value):
    return ctypes.byref(ctypes.c_char(value))
for flag in b"Nn":
    c = doubles(0, 0)
    library.scipy_dgemm_batch_strided_(letter(flag), letter(flag), number(1), number(1), number(1), doubles(1), doubles(1, 3),
                                       number(1), number(1), doubles(1, 1), number(1), number(1), doubles(0), c, number(1),
                                       number(1), number(2))
    print("dgemm", chr(flag), *c, flush=True)
EOF
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary=:all: scipy-openblas32==0.3.34.481.3
OPENBLAS_NUM_THREADS=1 python3 "$folder/batch.py" "$folder/venv" > "$folder/said"
cat "$folder/said"
! grep -qx "zgemm (1+2j) (3+4j)" "$folder/said" && grep -qx "dgemm N 1.0 3.0" "$folder/said" &&
    grep -qx "dgemm n 0.0 0.0" "$folder/said"
