# R: linear algebra as people call it. Prints what lapack.py reads: norms are largest column sums.
type <- current <- NULL
eps <- .Machine$double.eps

mark <- function(name) {
  current <<- paste0(type, "_", name)
  cat("case ", current, "\n", sep = "", file = stderr())
}
size <- function(x) if (is.matrix(x)) max(colSums(Mod(x))) else max(Mod(x))
residual <- function(difference, ...) {
  unit <- eps * prod(vapply(list(...), size, 0))
  cat(sprintf("residual %s %.17g\n", current, size(difference) / unit))
}
check <- function(good) cat(sprintf("residual %s %g\n", current, if (good) 0 else Inf))
adjoint <- function(x) Conj(t(x))
orthonormal <- function(q) residual(adjoint(q) %*% q - diag(ncol(q)), nrow(q))
near <- function(values, exact) residual(sort(values) - exact, length(exact), exact)

# (I - 2 v v') a: orthogonal, made without LAPACK.
reflected <- function(a, v) a - (2 / sum(Mod(v)^2)) * (v %*% (adjoint(v) %*% a))
dense <- function(a, left, right) {
  for (i in seq_len(ncol(left))) {
    a <- reflected(a, left[, i, drop = FALSE])
    a <- adjoint(reflected(adjoint(a), right[, i, drop = FALSE]))
  }
  a
}
diagonal <- function(values, m, n) {
  a <- matrix(0, m, n)
  diag(a) <- values
  a
}

set.seed(8)
n <- 100
spread <- seq(0.5, 2, length.out = n)  # singular values, or eigenvalues, far from 0
signed <- seq(-1, 2, length.out = n)

for (type in c("float64", "complex128")) {
  real <- type == "float64"
  random <- if (real) function(m, n) matrix(runif(m * n, -1, 1), m)
            else function(m, n) matrix(complex(real = runif(m * n, -1, 1), imaginary = runif(m * n, -1, 1)), m)
  a <- dense(diag(spread), random(n, 2), random(n, 2))
  v <- random(n, 3)
  spd <- dense(diag(spread), v, v)
  spd <- (spd + adjoint(spd)) / 2
  h <- dense(diag(signed), v, v)
  h <- (h + adjoint(h)) / 2
  b <- random(n, 5)

  mark("solve")
  x <- solve(a, b)
  residual(a %*% x - b, a, x, n)
  mark("inverse")
  x <- solve(a)
  residual(a %*% x - diag(n), a, x, n)
  for (shape in list(c(120, 70), c(70, 120))) {
    m <- shape[1]; k <- min(shape)
    g <- random(m, shape[2])
    mark("qr")
    f <- qr(g, LAPACK = TRUE)
    mark("qr_vectors")
    q <- qr.Q(f)
    residual(q %*% qr.R(f) - g[, f$pivot], g, m)
    orthonormal(q)
    c <- random(m, 4)
    mark("qr_products")
    residual(qr.qy(f, qr.qty(f, c + 0)) - c, c, m)
    if (m > shape[2]) {
      mark("qr_coefficients")
      x <- qr.coef(f, c + 0)
      residual(adjoint(g) %*% (g %*% x - c), g, m, max(size(x), size(c)))
    }
    g <- dense(diagonal(spread[1:k], m, shape[2]), random(m, 2), random(shape[2], 2))
    mark("svd")
    s <- svd(g)
    residual(s$u %*% (s$d * adjoint(s$v)) - g, g, m)
    orthonormal(s$u)
    orthonormal(s$v)
    near(s$d, spread[1:k])
    s <- svd(g, nu = m, nv = shape[2])
    orthonormal(s$u)
    orthonormal(s$v)
    mark("svd_values")
    near(svd(g, 0, 0)$d, spread[1:k])
  }
  mark(paste0("eigen_symmetric", if (!real) "_complex"))
  e <- eigen(h, symmetric = TRUE)
  residual(h %*% e$vectors - e$vectors %*% diag(e$values), h, n)
  orthonormal(e$vectors)
  near(e$values, signed)
  mark(paste0("eigen_symmetric_values", if (!real) "_complex"))
  near(eigen(h, symmetric = TRUE, only.values = TRUE)$values, signed)
  g <- random(n, n)
  mark("eigen")
  e <- eigen(g)
  residual(g %*% e$vectors - e$vectors %*% diag(e$values), g, e$vectors, n)
  mark("eigen_values")
  w <- eigen(g, only.values = TRUE)$values
  residual(c(sum(w), sum(w^2)) - c(sum(diag(g)), sum(diag(g %*% g))), n, g, g)
}

type <- "float64"
random <- function(m, n) matrix(runif(m * n, -1, 1), m)
a <- dense(diag(spread), random(n, 2), random(n, 2))
v <- random(n, 3)
spd <- dense(diag(spread), v, v)
spd <- (spd + t(spd)) / 2
mark("det")
residual(determinant(a)$modulus - sum(log(spread)), n, 4)
check(determinant(a)$sign == 1)
mark("chol")
r <- chol(spd)
residual(t(r) %*% r - spd, spd, n)
mark("chol_refused")
check(inherits(try(chol(spd - diag(n)), silent = TRUE), "try-error"))
mark("chol2inv")
x <- chol2inv(chol(spd))
residual(spd %*% x - diag(n), spd, x, n)
mark("chol_pivoting")
r <- chol(spd, pivot = TRUE)
p <- attr(r, "pivot")
residual(t(r) %*% r - spd[p, p], spd, n)
mark("backsolve")
b <- random(n, 5)
x <- backsolve(chol(spd), b)
residual(chol(spd) %*% x - b, chol(spd), x, n)
mark("norm_2")
residual(norm(a, "2") - 2, n, 2)
mark("kappa")
check(kappa(a, exact = TRUE) < 4.001 && rcond(a) > 0)
mark("qr_linpack")
g <- random(120, 70)
f <- qr(g)
residual(qr.Q(f) %*% qr.R(f) - g, g, 120)
mark("lm")
y <- random(120, 1)
x <- as.matrix(coef(lm(y ~ g - 1)))
residual(t(g) %*% (g %*% x - y), g, 120, max(size(x), size(y)))
mark("prcomp")
data <- dense(diagonal(spread[1:40], 90, 40), random(90, 2), random(40, 2))
p <- prcomp(data)
centred <- scale(data, scale = FALSE)
residual(p$x %*% t(p$rotation) - centred, centred, 90)
orthonormal(p$rotation)
mark("cmdscale")
points <- cmdscale(dist(data), k = 40)
residual(as.matrix(dist(points)) - as.matrix(dist(data)), 90, 90, 40)
mark("library")
check(nzchar(La_library()) && nzchar(La_version()))
suppressPackageStartupMessages(library(Matrix))
packed <- function(a) new("dppMatrix", Dim = dim(a), x = a[upper.tri(a, diag = TRUE)], uplo = "U")
mark("packed_solve")
x <- as.matrix(solve(packed(spd), b))
residual(spd %*% x - b, spd, x, n)
mark("packed_inverse")
x <- as.matrix(solve(packed(spd)))
residual(spd %*% x - diag(n), spd, x, n)
mark("packed_condition")
x <- rcond(packed(spd))
check(x > 0.25 / n && x < 0.26)
