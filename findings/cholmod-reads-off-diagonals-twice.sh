#!/bin/bash
# CHOLMOD 3.0.14 (Debian 12's libcholmod3, SuiteSparse 5.12) reads symmetric files otherwise than
# its header and cholmod_read.c say:
# - "If 1, a sparse matrix is returned as an unsymmetric cholmod_sparse form (A->stype == 0), with
#   both ... parts present" (prefer of cholmod_read_matrix). A file without a Matrix Market
#   header, of which it infers from the entries that it is symmetric, comes back with stype -1 or
#   1, and each element off the diagonal is twice the file's. With prefer = 2 the elements are
#   right.
# - Of a file whose header says symmetric: "Entries may be present in the upper triangular part,
#   but these are ignored". They are added: a file with both triangles, as is written by mistake,
#   has elements off the diagonal twice (with any prefer), and one of the upper triangle alone has
#   those.
# A matrix with a larger off-diagonal is often still positive definite: chol() does not tell.
# Needs gcc and apt-get of Debian 12.
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
cat > read.c <<'END'
#include <cholmod.h>
#include <stdio.h>
#include <stdlib.h>

/* FILE PREFER: prints the stype, and what the matrix has at (1, 0) and (0, 1). */
int main(int count, char **arguments)
{
    FILE *file = count > 2 ? fopen(arguments[1], "r") : NULL;
    if (!file)
        return 1;
    cholmod_common common;
    cholmod_start(&common);
    int type = 0;
    cholmod_sparse *matrix = cholmod_read_matrix(file, atoi(arguments[2]), &type, &common);
    if (type != CHOLMOD_SPARSE || matrix->xtype != CHOLMOD_REAL)
        return 1;
    double lower = 0, upper = 0;
    const int *start = matrix->p, *row = matrix->i;
    const double *value = matrix->x;
    for (int j = 0; j < 2; j++)
        for (int k = start[j]; k < start[j + 1]; k++)
            if (row[k] != j)
                *(row[k] > j ? &lower : &upper) += value[k];
    if (matrix->stype < 0)
        upper = lower;
    if (matrix->stype > 0)
        lower = upper;
    printf("stype %d, elements %g and %g\n", matrix->stype, lower, upper);
    return 0;
}
END
gcc -Wall read.c -I debian/usr/include/suitesparse -o read "$libraries/libcholmod.so.3" -Wl,--allow-shlib-undefined \
    -Wl,-rpath-link,"$libraries:$libraries/blas:$libraries/lapack"
printf '2 2 3\n1 1 4\n2 1 1\n2 2 4\n' > "lower, no header"
printf '2 2 3\n1 1 4\n1 2 1\n2 2 4\n' > "upper, no header"
header='%%MatrixMarket matrix coordinate real symmetric'
printf '%s\n2 2 3\n1 1 4\n2 1 1\n2 2 4\n' "$header" > "lower, header"
printf '%s\n2 2 3\n1 1 4\n1 2 1\n2 2 4\n' "$header" > "upper, header"
printf '%s\n2 2 4\n1 1 4\n2 1 1\n1 2 1\n2 2 4\n' "$header" > "both, header"
export LD_LIBRARY_PATH=$libraries:$libraries/blas:$libraries/lapack
for file in "lower, no header" "upper, no header" "lower, header" "upper, header" "both, header"; do
    for prefer in 1 2; do
        echo "$file, prefer $prefer: $(./read "$file" $prefer)"
    done
done > said
cat said
diff said - <<'END'
lower, no header, prefer 1: stype -1, elements 2 and 2
lower, no header, prefer 2: stype 1, elements 1 and 1
upper, no header, prefer 1: stype 1, elements 2 and 2
upper, no header, prefer 2: stype 1, elements 1 and 1
lower, header, prefer 1: stype 0, elements 1 and 1
lower, header, prefer 2: stype 1, elements 1 and 1
upper, header, prefer 1: stype 0, elements 1 and 1
upper, header, prefer 2: stype 1, elements 1 and 1
both, header, prefer 1: stype 0, elements 2 and 2
both, header, prefer 2: stype 1, elements 2 and 2
END
