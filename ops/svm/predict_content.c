/* What support vectors contain, as a digest of 128 bits: XXH3 of all indices and values, which the
 * copy pool reads in parts. */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/thread/copy_pool.h"
#include "predict.h"

/* A part is so large that a thread is busy with it for longer than it takes to call one; less is
 * not worth a call. */
enum { PART_BYTES = 128 << 10, HELPED_BYTES = 512 << 10 };

enum { PACKED = 64 };

struct content_part {
    XXH128_hash_t digest;
    int64_t stored;
    int last;        /* the highest index */
    bool zero, none; /* an index is 0; a pointer is none */
};

struct content_reading {
    const struct svm_view *view;
    int64_t rows; /* of a part */
    struct content_part *parts;
    int64_t count;
};

/* Nodes without their padding, where a program leaves anything. A vector ends with index -1 and
 * value 0. */
struct packed_nodes {
    double value[PACKED];
    int index[PACKED];
    int count;
};

/* Returns the new count, 0. */
static int digest_packed(XXH3_state_t *state, const struct packed_nodes *packed, int count)
{
    XXH3_128bits_update(state, packed->value, (size_t)count * sizeof *packed->value);
    XXH3_128bits_update(state, packed->index, (size_t)count * sizeof *packed->index);
    return 0;
}

/* Returns the new count. */
static inline int pack(XXH3_state_t *state, struct packed_nodes *packed, int count, int index,
                       double value)
{
    packed->index[count] = index;
    packed->value[count] = value;
    return ++count < PACKED ? count : digest_packed(state, packed, count);
}

static void read_nodes(XXH3_state_t *state, struct packed_nodes *packed,
                       const struct libsvm_node *row, struct content_part *part)
{
    const struct libsvm_node *node = row;
    int count = packed->count;
    if (!row) {
        part->none = true;
        return;
    }
    for (; node->index != -1; node++)
        count = pack(state, packed, count, node->index, node->value);
    packed->count = pack(state, packed, count, -1, 0);
    if (node == row)
        return;
    part->stored += node - row;
    part->zero = part->zero || row[0].index == 0;
    part->last = node[-1].index > part->last ? node[-1].index : part->last;
}

static void read_dense(XXH3_state_t *state, const struct sklearn_node *row, int features,
                       struct content_part *part)
{
    if (!row->values || row->features != features) {
        part->none = true;
        return;
    }
    part->stored += features;
    XXH3_128bits_update(state, row->values, (size_t)features * sizeof *row->values);
}

static void read_part(void *context, int64_t number)
{
    const struct content_reading *reading = context;
    const struct svm_view *view = reading->view;
    const int64_t first = number * reading->rows,
                  end = accel_min(first + reading->rows, view->vectors);
    struct content_part part = {.last = 0};
    struct packed_nodes packed;
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    packed.count = 0;
    for (int64_t i = first; i < end; i++)
        if (view->dense)
            read_dense(&state, &view->dense[i], view->dense[0].features, &part);
        else
            read_nodes(&state, &packed, view->nodes[i], &part);
    digest_packed(&state, &packed, packed.count);
    part.digest = XXH3_128bits_digest(&state);
    reading->parts[number] = part;
}

static void read_all(struct content_reading *reading, double bytes)
{
    struct copy_pool_job job = {.task = read_part, .context = reading};
    copy_pool_begin(&job, reading->count > 1 && bytes >= HELPED_BYTES);
    for (int64_t done = 0; done < reading->count; done = copy_pool_done(&job)) {
        copy_pool_open(&job, accel_min(reading->count, done + COPY_POOL_TASKS));
        copy_pool_finish(&job, done + 1);
    }
    copy_pool_end(&job);
}

/* Puts the parts together. The rows of a part depend on what the first call saw of the model, so
 * they count, too. */
static bool join(const struct content_reading *reading, struct svm_content *content)
{
    const struct svm_view *view = reading->view;
    const int64_t shape[] = {view->vectors, view->dense ? view->dense[0].features : 0,
                             reading->rows};
    int last = 0;
    bool zero = false, none = false;
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, shape, sizeof shape);
    content->size = (struct libsvm_size){0};
    for (int64_t i = 0; i < reading->count; i++) {
        const struct content_part *part = &reading->parts[i];
        XXH3_128bits_update(&state, &part->digest, sizeof part->digest);
        content->size.stored += part->stored;
        last = part->last > last ? part->last : last;
        zero = zero || part->zero;
        none = none || part->none;
    }
    const XXH128_hash_t digest = XXH3_128bits_digest(&state);
    content->key = (struct gpu_key){{digest.low64, digest.high64}};
    content->size.base = !zero && !view->dense;
    content->size.features = view->dense ? view->dense[0].features : last + INT64_C(1) - !zero;
    return !none;
}

enum gpu_status svm_content_of(const struct svm_view *view, double length,
                               struct svm_content *content)
{
    const double bytes = 1 + length * (view->dense ? sizeof(double) : sizeof(struct libsvm_node));
    struct content_reading reading = {
        .view = view, .rows = bytes < PART_BYTES ? (int64_t)(PART_BYTES / bytes) : 1};
    reading.count = (view->vectors + reading.rows - 1) / reading.rows;
    reading.parts = malloc((size_t)reading.count * sizeof *reading.parts);
    if (!reading.parts)
        return GPU_NO_MEMORY;
    read_all(&reading, bytes * view->vectors);
    const bool read = join(&reading, content);
    content->length = length;
    free(reading.parts);
    return read ? GPU_OK : GPU_UNSUPPORTED;
}
