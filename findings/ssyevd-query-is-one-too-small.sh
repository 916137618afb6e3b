#!/bin/bash
# The reference LAPACK 3.11 answers a workspace query of SSYEVD in single precision without rounding
# up: of order 3000, 1 + 6 N + 2 N^2 = 18018001 is no float, and WORK(1) is 18018000. A program that
# passes just what it was told gets INFO = -8 (LWORK too small). OpenBLAS 0.3.31, with LAPACK 3.12,
# answers enough. Debian's liblapack3 3.11.0-2 must refuse its own answer; exit status 0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq liblapack3=3.11.0-2 libblas3=3.11.0-2 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check scipy-openblas32==0.3.31.22.1
cat >show.py <<'EOF'
import ctypes as C, sys

blas, lapack, prefix, expected = sys.argv[1:]
if blas:
    C.CDLL(blas, C.RTLD_GLOBAL)
ssyevd = C.CDLL(lapack)[prefix + "ssyevd_"]
I = lambda x: C.byref(C.c_int(x))


def call(n, lwork, liwork):
    """Neither of the two calls below reads the matrix: one asks, one is refused."""
    work, iwork, info = (C.c_float * 2)(), (C.c_int * 2)(), C.c_int(-77)
    ssyevd(b"V", b"L", I(n), None, I(n), None, work, I(lwork), iwork, I(liwork), C.byref(info), C.c_size_t(1), C.c_size_t(1))
    return int(work[0]), iwork[0], info.value


refused = 0
for n in 3000, 4001:
    least = 1 + 6 * n + 2 * n * n
    lwork, liwork, _ = call(n, -1, -1)
    info = call(n, lwork, liwork)[2] if lwork < least else 0
    print(f"  order {n}: the query says {lwork}, the least is {least}: INFO {info}")
    refused += info == -8
sys.exit(refused != int(expected))
EOF
tree=debian/usr/lib/x86_64-linux-gnu
echo "the reference LAPACK 3.11.0-2:"
python3 show.py "$PWD/$tree/blas/libblas.so.3" "$PWD/$tree/lapack/liblapack.so.3" "" 2
echo "OpenBLAS of scipy-openblas32 $(venv/bin/pip show scipy-openblas32 2>/dev/null | sed -n 's/^Version: //p'):"
venv/bin/python show.py "" "$(ls "$PWD"/venv/lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas*.so)" scipy_ 0
