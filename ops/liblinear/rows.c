/* Brings the rows of a problem to the device: dense in tiles, or sparse by rows and by columns. */
#include <stdlib.h>
#include <string.h>

#include "loss.h"

/* Threads of a block; elements of a segment, at most; bytes of a tile that the host packs,
 * about. */
enum { THREADS = 256, SEGMENT = 4096, TILE_BYTES = 8 << 20, TILE_ROWS_MOST = 4096 };

static enum gpu_status upload_array(struct linear_rows *x, gpu_address to, const void *from,
                                    int64_t count, int64_t size)
{
    const struct host_rectangle all = host_whole((char *)(uintptr_t)from, count, 1, count, size);
    return count > 0 ? gpu_copies(x->work)->upload(x->work->ctx, (struct dmat){to, count}, &all)
                     : GPU_OK;
}

static enum gpu_status take_and_load(struct linear_rows *x, gpu_address *to, const void *from,
                                     int64_t count, int64_t size)
{
    GPU_TRY(gpu_memory(x->work)->take(x->work, accel_max(1, count) * size, to));
    return upload_array(x, *to, from, count, size);
}

/* ---- Dense ---- */

/* Returns false if a row has two elements for one column: their squares are two, which a dense
 * matrix cannot tell. */
static bool pack_tile(double *tile, struct linear_node *const *nodes, int64_t rows,
                      int64_t tile_rows)
{
    for (int64_t i = 0; i < rows; i++) {
        int before = 0;
        for (const struct linear_node *node = nodes[i]; node->index != -1; node++) {
            if (node->index <= before)
                return false;
            before = node->index;
            tile[(node->index - 1) * tile_rows + i] = node->value;
        }
    }
    return true;
}

/* Returns GPU_UNSUPPORTED if the rows do not ascend. */
static enum gpu_status load_dense(struct linear_rows *x, struct linear_node *const *nodes)
{
    const int64_t tile_bytes = x->tile_rows * x->columns * (int64_t)sizeof(double);
    double *tile = malloc((size_t)tile_bytes);
    enum gpu_status status =
        tile ? gpu_memory(x->work)->take(x->work, x->tile_count * tile_bytes, &x->tiles)
             : GPU_NO_MEMORY;
    for (int64_t i = 0; status == GPU_OK && i < x->tile_count; i++) {
        const int64_t row = i * x->tile_rows;
        memset(tile, 0, (size_t)tile_bytes);
        status = !pack_tile(tile, nodes + row, accel_min(x->tile_rows, x->rows - row), x->tile_rows)
                     ? GPU_UNSUPPORTED
                     : upload_array(x, x->tiles + (gpu_address)(i * tile_bytes), tile,
                                    x->tile_rows * x->columns, sizeof(double));
    }
    free(tile);
    return status;
}

/* ---- Sparse ---- */

struct elements {
    int64_t *first;
    int32_t *place;
    double *value;
};

static bool make_elements(struct elements *e, int64_t segments, int64_t count)
{
    e->first = calloc((size_t)segments + 1, sizeof *e->first);
    e->place = malloc((size_t)(count + 1) * sizeof *e->place);
    e->value = malloc((size_t)(count + 1) * sizeof *e->value);
    return e->first && e->place && e->value;
}

static void free_elements(struct elements *e)
{
    free(e->first);
    free(e->place);
    free(e->value);
}

static void list_rows(struct elements *e, const struct linear_rows *x,
                      struct linear_node *const *nodes)
{
    int64_t at = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        e->first[i] = at;
        for (const struct linear_node *node = nodes[i]; node->index != -1; node++, at++) {
            e->place[at] = node->index - 1;
            e->value[at] = node->value;
        }
    }
    e->first[x->rows] = at;
}

/* first: of each column at first, of each next one at the end; so they are moved up by one. */
static void list_columns(struct elements *e, const struct linear_rows *x, const struct elements *by)
{
    for (int64_t k = 0; k < by->first[x->rows]; k++)
        e->first[by->place[k] + 1]++;
    for (int64_t j = 0; j < x->columns; j++)
        e->first[j + 1] += e->first[j];
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t k = by->first[i]; k < by->first[i + 1]; k++) {
            const int64_t at = e->first[by->place[k]]++;
            e->place[at] = (int32_t)i;
            e->value[at] = by->value[k];
        }
    memmove(e->first + 1, e->first, (size_t)x->columns * sizeof *e->first);
    e->first[0] = 0;
}

/* As many threads for a segment as it has elements, on average. */
static unsigned group_of(const struct linear_rows *x, int64_t elements, int64_t segments)
{
    unsigned group = 1;
    while (group < x->fit.threads && group < 32 && group * segments < elements)
        group *= 2;
    return group;
}

static enum gpu_status load_elements(struct linear_rows *x, struct linear_segments *s,
                                     const struct elements *e, const int64_t *first, int64_t count)
{
    const int64_t elements = first[count];
    s->count = count;
    s->group = group_of(x, elements, count);
    GPU_TRY(take_and_load(x, &s->first, first, count + 1, sizeof *first));
    GPU_TRY(take_and_load(x, &s->place, e->place, elements, sizeof *e->place));
    return take_and_load(x, &s->value, e->value, elements, sizeof *e->value);
}

/* Divides long columns. */
static enum gpu_status load_columns(struct linear_rows *x, const struct elements *e)
{
    int64_t count = 0;
    int64_t *segment_of = malloc((size_t)(x->columns + 1) * sizeof *segment_of);
    for (int64_t j = 0; j < x->columns; j++)
        count += (e->first[j + 1] - e->first[j] + SEGMENT - 1) / SEGMENT;
    int64_t *first = malloc((size_t)(count + 1) * sizeof *first);
    enum gpu_status status = segment_of && first ? GPU_OK : GPU_NO_MEMORY;
    if (status == GPU_OK) {
        count = 0;
        for (int64_t j = 0; j < x->columns; j++) {
            segment_of[j] = count;
            for (int64_t at = e->first[j]; at < e->first[j + 1]; at += SEGMENT)
                first[count++] = at;
        }
        segment_of[x->columns] = count;
        first[count] = e->first[x->columns];
        status = load_elements(x, &x->by_column, e, first, count);
    }
    if (status == GPU_OK)
        status = take_and_load(x, &x->segment_of, segment_of, x->columns + 1, sizeof *segment_of);
    free(segment_of);
    free(first);
    return status;
}

static enum gpu_status load_sparse(struct linear_rows *x, struct linear_node *const *nodes,
                                   int64_t elements)
{
    struct elements rows = {0}, columns = {0};
    enum gpu_status status =
        make_elements(&rows, x->rows, elements) && make_elements(&columns, x->columns, elements)
            ? GPU_OK
            : GPU_NO_MEMORY;
    if (status == GPU_OK) {
        list_rows(&rows, x, nodes);
        list_columns(&columns, x, &rows);
        status = load_elements(x, &x->by_row, &rows, rows.first, x->rows);
    }
    if (status == GPU_OK)
        status = load_columns(x, &columns);
    free_elements(&rows);
    free_elements(&columns);
    return status;
}

enum gpu_status linear_rows_load(struct linear_rows *x, struct gpu_work *work,
                                 struct linear_node *const *nodes, int64_t rows, int64_t columns,
                                 int64_t elements)
{
    const double cells = (double)rows * (double)columns * sizeof(double);
    *x = (struct linear_rows){.work = work, .rows = rows, .columns = columns};
    GPU_TRY(gpu_own(work)->fit(work, "linear_sparse", THREADS, THREADS * (unsigned)sizeof(double),
                               &x->fit));
    x->tile_rows = accel_min(TILE_ROWS_MOST, TILE_BYTES / (int64_t)sizeof(double) / columns);
    x->tile_rows = accel_max(64, accel_min(x->tile_rows, rows) / 64 * 64);
    x->tile_count = (rows + x->tile_rows - 1) / x->tile_rows;
    bool sparse = 3. * (double)elements * sizeof(double) < cells ||
                  cells * 1.1 > (double)gpu_memory(work)->available(work);
    if (!sparse) {
        const enum gpu_status status = load_dense(x, nodes);
        sparse = status == GPU_UNSUPPORTED;
        GPU_TRY(sparse ? gpu_work_give_back(work) : status);
    }
    if (sparse) {
        x->tiles = 0;
        GPU_TRY(load_sparse(x, nodes, elements));
    }
    const int64_t partial = sparse ? x->by_column.count : x->tile_count * columns;
    return gpu_memory(work)->take(
        work, accel_max(partial, LINEAR_BLOCKS_MOST) * (int64_t)sizeof(double), &x->partial);
}
