#include "exchange.h"

#include <string.h>

#include "base/thread/copy_pool.h"
#include "call/call.h"

struct exchange {
    char *matrix;
    int64_t rows, cols, size;
    const int64_t *pivots;
    int64_t first, last;
    bool backwards;
};

enum { EXCHANGED_COLUMNS = 16 };

/* The copy pool helps with matrices from this size on. */
enum { HELPED_BYTES = 1 << 20 };

/* ---- Rows ---- */

static void exchange_two(char *column, int64_t size, int64_t i, int64_t j)
{
    char kept[16], *x = column + i * size, *y = column + j * size;
#define EXCHANGE(bytes)                                                                            \
    case bytes:                                                                                    \
        memcpy(kept, x, bytes);                                                                    \
        memcpy(x, y, bytes);                                                                       \
        memcpy(y, kept, bytes);                                                                    \
        break;
    if (i == j)
        return;
    switch (size) {
        EXCHANGE(4)
        EXCHANGE(8)
        EXCHANGE(16)
    }
#undef EXCHANGE
}

static void exchange_task(void *context, int64_t number)
{
    const struct exchange *e = context;
    const int64_t end = accel_min(e->cols, (number + 1) * EXCHANGED_COLUMNS);
    for (int64_t col = number * EXCHANGED_COLUMNS; col < end; col++) {
        char *column = e->matrix + col * e->rows * e->size;
        for (int64_t i = e->first; i < e->last; i++) {
            const int64_t row = e->backwards ? e->last - 1 - (i - e->first) : i;
            exchange_two(column, e->size, row, e->pivots[row] - 1);
        }
    }
}

void exchange_rows(char *matrix, int64_t rows, int64_t cols, int64_t size, const int64_t *pivots,
                   int64_t first, int64_t last, bool backwards)
{
    struct exchange e = {matrix, rows, cols, size, pivots, first, last, backwards};
    struct copy_pool_job job = {.task = exchange_task, .context = &e};
    const int64_t tasks = (cols + EXCHANGED_COLUMNS - 1) / EXCHANGED_COLUMNS;
    if (first >= last)
        return;
    copy_pool_do(&job, tasks, rows * cols * size >= HELPED_BYTES);
}

/* ---- Columns ---- */

enum { EXCHANGED_BYTES = 16 << 10 }; /* of a column, at a time */

/* Some rows of all columns. */
static void exchange_in_rows(void *context, int64_t number)
{
    const struct exchange *e = context;
    char kept[EXCHANGED_BYTES];
    const int64_t bytes = e->rows * e->size, begin = number * EXCHANGED_BYTES;
    const size_t some = (size_t)accel_min(bytes - begin, EXCHANGED_BYTES);
    for (int64_t j = e->last; j-- > e->first;) {
        char *x = e->matrix + j * bytes + begin,
             *y = e->matrix + (e->pivots[j] - 1) * bytes + begin;
        if (x == y)
            continue;
        memcpy(kept, x, some);
        memcpy(x, y, some);
        memcpy(y, kept, some);
    }
}

void exchange_columns_back(char *matrix, int64_t rows, int64_t cols, int64_t size,
                           const int64_t *pivots)
{
    struct exchange e = {matrix, rows, cols, size, pivots, 0, cols, true};
    struct copy_pool_job job = {.task = exchange_in_rows, .context = &e};
    const int64_t tasks = (rows * size + EXCHANGED_BYTES - 1) / EXCHANGED_BYTES;
    copy_pool_do(&job, tasks, rows * cols * size >= HELPED_BYTES);
}
