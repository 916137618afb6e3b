#!/bin/bash
# OpenBLAS on x86-64 with AVX-512: sgemm and dgemm with ALPHA = 0 read A and B, which BLAS does not:
# NaN there comes into C. So do its kernels for small matrices, from 0.3.21 (Debian 12) to
# 0.3.34.237 (NumPy 2.5.5's); order 100 is small, 300 is not. 0.3.34.481 does not read them, nor do
# the kernels for CPUs without AVX-512, nor cgemm and zgemm.
set -eu
grep -q avx512 /proc/cpuinfo || {
    echo "this CPU has no AVX-512: there is nothing to see"
    exit 0
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/gemm.py" <<'EOF'
import ctypes, glob, sys
def number(value):
    return ctypes.byref(ctypes.c_int(value))
def letter(value):
    return ctypes.byref(ctypes.c_char(value))
path = glob.glob(sys.argv[1] + "/lib/*/site-packages/scipy_openblas32/lib/libscipy_openblas.so")[0]
library = ctypes.CDLL(path)
for name, part in ("sgemm", ctypes.c_float), ("dgemm", ctypes.c_double):
    for order in 2, 100, 300:
        a, b, c = (part * order**2)(*[float("nan")] * order**2), (part * order**2)(), (part * order**2)()
        getattr(library, f"scipy_{name}_")(letter(b"N"), letter(b"N"), number(order), number(order), number(order),
                                           ctypes.byref(part(0)), a, number(order), b, number(order),
                                           ctypes.byref(part(1)), c, number(order))
        print(name, order, "NaN" if any(x != x for x in c) else "0")
EOF
read_them="sgemm 2 NaN
sgemm 100 NaN
sgemm 300 0
dgemm 2 NaN
dgemm 100 NaN
dgemm 300 0"
for version in 0.3.29.0.0 0.3.34.237.2 0.3.34.481.3; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary=:all: scipy-openblas32==$version
    OPENBLAS_NUM_THREADS=1 python3 "$folder/gemm.py" "$folder/$version" > "$folder/$version.said"
    echo "OpenBLAS $version:"
    cat "$folder/$version.said"
done
[ "$(cat "$folder/0.3.29.0.0.said")" = "$read_them" ] || exit 1
[ "$(cat "$folder/0.3.34.237.2.said")" = "$read_them" ] || exit 1
[ "$(cat "$folder/0.3.34.481.3.said")" = "${read_them//NaN/0}" ]
