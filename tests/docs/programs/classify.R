# The nearest neighbours of half of the irises.
library(class)
half <- seq(1, 150, 2)
print(table(knn(iris[half, 1:4], iris[-half, 1:4], iris$Species[half], k = 5)))
