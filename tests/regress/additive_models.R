# Additive models of mgcv: penalised regression splines, their smoothness chosen by REML.
suppressMessages(library(mgcv))
set.seed(1)
n <- 600
x <- matrix(runif(4 * n), n)
f <- 2 * sin(pi * x[, 1]) + exp(2 * x[, 2]) + 10 * x[, 3]^3 * (1 - x[, 3])
data <- data.frame(y = f + rnorm(n, 0, 0.5), count = rpois(n, exp(f / 6)), a = x[, 1], b = x[, 2], c = x[, 3], d = x[, 4])
show <- function(name, values) cat(sprintf("%s %.6g\n", name, values), sep = "")
for (family in list(gaussian(), poisson())) {
    if (family$family == "poisson") data$y <- data$count
    fit <- gam(y ~ s(a, k = 20) + s(b, k = 20) + te(c, d, k = 6), family = family, data = data, method = "REML")
    show("fitted", fitted(fit)[seq(1, n, 11)])
    show("edf", summary(fit)$edf)
    show("score", c(fit$gcv.ubre, deviance(fit), AIC(fit)))
    show("se", predict(fit, data[1:20, ], se.fit = TRUE)$se.fit)
}
