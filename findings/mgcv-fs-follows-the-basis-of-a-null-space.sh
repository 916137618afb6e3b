#!/bin/bash
# mgcv 1.8-41 (Debian 12's r-cran-mgcv): what gamm() fits with s(x, fac, bs = "fs") depends on the
# orthonormal basis that eigen() gives of the null space of a penalty, which LAPACK leaves open:
# each of its vectors has a penalty of its own. With another basis of that space the intercept of a
# model of 500 rows moves from 7.6 to 6.4, by six of its standard errors; OpenBLAS's kernels for
# another processor (OPENBLAS_CORETYPE=Sandybridge) give 7.2. Signs of vectors change nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(
    cd "$folder"
    apt-get -q -o APT::Sandbox::User=root download r-cran-mgcv=1.8-41-1
    dpkg -x r-cran-mgcv_*.deb .
)
cat >"$folder/fits.R" <<'R'
library(mgcv, lib.loc = commandArgs(TRUE)[1])
first <- base::eigen
change <- identity
unlockBinding("eigen", baseenv())
assign("eigen", function(x, symmetric, only.values = FALSE, EISPACK = FALSE) {
    r <- if (missing(symmetric)) first(x, only.values = only.values) else first(x, symmetric, only.values)
    if (is.numeric(r$vectors) && isSymmetric(unname(x))) change(r) else r
}, envir = baseenv())
signs <- function(r) { r$vectors <- -r$vectors; r }
rotated <- function(r) {
    null <- which(abs(r$values) < 1e-10 * max(abs(r$values)))
    if (length(null) > 1) {
        turn <- qr.Q(qr(outer(seq_along(null), seq_along(null), function(i, j) cos(i * j))))
        r$vectors[, null] <- r$vectors[, null] %*% turn
    }
    r
}
set.seed(0)
n <- 500; nf <- 25
fac <- sample(1:nf, n, replace = TRUE)
x0 <- runif(n); x1 <- runif(n); x2 <- runif(n)
a <- rnorm(nf) * .2 + 2; b <- rnorm(nf) * .5
y <- 2 * sin(pi * x0) + exp(a[fac] * x1) + b[fac] + 0.2 * x2^11 * (10 * (1 - x2))^6 + 10 * (10 * x2)^3 * (1 - x2)^10 + rnorm(n) * 2
fac <- factor(fac)
found <- sapply(list(plain = identity, signs = signs, rotated = rotated), function(how) {
    change <<- how
    s <- summary(gamm(y ~ s(x0) + s(x1, fac, bs = "fs", k = 5) + s(x2, k = 20))$gam)
    s$p.table[1, 1:2]
})
cat("mgcv", as.character(packageVersion("mgcv", lib.loc = commandArgs(TRUE)[1])), "\n")
print(found, digits = 4)
moved <- abs(found["Estimate", ] - found["Estimate", "plain"]) / found["Std. Error", "plain"]
stopifnot(moved["signs"] < 1e-3, moved["rotated"] > 3)
R
OPENBLAS_NUM_THREADS=1 Rscript --vanilla "$folder/fits.R" "$folder/usr/lib/R/library"
