/* Where a matrix's elements lie. */
#include <string.h>
#include "matrix.h"

size_t element_bytes(enum precision precision)
{
    static const size_t bytes[] = {4, 8, 8, 16};
    return bytes[precision];
}

enum precision precision_of_scalar(enum precision precision, bool real)
{
    if (!real)
        return precision;
    return is_single(precision) ? SINGLE : DOUBLE;
}

bool is_single(enum precision precision)
{
    return precision == SINGLE || precision == COMPLEX;
}

double real_operations(enum precision precision)
{
    return precision == SINGLE || precision == DOUBLE ? 1 : 4;
}

int64_t smallest_size(int64_t m, int64_t n, int64_t k)
{
    const int64_t sizes[] = {m, n, k};
    int64_t smallest = 0;
    for (int i = 0; i < 3; i++)
        if (sizes[i] > 0 && (smallest == 0 || sizes[i] < smallest))
            smallest = sizes[i];
    return smallest;
}

enum part part_of(cublasFillMode_t uplo)
{
    return uplo == CUBLAS_FILL_MODE_LOWER ? LOWER : UPPER;
}

void set_shape(struct matrix *matrix, int64_t rows, int64_t columns, enum part part)
{
    matrix->rows = rows;
    matrix->columns = columns;
    matrix->part = part;
}

void part_of_column(const struct matrix *matrix, int64_t column, int64_t *first, int64_t *end)
{
    *first = matrix->part == LOWER ? column : 0;
    *end = matrix->part == UPPER ? column + 1 : matrix->rows;
}

/* From the first element to the last; a triangle has both, as the whole matrix does. */
size_t matrix_bytes(const struct matrix *matrix)
{
    if (matrix->rows == 0 || matrix->columns == 0)
        return 0;
    return ((size_t)(matrix->columns - 1) * (size_t)matrix->ld + (size_t)matrix->rows) *
           matrix->element;
}

double matrix_elements_bytes(const struct matrix *matrix)
{
    double elements = (double)matrix->rows * (double)matrix->columns;
    if (matrix->part != WHOLE)
        elements = (elements + (double)matrix->rows) / 2;
    return elements * (double)matrix->element;
}

static struct testgpu_place place_of(const struct matrix *matrix)
{
    static const int parts[] = {
        [WHOLE] = TESTGPU_WHOLE, [LOWER] = TESTGPU_LOWER, [UPPER] = TESTGPU_UPPER};
    return (struct testgpu_place){.address = matrix->address,
                                  .pitch = (uint64_t)matrix->ld * matrix->element,
                                  .bytes = (uint64_t)matrix->rows * matrix->element,
                                  .columns = (uint64_t)matrix->columns,
                                  .part = parts[matrix->part],
                                  .element = matrix->element};
}

bool matrices_overlap(const struct matrix *one, const struct matrix *other)
{
    const struct testgpu_place x = place_of(one), y = place_of(other);
    return testgpu_overlap(&x, &y);
}

void touch_matrix(struct testgpu_run *run, const struct matrix *matrix, bool writes)
{
    const struct testgpu_place place = place_of(matrix);
    testgpu_touch(run, &place, writes);
}

void add_one(const struct matrix *matrix, enum precision precision, void *bytes)
{
    int64_t index = matrix->columns / 2 * matrix->ld + matrix->rows / 2;
    char *at = (char *)bytes + (size_t)index * matrix->element;
    float single;
    double twice;
    if (is_single(precision)) {
        memcpy(&single, at, sizeof single);
        single += 1;
        memcpy(at, &single, sizeof single);
    } else {
        memcpy(&twice, at, sizeof twice);
        twice += 1;
        memcpy(at, &twice, sizeof twice);
    }
}
