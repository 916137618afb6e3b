#include "exchange.h"

#include <string.h>

#include "base/crew.h"
#include "ops/call.h"

struct exchange {
    char *matrix;
    int64_t rows, cols, size;
    const int64_t *pivots;
    int64_t first, last;
    bool backwards;
};

enum { EXCHANGED_COLUMNS = 16 };

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

static void exchange_item(void *context, int64_t number)
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
    struct crew_job job = {.item = exchange_item, .context = &e};
    const int64_t items = (cols + EXCHANGED_COLUMNS - 1) / EXCHANGED_COLUMNS;
    if (first >= last)
        return;
    crew_begin(&job, rows * cols * size >= 1 << 20);
    for (int64_t done = 0; done < items; done = crew_done(&job)) {
        crew_open(&job, accel_min(items, done + CREW_ITEMS));
        crew_finish(&job, done + 1);
    }
    crew_end(&job);
}
