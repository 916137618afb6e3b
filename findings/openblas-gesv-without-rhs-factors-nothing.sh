#!/bin/bash
# OpenBLAS 0.3.21 (Debian 12's libopenblas0-pthread): dgesv with NRHS = 0 returns INFO = 0 and has
# done nothing: A is not its factors, IPIV is as it was. LAPACK 3.11.0 of the same Debian factors A
# all the same, as the documentation of A and IPIV promises ("On exit, the factors L and U"), so
# that a program may call dgetrs later. dgetrf of the same OpenBLAS factors that matrix.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q libopenblas0-pthread=0.3.21+ds-4 liblapack3=3.11.0-2 libblas3=3.11.0-2 libgfortran5 libquadmath0 > apt.log 2>&1 || { cat apt.log; exit 2; }
mkdir all
for package in *.deb; do
    dpkg -x "$package" all/"${package%%_*}"
done
cat > gesv.py <<'EOF'
import ctypes, sys
lapack, n = ctypes.CDLL(sys.argv[1]), 3
def factor(name, *rhs):
    a = (ctypes.c_double * 9)(1, 2, 4, 3, 8, 5, 7, 6, 9)
    before, ipiv, info = list(a), (ctypes.c_int * n)(*[-7] * n), ctypes.c_int(-7)
    b, order, columns = (ctypes.c_double * 3)(), ctypes.c_int(n), ctypes.c_int(0)
    if name == "dgesv_":
        lapack.dgesv_(ctypes.byref(order), ctypes.byref(columns), a, ctypes.byref(order), ipiv, b, ctypes.byref(order), ctypes.byref(info))
    else:
        lapack.dgetrf_(ctypes.byref(order), ctypes.byref(order), a, ctypes.byref(order), ipiv, ctypes.byref(info))
    return f"{name[:-1]} info={info.value} A {'as it was' if list(a) == before else 'factored'} ipiv={','.join(map(str, ipiv))}"
print(factor("dgesv_"), "|", factor("dgetrf_"))
EOF
libraries=usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=all/libgfortran5/$libraries:all/libquadmath0/$libraries:all/libopenblas0-pthread/$libraries/openblas-pthread
openblas=$(OPENBLAS_NUM_THREADS=1 python3 gesv.py all/libopenblas0-pthread/$libraries/openblas-pthread/liblapack.so.3)
export LD_LIBRARY_PATH=all/libgfortran5/$libraries:all/libquadmath0/$libraries:all/libblas3/$libraries/blas
reference=$(python3 gesv.py all/liblapack3/$libraries/lapack/liblapack.so.3)
echo "NRHS = 0: OpenBLAS 0.3.21: $openblas"
echo "NRHS = 0: LAPACK 3.11.0: $reference"
[ "$openblas" = "dgesv info=0 A as it was ipiv=-7,-7,-7 | dgetrf info=0 A factored ipiv=3,2,3" ] || exit 1
[ "$reference" = "dgesv info=0 A factored ipiv=3,2,3 | dgetrf info=0 A factored ipiv=3,2,3" ]
