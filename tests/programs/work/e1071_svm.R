# Trains R's e1071 on classes and on a target; prints what both models are, and how they predict.
library(e1071)
set.seed(1)
x <- matrix(rnorm(150 * 6), 150)
y <- factor(x[, 1] + x[, 2] + rnorm(150) / 3 > 0)
m <- svm(x, y)
cat("classes", m$nSV, sum(predict(m, x) == y), round(m$rho, 3), "\n")
m <- svm(x, x[, 1]^2, type = "eps-regression", kernel = "polynomial", degree = 2)
cat("target", round(m$rho, 3), round(mean((predict(m, x) - x[, 1]^2)^2), 3), "\n")
