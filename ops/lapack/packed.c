#define _GNU_SOURCE
#include "packed.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory/host_memory.h"

static int64_t size_of(enum accel_dtype dtype)
{
    return (int64_t)accel_dtype_size(dtype);
}

/* ---- Memory ---- */

struct packed_memory packed_take(int64_t bytes, bool untouchable)
{
    struct packed_memory memory = {.bytes = bytes, .untouchable = untouchable};
    if (untouchable) {
        void *const at = mmap(NULL, (size_t)bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory.ptr = at == MAP_FAILED ? NULL : at;
    } else {
        memory.ptr = host_memory_take(bytes);
    }
    return memory;
}

void packed_free(struct packed_memory *memory)
{
    if (memory->ptr && memory->untouchable)
        munmap(memory->ptr, (size_t)memory->bytes);
    else
        free(memory->ptr);
    memory->ptr = NULL;
}

struct matrix packed_at(char *ptr, int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    return (struct matrix){ptr, rows, cols, accel_max(rows, 1), dtype};
}

static char *element(struct matrix x, int64_t row, int64_t col)
{
    return matrix_part(x, row, col, 1, 1).ptr;
}

struct matrix packed_columns(struct matrix x, int64_t col, int64_t cols)
{
    return matrix_part(x, 0, col, x.rows, cols);
}

/* ---- Elements ---- */

double packed_diagonal(struct matrix x, int64_t i)
{
    return load_real(element(x, i, i), x.dtype, 0);
}

void packed_shift_diagonal(struct matrix x, double shift)
{
    for (int64_t i = 0; i < x.cols; i++) {
        char *const at = element(x, i, i);
        store_element(at, x.dtype, 0, load_real(at, x.dtype, 0) + shift);
    }
}

double packed_trace(struct matrix x)
{
    double sum = 0;
    for (int64_t i = 0; i < x.cols; i++)
        sum += packed_diagonal(x, i);
    return sum;
}

/* ---- Passes ---- */

/* Writes one element and its mirror image, both times `factor`. */
static void put_both(struct matrix to, struct matrix from, int64_t row, int64_t col, double factor)
{
    const double complex x = factor * load_element(element(from, row, col), from.dtype, 0);
    store_element(element(to, row, col), to.dtype, 0, x);
    store_element(element(to, col, row), to.dtype, 0, conj(x));
}

/* In blocks: of two matrices, one is read or written across its columns. */
enum { BLOCK = 32 };

static void mirror_block(struct matrix to, struct matrix from, int64_t row, int64_t col,
                         double factor)
{
    const int64_t rows = accel_min(row + BLOCK, from.rows),
                  cols = accel_min(col + BLOCK, from.cols);
    for (int64_t j = col; j < cols; j++)
        for (int64_t i = row == col ? j + 1 : row; i < rows; i++)
            put_both(to, from, i, j, factor);
}

static void mirror_block_of_upper(struct matrix to, struct matrix from, int64_t row, int64_t col,
                                  double factor)
{
    const int64_t rows = accel_min(row + BLOCK, from.rows),
                  cols = accel_min(col + BLOCK, from.cols);
    for (int64_t j = col; j < cols; j++)
        for (int64_t i = row; i < (row == col ? j : rows); i++)
            put_both(to, from, i, j, factor);
}

void packed_mirror(struct matrix to, struct matrix from, char uplo, double shift, double factor)
{
    for (int64_t j = 0; j < from.cols; j += BLOCK)
        for (int64_t i = j; i < from.rows; i += BLOCK) {
            if (uplo == 'L')
                mirror_block(to, from, i, j, factor);
            else
                mirror_block_of_upper(to, from, j, i, factor);
        }
    for (int64_t i = 0; i < from.cols; i++)
        store_element(element(to, i, i), to.dtype, 0, factor * (packed_diagonal(from, i) - shift));
}

/* What `count` real numbers add. */
static void add_norms(struct packed_norms *norms, const char *at, enum accel_dtype dtype,
                      int64_t count)
{
    double square = 0, largest = norms->largest, rest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = load_real(at, dtype, i), size = x < 0 ? -x : x;
        square += x * x;
        largest = size > largest ? size : largest;
        rest += x - x; /* NaN if x is not finite */
    }
    norms->square += square;
    norms->largest = largest;
    norms->finite = norms->finite && rest == 0;
}

struct packed_norms packed_norms_of(struct matrix x, char uplo, double shift)
{
    struct packed_norms beside = {.finite = true}, diagonal = {.finite = true};
    const int parts = parts_of(x.dtype);
    double shifted = 0;
    for (int64_t j = 0; j < x.cols; j++) {
        const int64_t first = uplo == 'L' ? j + 1 : 0, last = uplo == 'L' ? x.rows : j;
        add_norms(&beside, element(x, first, j), x.dtype, (last - first) * parts);
        add_norms(&diagonal, element(x, j, j), x.dtype, 1);
        const double d = packed_diagonal(x, j) - shift;
        shifted += d * d;
    }
    return (struct packed_norms){.square = 2 * beside.square + shifted,
                                 .largest = beside.largest > diagonal.largest ? beside.largest
                                                                              : diagonal.largest,
                                 .finite = beside.finite && diagonal.finite};
}

double packed_square(struct matrix x)
{
    struct packed_norms norms = {.finite = true};
    for (int64_t j = 0; j < x.cols; j++)
        add_norms(&norms, element(x, 0, j), x.dtype, x.rows * parts_of(x.dtype));
    return norms.square;
}

void packed_copy(struct matrix to, struct matrix from)
{
    for (int64_t j = 0; j < from.cols; j++)
        memcpy(element(to, 0, j), element(from, 0, j), (size_t)(from.rows * size_of(from.dtype)));
}

void packed_identity(struct matrix x)
{
    for (int64_t j = 0; j < x.cols; j++) {
        memset(element(x, 0, j), 0, (size_t)(x.rows * size_of(x.dtype)));
        store_real(element(x, j, j), x.dtype, 0, 1);
    }
}

/* Sebastiano Vigna's splitmix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void packed_random(struct matrix x, double most, uint64_t *state)
{
    for (int64_t j = 0; j < x.cols; j++)
        for (int64_t i = 0; i < x.rows * parts_of(x.dtype); i++)
            store_real(element(x, 0, j), x.dtype, i,
                       most * ((double)(next_random(state) >> 11) * 0x1p-52 - 1));
}

void packed_swap_columns(struct matrix x, int64_t i, int64_t j)
{
    char *const a = element(x, 0, i), *const b = element(x, 0, j);
    for (int64_t k = 0; k < x.rows * parts_of(x.dtype); k++) {
        const double kept = load_real(a, x.dtype, k);
        store_real(a, x.dtype, k, load_real(b, x.dtype, k));
        store_real(b, x.dtype, k, kept);
    }
}
