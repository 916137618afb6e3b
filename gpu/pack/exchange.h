/*
 * Exchanges of rows or columns of a matrix in host memory, as those of LU with pivots. Knows
 * nothing of devices.
 */
#ifndef ACCEL_EXCHANGE_H
#define ACCEL_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Exchanges rows of a packed matrix of elements of `size` bytes: each of first .. last - 1, from 0,
 * with row pivots[] - 1, in this order or backwards. The copy pool helps. */
void exchange_rows(char *matrix, int64_t rows, int64_t cols, int64_t size, const int64_t *pivots,
                   int64_t first, int64_t last, bool backwards);

/* Exchanges columns of such a matrix: each with column pivots[] - 1, from the last one on
 * backwards. */
void exchange_columns_back(char *matrix, int64_t rows, int64_t cols, int64_t size,
                           const int64_t *pivots);

#endif
