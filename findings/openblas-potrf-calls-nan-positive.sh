#!/bin/bash
# OpenBLAS's dpotrf answers INFO = 0 for a matrix with NaN, and its factor is NaN: 0.3.21 (Debian
# 12's libopenblas0-pthread) and 0.3.34.481 (PyPI's scipy-openblas32 0.3.34.481.3), all orders. The
# reference LAPACK 3.11.0 asks each pivot for NaN (DISNAN in dpotrf2) and answers with its column.
# CHOLMOD 3.0.14 (SuiteSparse 5.12) relies on it: with the reference its supernodal factorisation
# ends in CHOLMOD_NOT_POSDEF at that column, with OpenBLAS in CHOLMOD_OK, minor = n. Its simplicial
# one calls no LAPACK, and lets NaN pass with either. So whether CHOLMOD reports NaN follows from
# the library behind liblapack.so.3 and from the density, by which CHOLMOD chooses between the two.
# Needs gcc and apt-get of Debian 12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
suitesparse=1:5.12.0+dfsg-2
apt-get download -q libsuitesparse-dev=$suitesparse libcholmod3=$suitesparse libamd2=$suitesparse libcamd2=$suitesparse \
    libcolamd2=$suitesparse libccolamd2=$suitesparse libsuitesparseconfig5=$suitesparse libmetis5 libopenblas0-pthread=0.3.21+ds-4 \
    liblapack3=3.11.0-2 libblas3=3.11.0-2 libgfortran5 libquadmath0 > apt.log 2>&1 || { cat apt.log; exit 2; }
for package in *.deb; do dpkg -x "$package" debian; done
libraries=$folder/debian/usr/lib/x86_64-linux-gnu
cat > nan.c <<'END'
#include <cholmod.h>
#include <math.h>
#include <stdio.h>
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);

int main(void)
{
    enum { n = 4 };
    double a[n * n];
    for (int i = 0; i < n * n; i++)
        a[i] = i % (n + 1) ? 1 : 4;
    a[n + 1] = NAN;
    int order = n, info = -77;
    dpotrf_("L", &order, a, &order, &info, 1);
    printf("dpotrf: INFO %d\n", info);
    for (int supernodal = 0; supernodal < 2; supernodal++) {
        cholmod_common common;
        cholmod_start(&common);
        common.print = 0;
        common.supernodal = supernodal ? CHOLMOD_SUPERNODAL : CHOLMOD_SIMPLICIAL;
        common.nmethods = 1;
        common.method[0].ordering = CHOLMOD_NATURAL;
        common.postorder = 0;
        cholmod_sparse *matrix = cholmod_speye(n, n, CHOLMOD_REAL, &common);
        matrix->stype = -1;
        ((double *)matrix->x)[1] = NAN;
        cholmod_factor *factor = cholmod_analyze(matrix, &common);
        cholmod_factorize(matrix, factor, &common);
        printf("CHOLMOD, %s: status %d, minor %d of %d\n", supernodal ? "supernodal" : "simplicial", common.status, (int)factor->minor, n);
        cholmod_free_factor(&factor, &common);
        cholmod_free_sparse(&matrix, &common);
        cholmod_finish(&common);
    }
    return 0;
}
END
gcc -w nan.c -I debian/usr/include/suitesparse -o nan "$libraries/libcholmod.so.3" "$libraries/lapack/liblapack.so.3" -Wl,--allow-shlib-undefined \
    -Wl,-rpath-link,"$libraries:$libraries/blas"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check scipy-openblas32==0.3.34.481.3
cat > wheel.py <<'END'
import ctypes, glob
potrf = ctypes.CDLL(glob.glob("venv/lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas*.so")[0]).scipy_dpotrf_
for n in 1, 4, 40, 300:
    a = (ctypes.c_double * (n * n))(*[4.0 if i % (n + 1) == 0 else 0.0 for i in range(n * n)])
    a[(n // 2) * (n + 1)] = float("nan")
    order, info = ctypes.c_int(n), ctypes.c_int(-77)
    potrf(b"L", ctypes.byref(order), a, ctypes.byref(order), ctypes.byref(info), ctypes.c_size_t(1))
    print(f"dpotrf of order {n}: INFO {info.value}")
END
{
    echo "reference LAPACK 3.11.0:"
    LD_LIBRARY_PATH=$libraries/lapack:$libraries/blas:$libraries ./nan
    echo "OpenBLAS 0.3.21:"
    OPENBLAS_NUM_THREADS=1 LD_LIBRARY_PATH=$libraries/openblas-pthread:$libraries ./nan
    echo "OpenBLAS 0.3.34.481:"
    OPENBLAS_NUM_THREADS=1 python3 wheel.py
} > said
cat said
diff said - <<'END'
reference LAPACK 3.11.0:
dpotrf: INFO 2
CHOLMOD, simplicial: status 0, minor 4 of 4
CHOLMOD, supernodal: status 1, minor 1 of 4
OpenBLAS 0.3.21:
dpotrf: INFO 0
CHOLMOD, simplicial: status 0, minor 4 of 4
CHOLMOD, supernodal: status 0, minor 4 of 4
OpenBLAS 0.3.34.481:
dpotrf of order 1: INFO 0
dpotrf of order 4: INFO 0
dpotrf of order 40: INFO 0
dpotrf of order 300: INFO 0
END
