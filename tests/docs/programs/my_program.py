"""Anybody's program: it multiplies, prints and writes a file."""

import numpy

matrix = numpy.linspace(0, 1, 200 * 200).reshape(200, 200)
product = matrix @ matrix.T
numpy.save("result.npy", product)
print(product[0, 0], product.sum())
