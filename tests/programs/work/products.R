# R: the matrix product, real and complex.
out <- commandArgs(trailingOnly = TRUE)[1]

report <- function(name, a, b) {
  path <- file.path(out, name)
  con <- file(path, "wb")
  value <- a %*% b
  writeBin(as.vector(value), con)
  close(con)
  scale <- ncol(a) * max(Mod(a)) * max(Mod(b))
  type <- if (is.complex(value)) "complex128" else "float64"
  cat(sprintf("result %s %s %.17g %s\n", name, type, scale, tools::md5sum(path)))
}

set.seed(5)
real <- function(m, n) matrix(runif(m * n, -1, 1), m)
cplx <- function(m, n) matrix(complex(real = runif(m * n, -1, 1), imaginary = runif(m * n, -1, 1)), m)

report("plain", real(207, 163), real(163, 193))
report("transposed", t(real(161, 209)), real(161, 195))
report("complex", cplx(208, 164), cplx(164, 194))
