#!/bin/bash
# A Matrix Market file whose values are written in Fortran's D format (0.150D+3 is 150) is read as
# if the exponents were not there, 0.15, by SciPy 1.17.1's mmread and by CHOLMOD 3.0.14's
# cholmod_read_sparse (SuiteSparse 5.12), without a message: both stop at the D, and go on with the
# next line. SciPy 1.11.4 raises ValueError, and gfortran's READ, by which Fortran programs read
# such files, gives 150. Two solvers that are compared on one file then agree with each other, with
# small residuals, on a matrix of the same pattern that is not the file's.
# Needs gcc, gfortran and apt-get of Debian 12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
suitesparse=1:5.12.0+dfsg-2
apt-get download -q libsuitesparse-dev=$suitesparse libcholmod3=$suitesparse libamd2=$suitesparse libcamd2=$suitesparse \
    libcolamd2=$suitesparse libccolamd2=$suitesparse libsuitesparseconfig5=$suitesparse libmetis5 liblapack3=3.11.0-2 libblas3=3.11.0-2 \
    libgfortran5 libquadmath0 > apt.log 2>&1 || { cat apt.log; exit 2; }
for package in *.deb; do dpkg -x "$package" debian; done
libraries=$folder/debian/usr/lib/x86_64-linux-gnu
cat > write.f90 <<'END'
program write
    print '(a)', '%%MatrixMarket matrix coordinate real general', '2 2 2'
    print '(2(i0, 1x), d0.3)', 1, 1, 150d0, 2, 2, 2.5d-3
end program
END
cat > read.f90 <<'END'
program read
    character(80) line
    integer i, j
    double precision x(2)
    read *, line
    read *, line
    read *, i, j, x(1)
    read *, i, j, x(2)
    print '(a, f0.4, a, f6.4)', 'gfortran: ', x(1), ' ', x(2)
end program
END
cat > cholmod.c <<'END'
#include <cholmod.h>
#include <stdio.h>

int main(void)
{
    cholmod_common common;
    cholmod_start(&common);
    cholmod_sparse *matrix = cholmod_read_sparse(stdin, &common);
    const double *x = matrix->x;
    printf("CHOLMOD: %g %g, status %d\n", x[0], x[1], common.status);
    cholmod_free_sparse(&matrix, &common);
    return !cholmod_finish(&common);
}
END
cat > scipy_reads.py <<'END'
import scipy
from scipy.io import mmread

try:
    said = mmread("by-fortran.mtx").diagonal().tolist()
except ValueError as error:
    said = f"ValueError: {error}"
print(f"SciPy {scipy.__version__}:", said)
END
gfortran write.f90 -o write
gfortran read.f90 -o read
gcc -Wall cholmod.c -I debian/usr/include/suitesparse -o cholmod "$libraries/libcholmod.so.3" -Wl,--allow-shlib-undefined \
    -Wl,-rpath-link,"$libraries:$libraries/blas:$libraries/lapack"
for version in 1.11.4:1.26.4 1.17.1:2.4.6; do
    python3 -m venv "${version%:*}"
    "${version%:*}/bin/pip" install -q --disable-pip-version-check --no-cache-dir --only-binary=:all: scipy=="${version%:*}" numpy=="${version#*:}"
done
./write > by-fortran.mtx
cat by-fortran.mtx
{
    ./read < by-fortran.mtx
    LD_LIBRARY_PATH=$libraries:$libraries/blas:$libraries/lapack ./cholmod < by-fortran.mtx
    1.11.4/bin/python scipy_reads.py
    1.17.1/bin/python scipy_reads.py
} > said
cat said
diff said - <<'END'
gfortran: 150.0000 0.0025
CHOLMOD: 0.15 0.25, status 0
SciPy 1.11.4: ValueError: could not convert string to float: b'0.150D+3'
SciPy 1.17.1: [0.15, 0.25]
END
