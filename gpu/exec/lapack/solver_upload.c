#include "solver_parts.h"

#include <stdlib.h>
#include <string.h>

#include "call/shape.h"
#include "gpu/pack/chunks.h"
#include "gpu/pack/packer.h"

struct host_rectangle solver_rectangle(const struct accel_span *x)
{
    if (x->inc)
        return host_whole(x->ptr, x->cols, 1, x->cols, gpu_size_of(x));
    return host_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
}

/* Returns where the host can read an operand, and its leading dimension there: in place, or in a
 * packed copy, which the caller frees. */
static char *read_on_host(struct solver *s, const struct accel_span *x, int64_t *ld, void **copy)
{
    const struct host_rectangle there = solver_rectangle(x);
    struct packer *packer = packer_of(s->work->host->packer, x->ptr);
    *copy = NULL;
    *ld = there.ld;
    if (x->place == ACCEL_HOST && !packer)
        return there.host;
    *ld = there.rows;
    *copy = malloc((size_t)accel_bytes(x) + 1);
    if (!*copy)
        solver_note(s, GPU_NO_MEMORY);
    else if (packer && !packer_read(packer, &there, *copy))
        solver_note(s, GPU_UNSUPPORTED);
    else if (!packer && !gpu_fetch(s->work->device, *copy, x))
        solver_note(s, GPU_ERROR);
    return *copy;
}

/* ---- Whole operands ---- */

/* Copies an input that is cached on the device: the steps overwrite theirs. */
static void copy_cached(struct solver *s, struct array to, const struct accel_span *x,
                        gpu_address cached)
{
    const int64_t bytes = accel_bytes(x);
    if (!solver_note(s,
                     gpu_copies(s->work)->copy(s->work->ctx, to.at, (struct dmat){cached, to.at.ld},
                                               x->rows, x->cols, solver_element(to))))
        return;
    gpu_work_event(s->work, GPU_EVENT_CACHED, x, x->rows, x->cols, bytes);
}

/* An input's copy for later calls leaves the call this many times its memory, at least. */
enum { CACHE_ROOM = 4 };

/* Takes a copy of an input that has gone up, before the steps overwrite it. Without room it is not
 * cached. */
static void copy_to_cache(struct solver *s, struct array from, const struct cached_operand *r)
{
    const int64_t bytes = from.at.ld * from.cols * solver_element(from);
    struct cached_copy copy = {0, *r};
    if (s->cached_copies == ACCEL_SPANS || s->work->blocks > WORK_BLOCKS / 2 ||
        gpu_memory(s->work)->available(s->work) / CACHE_ROOM < bytes ||
        gpu_memory(s->work)->take(s->work, bytes, &copy.memory) != GPU_OK)
        return;
    const enum gpu_status status =
        gpu_copies(s->work)->copy(s->work->ctx, (struct dmat){copy.memory, from.at.ld}, from.at,
                                  from.rows, from.cols, solver_element(from));
    if (status != GPU_UNSUPPORTED && solver_note(s, status))
        s->cached_copy[s->cached_copies++] = copy;
}

/* Uploads to the first columns of an array, which has as many rows as `from`; or finds the operand
 * on the device. only_to_cache, and what it returns: see solver_bring(). */
static bool upload_columns(struct solver *s, struct array to, const struct accel_span *x,
                           struct host_rectangle from, bool only_to_cache)
{
    struct gpu_scan scan = gpu_scan_begin(accel_is_double(s->dtype));
    gpu_address cached = 0;
    bool leaves = false;
    void *copy;
    if (!solver_is_well(s) || from.rows == 0 || from.cols == 0)
        return true;
    copy = NULL;
    if (!packer_of(s->work->host->packer, x->ptr))
        from.host = read_on_host(s, x, &from.ld, &copy);
    from.name = x->name;
    from.scan = &scan;
    from.trimmed = from.uplo && chunks_trim(from.rows, from.cols, from.size);
    struct cached_operand r = {.here = false};
    if (solver_is_well(s)) {
        if (to.at.ld == gpu_device_ld(x->rows, x->dtype)) /* not a part of another array */
            r = device_cache_look_at(s->work, x, &from, &cached);
        leaves = only_to_cache && !r.here && !r.digests;
    }
    if (solver_is_well(s) && !leaves) {
        from.digest = r.digests ? &r.key : NULL;
        if (r.here)
            copy_cached(s, to, x, cached);
        else if (solver_note(s, gpu_work_upload(s->work, to.at, &from)))
            gpu_work_event(s->work, GPU_EVENT_H2D, x, from.rows, from.cols,
                           chunks_matrix_sent(&from, to.at.ld));
        if (solver_is_well(s) && r.digests)
            copy_to_cache(s, to, &r);
        s->largest = scan.largest > s->largest ? scan.largest : s->largest;
        /* LAPACK's answers to NaNs are its own: when an iteration ends, the pivot, INFO. */
        if (!scan.finite)
            solver_note(s, GPU_UNSUPPORTED);
    }
    free(copy);
    return !leaves;
}

void solver_upload_to(struct solver *s, struct array to, const struct accel_span *x, int64_t rows,
                      int64_t cols, char uplo)
{
    struct host_rectangle from = solver_rectangle(x);
    from.rows = rows;
    from.cols = cols;
    from.uplo = uplo;
    if (rows == to.rows) {
        upload_columns(s, to, x, from, false);
        return;
    }
    /* A chunk comes up in one run of bytes, which covers whole columns of the array. */
    struct array part = solver_array_of(s, rows, cols, to.dtype);
    upload_columns(s, part, x, from, false);
    solver_copy(s, to, part);
}

bool solver_bring(struct solver *s, struct array to, const struct accel_span *x, char uplo,
                  bool hermitian, bool only_to_cache)
{
    struct host_rectangle from = solver_rectangle(x);
    from.uplo = uplo;
    from.hermitian = hermitian;
    return upload_columns(s, to, x, from, only_to_cache);
}

struct array solver_upload(struct solver *s, const struct accel_span *x, char uplo)
{
    const struct host_rectangle from = solver_rectangle(x);
    const struct array to = solver_array_of(s, from.rows, from.cols, x->dtype);
    solver_bring(s, to, x, uplo, false, false);
    return to;
}

struct array solver_upload_hermitian(struct solver *s, const struct accel_span *x, char uplo)
{
    const struct host_rectangle from = solver_rectangle(x);
    const struct array to = solver_array_of(s, from.rows, from.cols, x->dtype);
    solver_bring(s, to, x, uplo, accel_is_complex(s->dtype), false);
    return to;
}

void solver_put(struct solver *s, struct array to, const void *from)
{
    const struct host_rectangle there =
        host_whole((char *)(uintptr_t)from, to.rows, to.cols, to.rows, solver_element(to));
    GPU_DO(s, gpu_copies(s->work)->upload(s->work->ctx, to.at, &there));
}

int64_t *solver_read_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                            bool with_signs)
{
    int64_t ld;
    void *copy;
    if (!solver_is_well(s))
        return NULL;
    const void *from = read_on_host(s, x, &ld, &copy);
    int64_t *pivots = malloc((size_t)x->cols * sizeof *pivots + 1);
    if (!pivots)
        solver_note(s, GPU_NO_MEMORY);
    for (int64_t i = 0; solver_is_well(s) && i < x->cols; i++) {
        pivots[i] = accel_integer_at(x->dtype, from, i);
        if (pivots[i] > limit || pivots[i] == 0 || pivots[i] < (with_signs ? -limit : 1))
            solver_note(s, GPU_UNSUPPORTED);
    }
    free(copy);
    return pivots;
}

struct array solver_upload_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                                  bool with_signs)
{
    struct array to = solver_vector(s, x->cols, ACCEL_INT64);
    int64_t *pivots = solver_read_pivots(s, x, limit, with_signs);
    if (solver_is_well(s))
        solver_put(s, to, pivots);
    if (solver_is_well(s))
        gpu_work_event(s->work, GPU_EVENT_H2D, x, 1, x->cols, x->cols * gpu_size_of(x));
    free(pivots);
    return to;
}

/* ---- Operands that the host changes first ---- */

void *solver_read(struct solver *s, const struct accel_span *x, char uplo)
{
    struct gpu_scan scan = gpu_scan_begin(accel_is_double(s->dtype));
    const int64_t size = gpu_size_of(x);
    int64_t ld;
    void *copy;
    if (!solver_is_well(s))
        return NULL;
    char *to = malloc((size_t)(x->rows * x->cols * size) + 1);
    if (!to)
        solver_note(s, GPU_NO_MEMORY);
    const char *from = read_on_host(s, x, &ld, &copy);
    for (int64_t col = 0; solver_is_well(s) && col < x->cols; col++) {
        const int64_t first = uplo == 'L' ? col : 0, end = uplo == 'U' ? col + 1 : x->rows;
        char *column = to + (col * x->rows + first) * size;
        memcpy(column, from + (col * ld + first) * size, (size_t)((end - first) * size));
        gpu_scan_numbers(&scan, column, (end - first) * size);
    }
    if (!scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    free(copy);
    return to;
}

struct array solver_upload_packed(struct solver *s, const struct accel_span *x, void *packed,
                                  char uplo)
{
    const struct array to = solver_array_of(s, x->rows, x->cols, x->dtype);
    struct host_rectangle from = host_whole(packed, x->rows, x->cols, x->rows, solver_element(to));
    from.uplo = uplo;
    from.trimmed = uplo && chunks_trim(from.rows, from.cols, from.size);
    if (solver_is_well(s) && solver_note(s, gpu_work_upload(s->work, to.at, &from)))
        gpu_work_event(s->work, GPU_EVENT_H2D, x, from.rows, from.cols,
                       chunks_matrix_sent(&from, to.at.ld));
    return to;
}

static bool is_zero_at(const char *at, int64_t size)
{
    static const char zeros[16];
    char bits[16];
    memcpy(bits, at, (size_t)size);
    /* Ignores signs: the highest bit of each part. (Of a double, taken for two floats, it ignores
     * one more bit: the original then finds that the number is not zero.) */
    int64_t part = size == 16 ? 8 : 4;
    for (int64_t i = part; i <= size; i += part)
        bits[i - 1] = (char)(bits[i - 1] & 0x7f);
    return memcmp(bits, zeros, (size_t)size) == 0;
}

bool solver_has_zero(const struct solver *s, const void *values, int64_t count)
{
    int64_t size = (int64_t)accel_dtype_size(s->dtype);
    for (int64_t i = 0; i < count; i++)
        if (is_zero_at((const char *)values + i * size, size))
            return true;
    return false;
}

/* It sends the diagonal alone, which is a row of a matrix whose columns are one element longer. */
static void refuse_zero_diagonal_of_packer(struct solver *s, const struct accel_span *x, int64_t n)
{
    const int64_t size = gpu_size_of(x);
    const struct host_rectangle diagonal = host_whole(x->ptr, 1, n, x->ld + 1, size);
    char *values = malloc((size_t)(n * size));
    if (!values)
        solver_note(s, GPU_NO_MEMORY);
    else if (!packer_read(s->work->host->packer, &diagonal, values))
        solver_note(s, GPU_UNSUPPORTED);
    for (int64_t i = 0; solver_is_well(s) && i < n; i++)
        if (is_zero_at(values + i * size, size))
            solver_note(s, GPU_UNSUPPORTED);
    free(values);
}

void solver_refuse_zero_diagonal(struct solver *s, const struct accel_span *x)
{
    int64_t n = shape_diagonal(s->call, x), size = gpu_size_of(x), ld;
    void *copy;
    if (!solver_is_well(s) || n == 0)
        return;
    const bool is_square = shape_diagonal_place(s->call, x, x->ld, 1) == x->ld + 1;
    if (packer_of(s->work->host->packer, x->ptr) && is_square) {
        refuse_zero_diagonal_of_packer(s, x, n);
        return;
    }
    const char *from = read_on_host(s, x, &ld, &copy);
    for (int64_t i = 0; solver_is_well(s) && i < n; i++)
        if (is_zero_at(from + shape_diagonal_place(s->call, x, ld, i) * size, size))
            solver_note(s, GPU_UNSUPPORTED);
    free(copy);
}

/* LAPACK scales a matrix whose norm is beyond sqrt(safe minimum) / eps or its inverse: ?syev,
 * ?gesvd, ?geev, ?gels. */
void solver_refuse_extremes(struct solver *s)
{
    bool is_double = accel_is_double(s->dtype);
    double smallest = is_double ? 6.7e-139 : 9.1e-13, largest = 1 / smallest;
    if (solver_is_well(s) && !(s->largest > smallest && s->largest < largest))
        solver_note(s, GPU_UNSUPPORTED);
}

void solver_cache_inputs(struct solver *s)
{
    for (int i = 0; i < s->cached_copies; i++)
        device_cache_insert(s->work, s->cached_copy[i].memory, &s->cached_copy[i].cached);
}
