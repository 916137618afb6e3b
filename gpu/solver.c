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
        free(s->host); /* the workspace of the step before */
        s->host = NULL;
    }
    if (!s->host)
        s->host = malloc(bytes);
    if (!s->host)
        solver_note(s, GPU_NO_MEMORY);
    return s->host;
}

/* Returns whether the reserve has so much. Addresses are those of whole lines. */
static bool take_reserved(struct solver *s, size_t device_bytes, size_t host_bytes,
                          struct array *device, void **host)
{
    struct solver_reserve *r = s->reserve;
    host_bytes = (host_bytes + 63) / 64 * 64;
    if (r->measuring) {
        r->device_bytes = device_bytes > r->device_bytes ? device_bytes : r->device_bytes;
        r->host_bytes += host_bytes;
        return false;
    }
    if (device_bytes > r->device_bytes || host_bytes > r->host_bytes - r->host_used)
        return solver_note(s, GPU_NO_MEMORY);
    device->ptr = r->device;
    *host = host_bytes > 0 ? r->host + r->host_used : NULL;
    r->host_used += host_bytes;
    return true;
}

bool solver_take_work(struct solver *s, size_t device_bytes, size_t host_bytes,
                      struct array *device, void **host)
{
    *device = (struct array){.dtype = s->dtype};
    *host = NULL;
    if (s->reserve)
        return solver_is_well(s) && take_reserved(s, device_bytes, host_bytes, device, host);
    *device = solver_work(s, device_bytes);
    *host = solver_host_work(s, host_bytes);
    return solver_is_well(s);
}

/* ---- Begin ---- */

static void begin(struct solver *s, struct gpu_work *work)
{
    enum accel_dtype dtype = work->call->routine->dtype;
    *s = (struct solver){
        .work = work, .call = work->call, .dtype = dtype, .real = accel_real_dtype(dtype)};
    if (solver_note(s, lane_use_solver(work->lane)))
        s->info = take(s, sizeof(int));
}

/* ---- Up ---- */

/* Returns an operand as a rectangle; a vector is one column. */
static struct lane_rectangle rectangle_of(const struct accel_span *x)
{
    if (x->inc)
        return lane_whole(x->ptr, x->cols, 1, x->cols, gpu_size_of(x));
    return lane_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
}

/* Returns where the host can read an operand, and its leading dimension there: in place, or in a packed copy, which the caller
 * frees. */
static char *read_on_host(struct solver *s, const struct accel_span *x, int64_t *ld, void **copy)
{
    const struct lane_rectangle there = rectangle_of(x);
    *copy = NULL;
    *ld = there.ld;
    if (x->place == ACCEL_HOST)
        return there.host;
    *ld = there.rows;
    *copy = malloc((size_t)accel_bytes(x) + 1);
    if (!*copy)
        solver_note(s, GPU_NO_MEMORY);
    else if (!gpu_fetch(s->work->device, *copy, x))
        solver_note(s, GPU_ERROR);
    return *copy;
}

/* ---- Triangles in strips ---- */

/* What is on one side of the diagonal alone goes up, or down, strip by strip of columns, through memory on the device in which a strip is
 * packed: a copy is one run of bytes. That pays for large triangles, if there is memory to spare. */
enum { STRIPS = 16, STRIPED_SHARE = 4 };
#define STRIPED_BYTES ((int64_t)16 << 20)

static bool is_lower(const struct lane_rectangle *all)
{
    return all->uplo == 'L' || all->uplo == 'l';
}

static int64_t strip_columns(const struct lane_rectangle *all)
{
    return (all->cols + STRIPS - 1) / STRIPS;
}

/* Returns the memory for a strip; 0: the rectangle is not to be copied in strips. */
static gpu_address strip_memory(struct solver *s, const struct lane_rectangle *all)
{
    const int64_t whole = all->rows * all->cols * all->size,
                  bytes = gpu_device_ld(all->rows, s->dtype) * strip_columns(all) * all->size;
    if (!all->uplo || all->digest || whole < STRIPED_BYTES)
        return 0;
    if (bytes <= s->strip_bytes)
        return s->strip;
    if (gpu_work_available(s->work) / STRIPED_SHARE < whole ||
        gpu_work_take(s->work, bytes, &s->strip) != GPU_OK)
        return 0;
    s->strip_bytes = bytes;
    return s->strip;
}

/* Returns the strip that begins with column `col`, and in *row its first row. */
static struct lane_rectangle strip_of(const struct lane_rectangle *all, int64_t col, int64_t *row)
{
    struct lane_rectangle strip = *all;
    strip.cols = accel_min(strip_columns(all), all->cols - col);
    *row = is_lower(all) ? accel_min(col, all->rows) : 0;
    strip.rows = is_lower(all) ? all->rows - *row : accel_min(all->rows, col + strip.cols);
    strip.diagonal = is_lower(all) ? 0 : col;
    strip.host += (*row + col * all->ld) * all->size;
    return strip;
}

static gpu_address element_of(struct array x, int64_t row, int64_t col)
{
    return solver_part(x, row, col, 1, 1).ptr;
}

static enum gpu_status upload_strips(struct solver *s, struct array to,
                                     const struct lane_rectangle *all, gpu_address memory,
                                     int64_t *bytes)
{
    struct gpu_lane *lane = s->work->lane;
    enum gpu_status status = gpu_work_zero(s->work, to.ptr, to.ld * to.cols * element(to));
    for (int64_t col = 0; status == GPU_OK && col < all->cols; col += strip_columns(all)) {
        int64_t row;
        const struct lane_rectangle strip = strip_of(all, col, &row);
        const int64_t ld = gpu_device_ld(strip.rows, to.dtype);
        if (strip.rows == 0)
            break;
        status = lane_upload(lane, memory, ld, &strip);
        if (status == GPU_OK)
            status = lane_copy(lane, element_of(to, row, col), to.ld, memory, ld, strip.rows,
                               strip.cols, strip.size);
        *bytes += strip.rows * strip.cols * strip.size;
    }
    return status;
}

/* Copies a rectangle up, a triangle with zeros beside it; adds to *bytes what has gone. */
static enum gpu_status upload_rectangle(struct solver *s, struct array to,
                                        const struct lane_rectangle *from, int64_t *bytes)
{
    const gpu_address memory = strip_memory(s, from);
    if (memory)
        return upload_strips(s, to, from, memory, bytes);
    *bytes += from->rows * from->cols * from->size;
    return lane_upload(s->work->lane, to.ptr, to.ld, from);
}

/* *written: something of it has come to its place. */
static enum gpu_status download_strips(struct solver *s, const struct lane_rectangle *all,
                                       struct array from, gpu_address memory, bool *written,
                                       int64_t *bytes)
{
    struct gpu_lane *lane = s->work->lane;
    enum gpu_status status = GPU_OK;
    for (int64_t col = 0; status == GPU_OK && col < all->cols; col += strip_columns(all)) {
        int64_t row, done_cols = 0, done_rows = 0;
        const struct lane_rectangle strip = strip_of(all, col, &row);
        const int64_t ld = gpu_device_ld(strip.rows, from.dtype);
        if (strip.rows == 0)
            break;
        status = lane_copy(lane, memory, ld, element_of(from, row, col), from.ld, strip.rows,
                           strip.cols, strip.size);
        if (status == GPU_OK)
            status = lane_download(lane, &strip, memory, ld, &done_cols, &done_rows);
        *written = *written || done_cols > 0 || done_rows > 0;
        *bytes += strip.rows * strip.cols * strip.size;
    }
    return status;
}

static enum gpu_status download_rectangle(struct solver *s, const struct lane_rectangle *to,
                                          struct array from, bool *written, int64_t *bytes)
{
    const gpu_address memory = strip_memory(s, to);
    int64_t done_cols, done_rows;
    if (memory)
        return download_strips(s, to, from, memory, written, bytes);
    *bytes += to->rows * to->cols * to->size;
    const enum gpu_status status =
        lane_download(s->work->lane, to, from.ptr, from.ld, &done_cols, &done_rows);
    *written = done_cols > 0 || done_rows > 0;
    return status;
}

/* ---- Whole operands ---- */

static void note_uploaded(struct solver *s, const struct accel_span *x, int64_t rows, int64_t cols,
                          int64_t bytes)
{
    s->work->host->up_bytes += bytes;
    gpu_work_event(s->work, GPU_EVENT_H2D, x, rows, cols, bytes);
}

/* Copies an input that has stayed on the device: the steps overwrite theirs. */
static void copy_kept(struct solver *s, struct array to, const struct accel_span *x,
                      gpu_address kept)
{
    const int64_t bytes = accel_bytes(x);
    if (!solver_note(
            s, lane_copy(s->work->lane, to.ptr, to.ld, kept, to.ld, x->rows, x->cols, element(to))))
        return;
    s->work->host->kept_bytes += bytes;
    gpu_work_event(s->work, GPU_EVENT_KEPT, x, x->rows, x->cols, bytes);
}

/* An input's copy for later calls leaves the call this many times its memory, at least. */
enum { KEEP_ROOM = 4 };

/* Takes a copy of an input that has gone up, before the steps overwrite it. Without room it does not stay. */
static void copy_to_keep(struct solver *s, struct array from, const struct accel_span *x, char uplo,
                         const struct resident *r)
{
    const int64_t bytes = from.ld * from.cols * element(from);
    struct kept_input kept = {x, uplo, 0, *r};
    if (s->inputs_kept == ACCEL_SPANS || s->work->blocks > WORK_BLOCKS / 2 ||
        gpu_work_available(s->work) / KEEP_ROOM < bytes ||
        gpu_work_take(s->work, bytes, &kept.memory) != GPU_OK)
        return;
    const enum gpu_status status = lane_copy(s->work->lane, kept.memory, from.ld, from.ptr, from.ld,
                                             from.rows, from.cols, element(from));
    if (status != GPU_UNSUPPORTED && solver_note(s, status))
        s->kept[s->inputs_kept++] = kept;
}

/* Uploads to the first columns of an array, which has as many rows as `from`; or finds the operand on the device. */
static void upload_columns(struct solver *s, struct array to, const struct accel_span *x,
                           struct lane_rectangle from)
{
    struct gpu_scan scan = gpu_scan_begin(accel_is_double(s->dtype));
    int64_t bytes = 0;
    gpu_address kept = 0;
    void *copy;
    if (!solver_is_well(s) || from.rows == 0 || from.cols == 0)
        return;
    from.host = read_on_host(s, x, &from.ld, &copy);
    from.name = x->name;
    from.scan = &scan;
    if (solver_is_well(s)) {
        struct resident r = {.here = false};
        if (to.ld == gpu_device_ld(x->rows, x->dtype)) /* not a part of another array */
            r = resident_look_at(s->work, x, &from, &kept);
        from.digest = r.digests ? &r.key : NULL;
        if (r.here)
            copy_kept(s, to, x, kept);
        else if (solver_note(s, upload_rectangle(s, to, &from, &bytes)))
            note_uploaded(s, x, from.rows, from.cols, bytes);
        if (solver_is_well(s) && r.digests)
            copy_to_keep(s, to, x, from.uplo, &r);
        s->largest = scan.largest > s->largest ? scan.largest : s->largest;
        /* LAPACK's answers to NaNs are its own: when an iteration ends, the pivot, INFO. */
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
    /* A piece comes up in one run of bytes, which covers whole columns of the array. */
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
    int64_t ld;
    void *copy;
    if (!solver_is_well(s))
        return to;
    const void *from = read_on_host(s, x, &ld, &copy);
    int64_t *pivots = malloc((size_t)x->cols * sizeof *pivots + 1);
    if (!pivots)
        solver_note(s, GPU_NO_MEMORY);
    for (int64_t i = 0; solver_is_well(s) && i < x->cols; i++) {
        pivots[i] = accel_integer_at(x->dtype, from, i);
        if (pivots[i] > limit || pivots[i] == 0 || pivots[i] < (with_signs ? -limit : 1))
            solver_note(s, GPU_UNSUPPORTED);
    }
    solver_put(s, to, pivots);
    if (solver_is_well(s))
        note_uploaded(s, x, 1, x->cols, x->cols * gpu_size_of(x));
    free(pivots);
    free(copy);
    return to;
}

static bool is_zero_at(const char *at, int64_t size)
{
    static const char zeros[16];
    char bits[16];
    memcpy(bits, at, (size_t)size);
    /* Ignores signs: the highest bit of each part. (Of a double, taken for two floats, it ignores one more bit: the original
     * then finds that the number is not zero.) */
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
    int64_t n = accel_min(x->rows, x->cols), size = gpu_size_of(x), ld;
    void *copy;
    if (!solver_is_well(s))
        return;
    const char *from = read_on_host(s, x, &ld, &copy);
    for (int64_t i = 0; solver_is_well(s) && i < n; i++)
        if (is_zero_at(from + i * (ld + 1) * size, size))
            solver_note(s, GPU_UNSUPPORTED);
    free(copy);
}

/* LAPACK scales a matrix whose norm is beyond sqrt(safe minimum) / eps or its inverse: ?syev, ?gesvd, ?geev, ?gels. */
void solver_refuse_extremes(struct solver *s)
{
    bool is_double = accel_is_double(s->dtype);
    double smallest = is_double ? 6.7e-139 : 9.1e-13, largest = 1 / smallest;
    if (solver_is_well(s) && !(s->largest > smallest && s->largest < largest))
        solver_note(s, GPU_UNSUPPORTED);
}

/* ---- Down ---- */

/* name: of the operand, or NULL; digest: gets that of the array, or NULL. */
static void get(struct solver *s, void *to, struct array from, const char *name,
                struct gpu_key *digest)
{
    struct lane_rectangle there = lane_whole(to, from.rows, from.cols, from.rows, element(from));
    there.name = name;
    there.digest = digest;
    int64_t done_cols, done_rows;
    if (solver_is_well(s))
        solver_note(
            s, lane_download(s->work->lane, &there, from.ptr, from.ld, &done_cols, &done_rows));
}

void solver_get(struct solver *s, void *to, struct array from)
{
    get(s, to, from, NULL, NULL);
}

bool solver_has_succeeded(struct solver *s)
{
    int32_t info = 0;
    solver_get(s, &info, (struct array){s->info, 1, 1, 1, ACCEL_INT32});
    return solver_is_well(s) && info == 0;
}

void solver_require_success(struct solver *s)
{
    if (!s->reserve && !solver_has_succeeded(s))
        solver_note(s, GPU_UNSUPPORTED);
}

/* ---- Results ---- */

/* Returns whether the result has been added; then its `staged` is freed with the solver. */
static bool add_result(struct solver *s, struct result result)
{
    if (result.from.rows == 0 || result.from.cols == 0 || !solver_is_well(s))
        return false;
    if (s->results == RESULTS_MAX)
        return solver_note(s, GPU_UNSUPPORTED);
    s->result[s->results++] = result;
    return true;
}

void solver_return(struct solver *s, const struct accel_span *to, struct array from, char uplo)
{
    add_result(s, (struct result){.to = to, .from = from, .uplo = uplo});
}

void solver_return_pivots(struct solver *s, const struct accel_span *to, struct array from)
{
    add_result(s, (struct result){.to = to, .from = from, .integers = true});
}

void solver_return_integers(struct solver *s, const struct accel_span *to, int64_t count,
                            int64_t even, int64_t odd)
{
    const struct array none = {.rows = count, .cols = 1, .ld = count, .dtype = ACCEL_INT64};
    int64_t *values = malloc((size_t)count * sizeof *values + 1);
    if (!values) {
        solver_note(s, GPU_NO_MEMORY);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = i % 2 ? odd : even;
    if (!add_result(s, (struct result){to, none, .integers = true, .staged = values}))
        free(values);
}

void solver_return_packed(struct solver *s, const struct accel_span *to, int64_t rows, int64_t cols,
                          void *packed, char uplo)
{
    const bool integers = to->dtype == ACCEL_INT32 || to->dtype == ACCEL_INT64;
    const struct array none = {
        .rows = rows, .cols = cols, .ld = rows, .dtype = integers ? ACCEL_INT64 : to->dtype};
    if (!packed ||
        !add_result(s, (struct result){to, none, uplo, .integers = integers, .staged = packed}))
        free(packed);
}

/* Returns a result's place in host memory. */
static struct lane_rectangle place_of(const struct result *r)
{
    struct lane_rectangle to = rectangle_of(r->to);
    to.rows = r->from.rows;
    to.cols = r->from.cols;
    to.name = r->to->name;
    to.uplo = r->uplo;
    return to;
}

static int64_t bytes_of(const struct result *r)
{
    return r->from.rows * r->from.cols * element(r->from);
}

/* Larger results come straight to their places. */
#define STAGED_BYTES ((int64_t)16 << 20)

static bool is_staged(const struct result *r)
{
    return r->staged || r->integers || r->to->place != ACCEL_HOST || bytes_of(r) <= STAGED_BYTES;
}

static bool is_input(const struct result *r)
{
    return r->to->access != ACCEL_WRITE;
}

/* Begins a result that could stay on the device: a whole operand, of which nothing is left out. Returns what gets its digest, or NULL. */
static struct gpu_key *begin_result(struct solver *s, struct result *r)
{
    const struct array from = r->from;
    if (r->integers || r->uplo || from.rows != r->to->rows || from.cols != r->to->cols ||
        from.ld != gpu_device_ld(from.rows, from.dtype) || from.dtype != r->to->dtype)
        return NULL;
    r->resident = resident_begin_result(s->work, r->to);
    return r->resident.digests ? &r->resident.key : NULL;
}

/* Keeps what is to stay, after the call. A failure to do so is the device's, and the next call's. */
static void keep_residents(struct solver *s)
{
    for (int i = 0; i < s->inputs_kept; i++)
        resident_keep_at(s->work, s->kept[i].x, s->kept[i].uplo, s->kept[i].memory,
                         &s->kept[i].resident);
    for (int i = 0; i < s->results; i++)
        if (s->result[i].resident.digests)
            resident_keep_result(s->work, s->result[i].to, s->result[i].from.ptr,
                                 &s->result[i].resident);
}

/* Writes a large result to its place. Results that overwrite inputs come last: until then the original can still run the call. */
static void write_in_place(struct solver *s, struct result *r)
{
    struct lane_rectangle to = place_of(r);
    bool written = false;
    if (is_staged(r) || !solver_is_well(s))
        return;
    r->copied = 0;
    to.digest = begin_result(s, r);
    enum gpu_status status = download_rectangle(s, &to, r->from, &written, &r->copied);
    s->touched = s->touched || (is_input(r) && written);
    solver_note(s, status != GPU_OK && s->touched ? GPU_LOST : status);
}

/* Makes integers of the program's type of int64, in place. */
static void narrow(void *integers, int64_t n, enum accel_dtype dtype)
{
    const int64_t *from = integers;
    for (int64_t i = 0; i < n && dtype != ACCEL_INT64; i++) {
        int32_t low = (int32_t)from[i];
        memcpy((char *)integers + i * 4, &low, 4);
    }
}

/* Stores what is staged in the program's memory, between elements that stay. */
static bool store(struct solver *s, const struct result *r)
{
    struct accel_span part = *r->to;
    if (part.place == ACCEL_HOST) {
        const struct lane_rectangle to = place_of(r);
        staging_unpack(&to, r->staged, to.rows);
        return true;
    }
    if (part.inc) {
        part.cols = r->from.rows;
    } else {
        part.rows = r->from.rows;
        part.cols = r->from.cols;
    }
    part.triangle = r->uplo;
    return gpu_store(s->work->device, &part, r->staged);
}

static void stage(struct solver *s, struct result *r)
{
    if (r->staged || !is_staged(r))
        return;
    r->staged = malloc((size_t)bytes_of(r) + 1);
    if (!r->staged)
        solver_note(s, GPU_NO_MEMORY);
    get(s, r->staged, r->from, r->to->name, begin_result(s, r));
    r->copied = bytes_of(r);
}

static void write_staged(struct solver *s, const struct result *r)
{
    if (!r->staged || !solver_is_well(s))
        return;
    s->touched = s->touched || is_input(r);
    if (r->integers)
        narrow(r->staged, r->from.rows, r->to->dtype);
    if (!store(s, r))
        solver_note(s, s->touched ? GPU_LOST : GPU_ERROR);
}

static void deliver(struct solver *s)
{
    for (int i = 0; i < s->results && solver_is_well(s); i++)
        stage(s, &s->result[i]);
    for (int inputs = 0; inputs < 2; inputs++)
        for (int i = 0; i < s->results; i++)
            if (is_input(&s->result[i]) == inputs)
                write_in_place(s, &s->result[i]);
    for (int i = 0; i < s->results; i++)
        write_staged(s, &s->result[i]);
    for (int i = 0; i < s->results && solver_is_well(s); i++) {
        const struct result *r = &s->result[i];
        if (!r->from.ptr)
            continue; /* the host had it */
        s->work->host->down_bytes += r->copied;
        gpu_work_event(s->work, GPU_EVENT_D2H, r->to, r->from.rows, r->from.cols, r->copied);
    }
}

static void end(struct solver *s)
{
    if (solver_is_well(s))
        solver_note(s, gpu_work_settle(s->work));
    if (solver_is_well(s))
        deliver(s);
    if (solver_is_well(s))
        keep_residents(s);
    for (int i = 0; i < s->results; i++)
        free(s->result[i].staged);
    /* A kernel that still runs may use the host's workspace: then it is left alone. */
    if (s->host && lane_wait(s->work->lane) == GPU_OK)
        free(s->host);
}

static double operand_bytes(const struct gpu_work *work)
{
    double bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &work->call->span[i];
        bytes += (double)x->rows * (double)x->cols * (double)gpu_size_of(x);
    }
    return bytes;
}

/* With workspaces, a call may need more memory than there is though its operands do not. Panels need less, unless the operands are a small part
 * of it. */
#define SMALL_PART 0.25

static bool would_fit_in_panels(const struct gpu_work *work)
{
    return operand_bytes(work) > SMALL_PART * (double)gpu_work_available(work);
}

/* Nothing has been written yet. */
static void run_in_panels(struct solver *s, void (*steps)(struct solver *s))
{
    for (int i = 0; i < s->results; i++)
        free(s->result[i].staged);
    s->results = 0;
    s->largest = 0;
    s->status = GPU_OK;
    steps(s);
}

enum gpu_status solver_run(struct gpu_work *work, void (*steps)(struct solver *s),
                           void (*in_panels)(struct solver *s))
{
    struct solver s;
    begin(&s, work);
    if (!accel_is_on_host(work->call))
        in_panels = NULL;
    if (in_panels && operand_bytes(work) > (double)gpu_info(work->device)->memory_bytes) {
        if (solver_is_well(&s))
            in_panels(&s);
    } else {
        steps(&s);
        if (in_panels && s.status == GPU_NO_MEMORY && would_fit_in_panels(work))
            run_in_panels(&s, in_panels);
    }
    end(&s);
    return s.status;
}
