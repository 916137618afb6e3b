#!/bin/bash
# LAPACK's documentation says of WORK(1) "On exit, if INFO = 0, WORK(1) returns the optimal LWORK",
# and a query (LWORK = -1) returns the optimal LWORK, too. The two differ, in the reference LAPACK
# 3.11 (Debian's liblapack3 3.11.0-2) and in OpenBLAS 0.3.31 (PyPI's scipy-openblas32):
#   dgeqrf, dorgqr of at most 128 reflectors, dgetri of order 64 at most: N on exit, 32 N or 64 N
#   by the query. A program that grows its workspace by what it finds there stays at the least.
#   dsygvd without vectors: 34 N on exit, 2 N + 1 by the query: the query is the worse answer.
# Both libraries must show it; exit status 0.
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

blas, lapack, prefix = sys.argv[1:]
if blas:
    C.CDLL(blas, C.RTLD_GLOBAL)
library = C.CDLL(lapack)
N = 60
I = lambda x: C.byref(C.c_int(x))


def matrix():
    a = (C.c_double * (N * N))()
    for i in range(N):
        for j in range(N):
            a[i + j * N] = N + i if i == j else 1 / (1 + i + j)
    return a


a, b, tau, w = matrix(), matrix(), (C.c_double * N)(), (C.c_double * N)()
pivots, iwork = (C.c_int * N)(), (C.c_int * (10 * N))()
calls = {  # name -> arguments before the workspace; after it; a least length
    "dgeqrf": ([I(N), I(N), a, I(N), tau], [], N),
    "dorgqr": ([I(N), I(N), I(N), a, I(N), tau], [], N),
    "dgetri": ([I(N), a, I(N), pivots], [], N),
    "dsygvd": ([I(1), b"N", b"L", I(N), b, I(N), a, I(N), w], [iwork, 10 * N], 2 * N + 1),
}
differ = 0
for name, (before, more, least) in calls.items():
    if name == "dgetri":
        a[:] = matrix()
        info = C.c_int()
        library[prefix + "dgetrf_"](I(N), I(N), a, I(N), pivots, C.byref(info))
    if name == "dsygvd":
        a[:] = matrix()
    said = []
    for length in -1, 100 * N:
        work, info = (C.c_double * (100 * N))(), C.c_int(-77)
        after = [more[0], I(-1 if length < 0 else more[1])] if more else []
        ends = [C.c_size_t(1)] * 2 if more else []
        library[prefix + name + "_"](*before, work, I(length), *after, C.byref(info), *ends)
        assert info.value == 0, (name, info.value)
        said.append(int(work[0]))
    print(f"  {name} of order {N}: WORK(1) by a query {said[0]}, on exit {said[1]}, the least is {least}")
    differ += said[0] != said[1] and min(said) == least
sys.exit(differ != len(calls))
EOF
tree=debian/usr/lib/x86_64-linux-gnu
echo "the reference LAPACK 3.11.0-2:"
python3 show.py "$PWD/$tree/blas/libblas.so.3" "$PWD/$tree/lapack/liblapack.so.3" ""
echo "OpenBLAS of scipy-openblas32 $(venv/bin/pip show scipy-openblas32 2>/dev/null | sed -n 's/^Version: //p'):"
venv/bin/python show.py "" "$(ls "$PWD"/venv/lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas*.so)" scipy_
