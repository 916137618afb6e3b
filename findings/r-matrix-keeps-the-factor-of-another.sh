#!/bin/bash
# R's Matrix 1.5-3 (Debian 12's r-cran-matrix 1.5-3-1): solve(A, b) keeps CHOLMOD's factor (or the
# LU of a general matrix) in A, and sqrt(A), expm1(A), sin(A), round(A) and other functions that map
# 0 to 0 copy it into their result. So solve(sqrt(A), b) after solve(A, b) is the solution of A, to
# the last bit, and of sqrt(A) before it; chol() too. No message. 2 * A and A[1, 1] <- 9 drop the
# factor. Of a dense symmetric matrix round() keeps it, sqrt() does not. The number of
# factorisations that a shim sees depends on this cache; it cannot tell that one is missing.
# Needs R with its Matrix 1.5-3, and apt-get of Debian 12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q r-cran-matrix=1.5-3-1 > apt.log 2>&1 || { cat apt.log; exit 2; }
dpkg -x r-cran-matrix_*.deb debian
cat > cache.R <<'END'
suppressMessages(library(Matrix, lib.loc = "debian/usr/lib/R/library"))
cat("Matrix", format(packageVersion("Matrix", "debian/usr/lib/R/library")), "\n")
b <- c(1, 2, 3)
sparse <- function() sparseMatrix(i = c(1, 2, 2, 3, 3), j = c(1, 1, 2, 2, 3), x = c(4, 1, 5, 1, 6) / 4, symmetric = TRUE)
general <- function() as(sparse(), "generalMatrix")
dense <- function() as(sparse(), "unpackedMatrix")
# What solve(f(A), b) is the solution of, after solve(A, b)
solves <- function(make, f) {
    A <- make()
    of_A <- as.vector(solve(A, b))
    of_f <- as.vector(solve(as(f(make()), "matrix"), b))
    x <- as.vector(solve(f(A), b))
    if (identical(x, of_A)) "A" else if (isTRUE(all.equal(x, of_f))) "f(A)" else "neither"
}
double <- function(A) 2 * A
assigned <- function(A) { A[1, 1] <- 9; A }
for (name in c("sqrt", "expm1", "sin", "round", "double", "assigned"))
    cat(sprintf("%-8s sparse symmetric: of %s, sparse general: of %s, dense symmetric: of %s\n", name,
                solves(sparse, get(name)), solves(general, get(name)), solves(dense, get(name))))
A <- sparse()
invisible(solve(A, b))
S <- sqrt(A)
cat("S <- sqrt(A); S %*% solve(S, b):", format(as.vector(S %*% solve(S, b)), digits = 4), "\n")
END
R --vanilla --slave -f cache.R > said
cat said
diff said - <<'END'
Matrix 1.5.3 
sqrt     sparse symmetric: of A, sparse general: of A, dense symmetric: of f(A)
expm1    sparse symmetric: of A, sparse general: of A, dense symmetric: of f(A)
sin      sparse symmetric: of A, sparse general: of A, dense symmetric: of f(A)
round    sparse symmetric: of A, sparse general: of A, dense symmetric: of A
double   sparse symmetric: of f(A), sparse general: of f(A), dense symmetric: of f(A)
assigned sparse symmetric: of f(A), sparse general: of f(A), dense symmetric: of f(A)
S <- sqrt(A); S %*% solve(S, b): 1.273 2.492 2.772 
END
