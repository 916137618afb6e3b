#include "solver.h"

#include <stdlib.h>
#include <string.h>

bool solver_note(struct solver *s, enum gpu_status status)
{
    if (s->status == GPU_OK)
        s->status = status;
    return s->status == GPU_OK;
}

/* ---- Memory ---- */

static gpu_address take(struct solver *s, int64_t bytes)
{
    gpu_address memory = 0;
    if (solver_is_well(s) && bytes > 0)
        solver_note(s, gpu_work_take(s->work, bytes, &memory));
    return memory;
}

static int64_t element(struct array x)
{
    return (int64_t)accel_dtype_size(x.dtype);
}

static struct array make_array(struct solver *s, int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    struct array x = {0, rows, cols, rows > 0 ? gpu_device_ld(rows, dtype) : 1, dtype};
    int64_t elements, bytes;
    if (!accel_mul(x.ld, cols, &elements) || !accel_mul(elements, element(x), &bytes))
        solver_note(s, GPU_NO_MEMORY);
    else
        x.ptr = take(s, bytes);
    return x;
}

struct array solver_array(struct solver *s, int64_t rows, int64_t cols)
{
    return make_array(s, rows, cols, s->dtype);
}

struct array solver_vector(struct solver *s, int64_t n, enum accel_dtype dtype)
{
    return make_array(s, n, 1, dtype);
}

struct array solver_reals(struct solver *s, int64_t n)
{
    return solver_vector(s, n, s->real);
}

struct array solver_zeros(struct solver *s, int64_t rows, int64_t cols)
{
    struct array x = solver_array(s, rows, cols);
    if (solver_is_well(s) && x.ptr)
        solver_note(s, gpu_work_zero(s->work, x.ptr, x.ld * cols * element(x)));
    return x;
}

struct array solver_part(struct array x, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    gpu_address at = x.ptr + (gpu_address)((col * x.ld + row) * element(x));
    return (struct array){at, rows, cols, x.ld, x.dtype};
}

struct array solver_work(struct solver *s, size_t bytes)
{
    struct array x = {0, (int64_t)bytes, 1, (int64_t)bytes, s->dtype};
    if (bytes > (size_t)INT64_MAX)
        solver_note(s, GPU_NO_MEMORY);
    else
        x.ptr = take(s, (int64_t)bytes);
    return x;
}

void *solver_host_work(struct solver *s, size_t bytes)
{
    if (!solver_is_well(s) || bytes == 0)
        return NULL;
    if (s->host && (solver_note(s, gpu_work_settle(s->work)))) {
        free(s->host); /* of the step before */
        s->host = NULL;
    }
    if (!s->host)
        s->host = malloc(bytes);
    if (!s->host)
        solver_note(s, GPU_NO_MEMORY);
    return s->host;
}

/* ---- Begin ---- */

static void begin(struct solver *s, struct gpu_work *work)
{
    enum accel_dtype dtype = work->call->routine->dtype;
    *s = (struct solver){.work = work, .dtype = dtype, .real = accel_real_dtype(dtype)};
    if (solver_note(s, lane_use_solver(work->lane)))
        s->info = take(s, sizeof(int));
}

/* ---- Up ---- */

/* An operand as host memory: a vector is one column. */
static struct lane_rectangle rectangle_of(const struct accel_span *x)
{
    if (x->inc)
        return lane_whole(x->ptr, x->cols, 1, x->cols, gpu_size_of(x));
    return lane_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
}

/* A packed copy of what is not in host memory; to be freed. */
static void *fetch(struct solver *s, const struct accel_span *x)
{
    void *copy = malloc((size_t)accel_bytes(x) + 1);
    if (!copy)
        solver_note(s, GPU_NO_MEMORY);
    else if (!gpu_fetch(s->work->device, copy, x))
        solver_note(s, GPU_ERROR);
    return copy;
}

/* The first columns of an array of as many rows as come. */
static void upload_columns(struct solver *s, struct array to, const struct accel_span *x,
                           struct lane_rectangle from)
{
    struct gpu_scan scan = {accel_is_double(s->dtype), true, 0};
    int64_t bytes = from.rows * from.cols * from.size;
    void *copy = NULL;
    if (!solver_is_well(s) || bytes == 0)
        return;
    if (x->place != ACCEL_HOST) {
        from.host = copy = fetch(s, x);
        from.ld = rectangle_of(x).rows;
    }
    from.scan = &scan;
    if (solver_is_well(s) && solver_note(s, lane_upload(s->work->lane, to.ptr, to.ld, &from))) {
        s->largest = scan.largest > s->largest ? scan.largest : s->largest;
        s->work->host->up_bytes += bytes;
        gpu_work_event(s->work, GPU_EVENT_H2D, x, from.rows, from.cols, bytes);
        /* LAPACK's answers to NaNs are its own: the iteration's end, the pivot, INFO. */
        if (!scan.finite)
            solver_note(s, GPU_UNSUPPORTED);
    }
    free(copy);
}

void solver_upload_to(struct solver *s, struct array to, const struct accel_span *x, int64_t rows,
                      int64_t cols, char uplo)
{
    struct lane_rectangle from = rectangle_of(x);
    from.rows = rows;
    from.cols = cols;
    from.uplo = uplo;
    if (rows == to.rows) {
        upload_columns(s, to, x, from);
        return;
    }
    /* What comes up in one run covers whole columns. */
    struct array part = make_array(s, rows, cols, to.dtype);
    upload_columns(s, part, x, from);
    solver_copy(s, to, part);
}

struct array solver_upload(struct solver *s, const struct accel_span *x, char uplo)
{
    struct lane_rectangle from = rectangle_of(x);
    struct array to = make_array(s, from.rows, from.cols, x->dtype);
    from.uplo = uplo;
    upload_columns(s, to, x, from);
    return to;
}

struct array solver_upload_hermitian(struct solver *s, const struct accel_span *x, char uplo)
{
    struct lane_rectangle from = rectangle_of(x);
    struct array to = make_array(s, from.rows, from.cols, x->dtype);
    from.uplo = uplo;
    from.hermitian = accel_is_complex(s->dtype);
    upload_columns(s, to, x, from);
    return to;
}

void solver_put(struct solver *s, struct array to, const void *from)
{
    const struct lane_rectangle there =
        lane_whole((char *)(uintptr_t)from, to.rows, to.cols, to.rows, element(to));
    if (solver_is_well(s))
        solver_note(s, lane_upload(s->work->lane, to.ptr, to.ld, &there));
}

struct array solver_upload_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                                  bool with_signs)
{
    struct array to = solver_vector(s, x->cols, ACCEL_INT64);
    void *copy = NULL;
    if (!solver_is_well(s))
        return to;
    if (x->place != ACCEL_HOST)
        copy = fetch(s, x);
    int64_t *pivots = malloc((size_t)x->cols * sizeof *pivots + 1);
    if (!pivots)
        solver_note(s, GPU_NO_MEMORY);
    const void *from = copy ? copy : x->ptr;
    for (int64_t i = 0; solver_is_well(s) && i < x->cols; i++) {
        pivots[i] = accel_integer_at(x->dtype, from, i);
        if (pivots[i] > limit || pivots[i] == 0 || pivots[i] < (with_signs ? -limit : 1))
            solver_note(s, GPU_UNSUPPORTED);
    }
    solver_put(s, to, pivots);
    if (solver_is_well(s)) {
        s->work->host->up_bytes += accel_bytes(x);
        gpu_work_event(s->work, GPU_EVENT_H2D, x, 1, x->cols, accel_bytes(x));
    }
    free(pivots);
    free(copy);
    return to;
}

static bool is_zero_at(const char *at, int64_t size)
{
    static const char zeros[2][16] = {{0}};
    char bits[16];
    memcpy(bits, at, (size_t)size);
    /* Signs do not count: the highest bit of each part. (Of a double that is taken for two floats, one more bit:
     * then the original sees that it is none.) */
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

void solver_refuse_zero_diagonal(struct solver *s, const struct accel_span *x)
{
    int64_t n = accel_min(x->rows, x->cols), size = gpu_size_of(x), ld = x->ld;
    void *copy = NULL;
    if (!solver_is_well(s))
        return;
    if (x->place != ACCEL_HOST) {
        copy = fetch(s, x);
        ld = x->rows;
    }
    const char *from = copy ? copy : x->ptr;
    for (int64_t i = 0; solver_is_well(s) && i < n; i++)
        if (is_zero_at(from + i * (ld + 1) * size, size))
            solver_note(s, GPU_UNSUPPORTED);
    free(copy);
}

/* LAPACK scales where a norm is beyond sqrt(safe minimum) / eps or its inverse: ?syev, ?gesvd, ?geev, ?gels. */
void solver_refuse_extremes(struct solver *s)
{
    bool is_double = accel_is_double(s->dtype);
    double smallest = is_double ? 6.7e-139 : 9.1e-13, largest = 1 / smallest;
    if (solver_is_well(s) && !(s->largest > smallest && s->largest < largest))
        solver_note(s, GPU_UNSUPPORTED);
}

/* ---- Down ---- */

static void get_rectangle(struct solver *s, const struct lane_rectangle *to, struct array from)
{
    int64_t done_cols, done_rows;
    if (solver_is_well(s))
        solver_note(s, lane_download(s->work->lane, to, from.ptr, from.ld, &done_cols, &done_rows));
}

void solver_get(struct solver *s, void *to, struct array from)
{
    const struct lane_rectangle there =
        lane_whole(to, from.rows, from.cols, from.rows, element(from));
    get_rectangle(s, &there, from);
}

bool solver_has_succeeded(struct solver *s)
{
    int32_t info = 0;
    solver_get(s, &info, (struct array){s->info, 1, 1, 1, ACCEL_INT32});
    return solver_is_well(s) && info == 0;
}

void solver_require_success(struct solver *s)
{
    if (!solver_has_succeeded(s))
        solver_note(s, GPU_UNSUPPORTED);
}

/* ---- Results ---- */

static void add_result(struct solver *s, struct result result)
{
    if (result.from.rows == 0 || result.from.cols == 0 || !solver_is_well(s))
        return;
    if (s->results == RESULTS_MAX)
        solver_note(s, GPU_UNSUPPORTED);
    else
        s->result[s->results++] = result;
}

void solver_return(struct solver *s, const struct accel_span *to, struct array from, char uplo)
{
    add_result(s, (struct result){to, from, uplo, false});
}

void solver_return_pivots(struct solver *s, const struct accel_span *to, struct array from)
{
    add_result(s, (struct result){to, from, 0, true});
}

void solver_return_integers(struct solver *s, const struct accel_span *to, int64_t count,
                            int64_t even, int64_t odd)
{
    if (!solver_is_well(s) || count == 0)
        return;
    int64_t *values = malloc((size_t)count * sizeof *values);
    if (!values || s->lists == INTEGERS_MAX) {
        solver_note(s, GPU_NO_MEMORY);
        free(values);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = i % 2 ? odd : even;
    s->integers[s->lists++] = (struct integers){to, values, count};
}

/* Where it goes in host memory. */
static struct lane_rectangle place_of(const struct result *r)
{
    struct lane_rectangle to = rectangle_of(r->to);
    to.rows = r->from.rows;
    to.cols = r->from.cols;
    to.uplo = r->uplo;
    return to;
}

/* Above this a result comes straight to its place. */
#define STAGED_BYTES ((int64_t)16 << 20)

static bool is_staged(const struct result *r)
{
    return r->integers || r->to->place != ACCEL_HOST ||
           r->from.rows * r->from.cols * element(r->from) <= STAGED_BYTES;
}

static bool is_input(const struct result *r)
{
    return r->to->access != ACCEL_WRITE;
}

/* Those that are inputs come last: until then the original can still have the call. */
static void write_in_place(struct solver *s, const struct result *r)
{
    const struct lane_rectangle to = place_of(r);
    int64_t done_cols, done_rows;
    if (is_staged(r) || !solver_is_well(s))
        return;
    enum gpu_status status =
        lane_download(s->work->lane, &to, r->from.ptr, r->from.ld, &done_cols, &done_rows);
    s->touched = s->touched || (is_input(r) && (done_cols > 0 || done_rows > 0));
    solver_note(s, status != GPU_OK && s->touched ? GPU_LOST : status);
}

static void narrow(void *to, const int64_t *from, int64_t n, enum accel_dtype dtype)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t low = (int32_t)from[i];
        if (dtype == ACCEL_INT64)
            memmove((char *)to + i * 8, &from[i], 8);
        else
            memcpy((char *)to + i * 4, &low, 4);
    }
}

/* From packed memory to host memory. */
static void unpack(const struct result *r, const char *from)
{
    const struct lane_rectangle to = place_of(r);
    const struct pack_piece all = {0, to.cols, 0, to.rows};
    pack_to_host(&to, &all, from, to.rows);
}

/* To memory of another place: what is written there, between what stays. */
static bool store(struct solver *s, const struct result *r, const char *from)
{
    struct accel_span part = *r->to;
    if (part.inc) {
        part.cols = r->from.rows;
    } else {
        part.rows = r->from.rows;
        part.cols = r->from.cols;
    }
    part.triangle = r->uplo;
    return gpu_store(s->work->device, &part, from);
}

static void deliver_staged(struct solver *s, void *staged[RESULTS_MAX])
{
    for (int i = 0; i < s->results && solver_is_well(s); i++) {
        const struct result *r = &s->result[i];
        if (!staged[i])
            continue;
        s->touched = s->touched || is_input(r);
        if (r->to->place == ACCEL_HOST && r->integers)
            narrow(r->to->ptr, staged[i], r->from.rows, r->to->dtype);
        else if (r->to->place == ACCEL_HOST)
            unpack(r, staged[i]);
        else {
            if (r->integers)
                narrow(staged[i], staged[i], r->from.rows, r->to->dtype);
            if (!store(s, r, staged[i]))
                solver_note(s, s->touched ? GPU_LOST : GPU_ERROR);
        }
    }
}

static void deliver_integers(struct solver *s)
{
    for (int i = 0; i < s->lists && solver_is_well(s); i++) {
        const struct integers *list = &s->integers[i];
        struct accel_span part = *list->to;
        part.cols = list->count;
        if (part.place == ACCEL_HOST) {
            narrow(part.ptr, list->values, list->count, part.dtype);
        } else {
            narrow(list->values, list->values, list->count, part.dtype);
            if (!gpu_store(s->work->device, &part, list->values))
                solver_note(s, s->touched ? GPU_LOST : GPU_ERROR);
        }
    }
}

static void deliver(struct solver *s)
{
    void *staged[RESULTS_MAX] = {NULL};
    for (int i = 0; i < s->results && solver_is_well(s); i++) {
        const struct result *r = &s->result[i];
        if (!is_staged(r))
            continue;
        staged[i] = malloc((size_t)(r->from.rows * r->from.cols * element(r->from)) + 1);
        if (!staged[i])
            solver_note(s, GPU_NO_MEMORY);
        solver_get(s, staged[i], r->from);
    }
    for (int inputs = 0; inputs < 2; inputs++)
        for (int i = 0; i < s->results; i++)
            if (is_input(&s->result[i]) == inputs)
                write_in_place(s, &s->result[i]);
    deliver_staged(s, staged);
    deliver_integers(s);
    for (int i = 0; i < s->results; i++) {
        const struct result *r = &s->result[i];
        int64_t bytes = r->from.rows * r->from.cols * element(r->from);
        free(staged[i]);
        if (!solver_is_well(s))
            continue;
        s->work->host->down_bytes += bytes;
        gpu_work_event(s->work, GPU_EVENT_D2H, r->to, r->from.rows, r->from.cols, bytes);
    }
}

static void end(struct solver *s)
{
    if (solver_is_well(s))
        solver_note(s, gpu_work_settle(s->work));
    if (solver_is_well(s))
        deliver(s);
    for (int i = 0; i < s->lists; i++)
        free(s->integers[i].values);
    /* What still runs may use it: then it is left alone. */
    if (s->host && lane_wait(s->work->lane) == GPU_OK)
        free(s->host);
}

enum gpu_status solver_run(struct gpu_work *work, void (*steps)(struct solver *s))
{
    struct solver s;
    begin(&s, work);
    steps(&s);
    end(&s);
    return s.status;
}
