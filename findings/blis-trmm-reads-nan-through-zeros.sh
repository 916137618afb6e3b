#!/bin/bash
# BLIS 0.9.0 (Debian 12's libblis4-pthread): dtrmm multiplies with the zeros of the triangle that is
# not stored, within a block of the diagonal. B := A B with an upper triangular A of order 300: a
# NaN in row 3 of B makes row 6 of the result NaN, though row 6 is A(6,6:) B(6:) and never sees row
# 3; row 298, farther from the diagonal, stays a number. The reference BLAS of the same Debian
# leaves both alone, at order 8, too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q libblis4-pthread=0.9.0-1 libblas3=3.11.0-2 > apt.log 2>&1 || { cat apt.log; exit 2; }
for package in *.deb; do
    dpkg -x "$package" "${package%%_*}"
done
cat > trmm.py <<'EOF'
import ctypes, math, sys
dtrmm = ctypes.CDLL(sys.argv[1]).dtrmm_
for n in (8, 300):
    a, b = (ctypes.c_double * (n * n))(), (ctypes.c_double * (n * 4))(*[1] * (n * 4))
    for col in range(n):
        for row in range(col + 1):
            a[row + col * n] = 1
    b[3] = math.nan
    order, columns, one = ctypes.c_int(n), ctypes.c_int(4), ctypes.c_double(1)
    dtrmm(b"L", b"U", b"N", b"N", ctypes.byref(order), ctypes.byref(columns), ctypes.byref(one), a,
          ctypes.byref(order), b, ctypes.byref(order), *[ctypes.c_size_t(1)] * 4)
    kinds = ["nan" if math.isnan(b[row]) else "number" for row in (6, n - 2)]
    print(f"{n}:{','.join(kinds)}", end=" ")
EOF
libraries=usr/lib/x86_64-linux-gnu
blis=$(LD_LIBRARY_PATH=libblis4-pthread/$libraries/blis-pthread python3 trmm.py libblis4-pthread/$libraries/blis-pthread/libblas.so.3)
reference=$(python3 trmm.py libblas3/$libraries/blas/libblas.so.3)
echo "rows 6 and n - 2, by order: BLIS 0.9.0 ${blis}, reference BLAS 3.11.0 ${reference}"
[ "$blis" = "8:nan,nan 300:nan,number " ] && [ "$reference" = "8:number,number 300:number,number " ]
