#include "device_cache.h"

#include <stdatomic.h>

#include "base/thread/clock.h"
#include "base/thread/copy_pool.h"
#include "base/memory/write_watch.h"
#include "gpu/device/device.h"
#include "call/operation.h"
#include "call/shape.h"
#include "gpu/pack/matrix.h"
#include "gpu/pack/packer.h"
#include "gpu/pack/chunks.h"
#include "gpu/plan/scheduled.h"
#include "admission.h"
#include "arrivals.h"
#include "dirty_tracking.h"
#include "told_inputs.h"

/* A thread digests at this many 10^9 bytes a second, nominally; all of them not above the memory's
 * rate. */
#define THREAD_GBPS 12.0
#define MEMORY_GBPS 100.0
/* The kernel tells of so many, in pages of 4 KiB. */
#define SCAN_GBPS 300.0

/* Columns with fewer bytes, and gaps between them, say nothing of a rate. */
enum { MEASURED_COLUMN = 1024 };

/* Measured rates, in 10^9 bytes a second; 0: not yet. */
static _Atomic double digests, scans;

static double rate_of(const _Atomic double *rate, double nominal)
{
    const double gbps = atomic_load_explicit(rate, memory_order_relaxed);
    return gbps > 0 ? gbps : nominal;
}

double gpu_digest_gbps(void)
{
    const double nominal = THREAD_GBPS * (1 + copy_pool_size());
    return rate_of(&digests, nominal < MEMORY_GBPS ? nominal : MEMORY_GBPS);
}

double gpu_scan_gbps(void)
{
    return rate_of(&scans, SCAN_GBPS);
}

/* Either is slow for many reasons, and fast only because it can be. */
static void note_rate(_Atomic double *rate, double known, int64_t bytes, double ms)
{
    const double slowly = 0.125;
    const double gbps = (double)bytes / (ms > 1e-3 ? ms : 1e-3) * 1e-6;
    atomic_store_explicit(rate, gbps > known ? gbps : known + slowly * (gbps - known),
                          memory_order_relaxed);
}

/* ---- What may be cached ---- */

/* An operand, of which a triangle alone may count. */
static struct accel_span with_triangle(const struct accel_span *x, char uplo)
{
    struct accel_span part = *x;
    part.triangle = uplo;
    return part;
}

/* Returns the triangle that a call of BLAS reads of an operand, if it reads no more of it; else
 * 0. */
static char triangle_of(const struct accel_call *call, const struct accel_span *x)
{
    const char uplo = call->blas.flag[ACCEL_uplo];
    const bool reads_triangle =
        x == &call->span[ACCEL_a] && x->rows == x->cols && call->op->traits.triangles == 0;
    return reads_triangle && (uplo == 'L' || uplo == 'U') ? uplo : 0;
}

struct accel_span device_cache_part(const struct accel_call *call, const struct accel_span *x)
{
    const enum accel_op_group group = call->op->traits.group;
    struct accel_span part = {.ptr = NULL};
    if (!x->ptr || x->inc != 0 || x->place != ACCEL_HOST)
        return part;
    if (group == ACCEL_LEVEL_3 || group == ACCEL_LEVEL_2)
        return with_triangle(x, triangle_of(call, x));
    if (group == ACCEL_BATCH && call->batch > 1) /* not one of its products, by itself */
        scheduled_side_by_side(x, call->batch, &part);
    return part;
}

struct host_rectangle device_cache_rectangle(const struct accel_span *part)
{
    struct host_rectangle r =
        host_whole(part->ptr, part->rows, part->cols, part->ld, gpu_size_of(part));
    r.name = part->name;
    r.uplo = part->triangle;
    r.trimmed = r.uplo && chunks_trim(r.rows, r.cols, r.size);
    return r;
}

bool device_cache_may(const struct accel_call *call, const struct accel_span *x)
{
    if (!x->ptr || x->access != ACCEL_READ || !accel_is_read(call, x) || accel_adds_nothing(call) ||
        (double)accel_bytes(x) * (double)call->batch < (double)GPU_LEAST_CACHED_BYTES)
        return false;
    const struct accel_span part = device_cache_part(call, x);
    return part.ptr && accel_bytes(&part) >= GPU_LEAST_CACHED_BYTES;
}

/* ---- Looks ---- */

/* from: the operand, or its triangle, perhaps with a scan, which takes longer. */
static struct gpu_key digest_of(const struct gpu_work *work, const struct accel_span *x,
                                const struct host_rectangle *from)
{
    const double start = accel_now_ms();
    const struct gpu_tiles tiles = admission_tiles(x);
    struct host_rectangle all = *from;
    all.packer = packer_of(work->host->packer, from->host);
    const struct gpu_key key = tiles.cols > 0
                                   ? pack_matrix_digest_tiles(&all, &tiles)
                                   : pack_matrix_digest(&all, gpu_device_ld(x->rows, x->dtype));
    if (!from->scan && !from->uplo &&
        (x->ld == x->rows || x->rows * gpu_size_of(x) >= MEASURED_COLUMN))
        note_rate(&digests, gpu_digest_gbps(), accel_bytes(x), accel_now_ms() - start);
    return key;
}

/* Returns whether a kernel may begin before the scan: its result is in memory of the call's own,
 * and no speculation has failed. */
static bool may_speculate(const struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    if (work->speculation.pending || work->speculation.failed)
        return false;
    if (call->op->traits.group != ACCEL_LEVEL_2)
        return work->speculation.may;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].ptr && call->span[i].access != ACCEL_READ &&
            (gpu_in_place(&call->span[i]) || !call->span[i].inc))
            return false;
    return true;
}

bool device_cache_is_unchanged(const struct accel_span *x, uint64_t watch,
                               const struct gpu_edges *edges)
{
    const double start = accel_now_ms();
    if (!dirty_tracking_is_unchanged(x, watch, edges))
        return false;
    note_rate(&scans, gpu_scan_gbps(), accel_bytes(x), accel_now_ms() - start);
    admission_unchanged(x, watch);
    return true;
}

static bool find(struct gpu_work *work, const struct accel_span *x, const struct gpu_key *key,
                 gpu_address *memory)
{
    const int64_t ld = gpu_device_ld(x->rows, x->dtype);
    return gpu_memory(work)->find(work, key, ((x->cols - 1) * ld + x->rows) * gpu_size_of(x),
                                  memory);
}

static bool found_unchanged(struct gpu_work *work, const struct accel_span *x,
                            const struct admission_watch *w, gpu_address *memory)
{
    if (!w->validated)
        return false;
    if (may_speculate(work)) {
        if (!find(work, x, &w->key, memory))
            return false;
        work->speculation = (struct gpu_speculation){
            .may = true, .pending = true, .x = *x, .watch = w->watch, .edges = w->edges};
        return true;
    }
    if (device_cache_is_unchanged(x, w->watch, &w->edges))
        return find(work, x, &w->key, memory);
    admission_written(x, w->watch);
    return false;
}

bool device_cache_speculation_holds(struct gpu_work *work)
{
    struct gpu_speculation *speculation = &work->speculation;
    const bool holds =
        !speculation->pending ||
        device_cache_is_unchanged(&speculation->x, speculation->watch, &speculation->edges);
    speculation->pending =
        speculation->pending && holds; /* the call that begins anew does not speculate */
    speculation->failed = speculation->failed || !holds;
    return holds;
}

bool device_cache_runs_again(struct gpu_work *work, int64_t cached_bytes, enum gpu_status *status)
{
    if (*status != GPU_CHANGED || !work->speculation.failed)
        return false;
    work->host->cached_bytes = cached_bytes;
    work->host->set_up = true; /* its time says nothing of other calls */
    *status = gpu_work_give_back(work);
    return *status == GPU_OK;
}

/* Digests an operand that is watched, which validates the watch. */
static struct gpu_key digest_and_validate(const struct gpu_work *work, const struct accel_span *x,
                                          const struct host_rectangle *from,
                                          struct admission_watch *w)
{
    struct dirty_tracking_validation validation;
    dirty_tracking_validate(x, &validation);
    w->key = digest_of(work, x, from);
    w->scanned = from->scan != NULL;
    if (w->scanned)
        w->seen = *from->scan;
    w->edges = validation.edges;
    w->validated = dirty_tracking_is_validated(&validation);
    return w->key;
}

/* One that another process's call brings is there when that call is done. */
static bool found_on_its_way(struct gpu_work *work, const struct accel_span *x,
                             const struct gpu_key *key, gpu_address *memory)
{
    if (arrivals_await(work, key) && find(work, x, key, memory))
        return true;
    arrivals_begin(work, key);
    return false;
}

/* Looks for its contents. Begins to watch it before, so that the digest validates the watch:
 * unless it has changed of late, or its watch has just shown that it was written to; then behind
 * the digest that finds it, so that the next one validates it. */
static bool found_by_digest(struct gpu_work *work, const struct accel_span *x,
                            const struct host_rectangle *from, bool written, gpu_address *memory)
{
    bool may;
    struct gpu_key expected;
    struct admission_watch w = admission_watch(x, &may);
    may = may && work->host->tracks && x->access == ACCEL_READ;
    const bool begins = may && !w.watch && !written && admission_expect(x, &expected);
    if (begins)
        w.watch = dirty_tracking_begin(x);
    const bool lacks = !w.validated || (from->scan && !w.scanned);
    const bool validates = w.watch && lacks && work->host->tracks;
    const struct admission_watch before = w;
    const struct gpu_key key =
        validates ? digest_and_validate(work, x, from, &w) : digest_of(work, x, from);
    /* Another device may have what this one lacks. */
    const bool unchanged = before.validated && gpu_key_is(&key, &before.key);
    bool found = find(work, x, &key, memory);
    if (!found && work->host->packer && work->call->op->traits.group == ACCEL_LEVEL_3)
        found = found_on_its_way(work, x, &key, memory);
    if (found)
        told_inputs_keep(work, x, &key, TOLD_FOUND, from->scan);
    if (found && (begins ? w.watch != 0 : validates && w.validated))
        admission_watched(x, &w);
    else if (begins)
        write_watch_leave(w.watch);
    else if (w.watch && !unchanged)
        admission_written(x, w.watch);
    else if (found && may && (w.watch = dirty_tracking_begin(x)))
        admission_watched(x, &w);
    return found;
}

/* A part of a matrix that is there is copied to a place of its own, where it is as if it had come
 * up: so kernels give the same results, bit for bit. */
static bool copied_from_larger(struct gpu_work *work, const struct accel_span *x,
                               const struct accel_span *larger, const struct gpu_key *key,
                               int64_t row, int64_t col, gpu_address *memory)
{
    const int64_t ld = gpu_device_ld(x->rows, x->dtype), size = gpu_size_of(x);
    const int64_t larger_ld = gpu_device_ld(larger->rows, x->dtype);
    gpu_address all;
    return find(work, larger, key, &all) &&
           gpu_memory(work)->take(work, ld * x->cols * size, memory) == GPU_OK &&
           gpu_copies(work)->copy(work->ctx, (struct dmat){*memory, ld},
                                  dmat_part((struct dmat){all, larger_ld}, row, col, size), x->rows,
                                  x->cols, size) == GPU_OK;
}

/* As its process has told: whatever it tells, the part is within the larger one. */
static bool found_in_told_larger(struct gpu_work *work, const struct accel_span *x,
                                 const struct told_input *told, gpu_address *memory)
{
    struct accel_span larger = *x;
    larger.rows = told->larger_rows;
    larger.cols = told->larger_cols;
    return told->known && told->is_part &&
           copied_from_larger(work, x, &larger, &told->key, told->row, told->col, memory);
}

static bool found_in_larger(struct gpu_work *work, const struct accel_span *x, gpu_address *memory)
{
    struct accel_span larger;
    int64_t row, col;
    const struct admission_watch w = admission_around(x, &larger, &row, &col);
    if (!w.watch)
        return false;
    if (!dirty_tracking_part_is_unchanged(&larger, x, w.watch, &w.edges)) {
        admission_written(&larger, w.watch);
        return false;
    }
    if (!copied_from_larger(work, x, &larger, &w.key, row, col, memory))
        return false;
    admission_unchanged(&larger, w.watch);
    return true;
}

/* By its watch; else by a digest, unless that takes as long as the call is to take. */
static bool found(struct gpu_work *work, const struct accel_span *x, gpu_address *memory)
{
    bool may;
    const struct admission_watch w = admission_watch(x, &may);
    const struct host_rectangle all = device_cache_rectangle(x);
    if (work->host->tracks && found_unchanged(work, x, &w, memory))
        return true;
    return work->host->digests && !work->host->relies &&
           found_by_digest(work, x, &all, w.validated, memory);
}

/* Returns whether something is on the device that is probably what an operand, or its triangle, has
 * now: a result is, unless the program has changed it. */
static bool is_expected(struct gpu_device *device, const struct accel_span *part, uint64_t user,
                        struct gpu_key *key)
{
    return (admission_expect(part, key) || admission_expect_result(part, key)) &&
           device->functions->has_cached(device, key, user);
}

/* An earlier call may have left all of a matrix of which this one reads a triangle; unless the
 * triangle is known more cheaply. */
static bool is_expected_as_all(struct gpu_device *device, const struct accel_span *part,
                               const struct accel_span *all, uint64_t user)
{
    struct gpu_key key;
    bool may;
    return part->triangle && is_expected(device, all, user, &key) &&
           (admission_watch(all, &may).validated || !admission_watch(part, &may).validated);
}

static bool found_as_all(struct gpu_work *work, const struct accel_span *part,
                         const struct accel_span *all, gpu_address *memory)
{
    bool may;
    if (!is_expected_as_all(work->device, part, all, work->host->user.id) ||
        (!work->host->digests && !(work->host->tracks && admission_watch(all, &may).validated)) ||
        admission_see(all) != ADMIT_LOOKUP)
        return false;
    const bool here = found(work, all, memory);
    admission_looked(all, here);
    return here;
}

bool device_cache_is_result(const struct gpu_work *work, const struct accel_span *part)
{
    const struct accel_span all = with_triangle(part, 0);
    struct gpu_key key;
    return work->host->digests &&
           (admission_expect_result(&all, &key) || admission_expect_result(part, &key)) &&
           work->device->functions->has_cached(work->device, &key, work->host->user.id);
}

/* Returns the watch of an operand that is about to go up. That of a product with a vector begins
 * now, as no digest is taken later. */
static uint64_t watch_of(struct gpu_work *work, const struct accel_span *x)
{
    bool may;
    struct admission_watch w = admission_watch(x, &may);
    if (w.watch || !may || !work->host->tracks || !work->call->op->traits.moves)
        return work->host->tracks ? w.watch : 0;
    w.watch = dirty_tracking_begin(x);
    if (w.watch)
        admission_watched(x, &w);
    return w.watch;
}

bool device_cache_is_validated(const struct gpu_work *work, const struct accel_span *part)
{
    const struct accel_span all = with_triangle(part, 0);
    bool may;
    const struct told_input *told = told_inputs_known(work, part);
    return (told &&
            work->device->functions->has_cached(work->device, &told->key, work->host->user.id)) ||
           (work->host->tracks &&
            (admission_watch(part, &may).validated || admission_watch(&all, &may).validated));
}

/* By what its process has told: it would read it in vain for a digest. */
static bool found_as_told(struct gpu_work *work, const struct told_input *told,
                          const struct accel_span *part, gpu_address *memory)
{
    const struct gpu_key key = told->key;
    const struct gpu_scan seen = told->scan;
    const bool waits = work->host->digests && work->call->op->traits.group == ACCEL_LEVEL_3;
    if (!find(work, part, &key, memory) && !(waits && found_on_its_way(work, part, &key, memory)))
        return false;
    told_inputs_keep(work, part, &key, TOLD_FOUND, told->scanned ? &seen : NULL);
    return true;
}

/* How one goes up, after a look: as the process knows whose input it is, if it has seen it. */
static enum admission looked(const struct told_input *told, const struct accel_span *part,
                             bool here)
{
    if (told && told->seen)
        return here ? ADMIT_NONE : ADMIT_INSERT;
    return admission_looked(part, here);
}

struct cached_operand device_cache_look(struct gpu_work *work, const struct accel_span *x,
                                        const struct accel_span *part, gpu_address *memory)
{
    struct cached_operand r = {.part = *part};
    enum admission how = ADMIT_INSERT;
    const struct accel_span all = with_triangle(part, 0);
    if (!work->host->caches)
        return r;
    const struct told_input *told = told_inputs_of(work, part),
                            *known = told_inputs_known(work, part);
    if (told && !told->looks)
        return r;
    if (known) {
        const struct accel_span as_told = with_triangle(part, known->triangle);
        if (found_as_told(work, known, &as_told, memory))
            return (struct cached_operand){.part = as_told, .here = true};
    }
    if ((told && found_in_told_larger(work, &all, told, memory)) ||
        (work->host->tracks && found_in_larger(work, &all, memory)) ||
        found_as_all(work, &r.part, &all, memory))
        return (struct cached_operand){.part = all, .here = true};
    if (work->host->prefetches & 1u << (x - work->call->span))
        admission_prefetch(&r.part);
    else if (told && told->seen && work->host->digests)
        how = known ? ADMIT_INSERT : ADMIT_LOOKUP; /* one that is known has gone */
    else if (work->host->digests || device_cache_is_validated(work, part) ||
             (work->call->op->traits.moves && !work->host->packer))
        how = work->host->packer ? admission_see_shared(&r.part) : admission_see(&r.part);
    else
        return r; /* no later call would find it */
    if (how == ADMIT_LOOKUP) {
        r.here = found(work, &r.part, memory);
        how = looked(told, &r.part, r.here);
    }
    r.digests = how == ADMIT_INSERT && !work->host->relies;
    r.watch = r.digests ? watch_of(work, &r.part) : 0;
    return r;
}

enum gpu_status device_cache_insert(struct gpu_work *work, gpu_address memory,
                                    const struct cached_operand *r)
{
    const struct admission_watch validated = {
        .watch = r->watch, .validated = true, .key = r->key, .edges = r->edges};
    const enum gpu_status status = gpu_memory(work)->cache(work, memory, &r->key);
    if (status == GPU_OK) {
        admission_cached(&r->part, &r->key);
        told_inputs_keep(work, &r->part, &r->key, TOLD_BROUGHT, NULL);
    }
    if (status == GPU_OK && r->validated)
        admission_watched(&r->part, &validated);
    return status;
}

/* Of a Hermitian matrix, zeros go up as the imaginary parts of the diagonal: its digest is that of
 * the program's memory if they are zeros there. */
static bool has_real_diagonal(const struct accel_span *x)
{
    static const char zeros[8];
    const int64_t half = gpu_size_of(x) / 2;
    bool is_real = true;
    for (int64_t i = 0; is_real && i < accel_min(x->rows, x->cols); i++)
        is_real = memcmp((const char *)gpu_element(x, i, i) + half, zeros, (size_t)half) == 0;
    return is_real;
}

/* A scan reads the numbers where they are. */
static bool may_at(const struct gpu_work *work, const struct accel_span *x,
                   const struct host_rectangle *from)
{
    const struct accel_traits *traits = &work->call->op->traits;
    const bool is_here = !packer_of(work->host->packer, x->ptr);
    return (traits->group == ACCEL_LAPACK && !traits->moves) && x->inc == 0 &&
           x->place == ACCEL_HOST && (!from->hermitian || (is_here && has_real_diagonal(x))) &&
           from->rows == x->rows && from->cols == x->cols &&
           (uintptr_t)x->ptr % accel_dtype_size(accel_real_dtype(x->dtype)) == 0 &&
           accel_bytes(x) >= GPU_LEAST_CACHED_BYTES;
}

/* If a matrix's watch has shown it unchanged, a scan would see again what it has seen. Those that
 * calls overwrite are not watched. */
static bool found_at(struct gpu_work *work, const struct accel_span *part,
                     const struct host_rectangle *from, gpu_address *memory)
{
    bool may;
    const struct admission_watch w = admission_watch(part, &may);
    if (work->host->tracks && w.scanned && found_unchanged(work, part, &w, memory)) {
        gpu_scan_add(from->scan, &w.seen);
        return true;
    }
    return found_by_digest(work, part, from, w.validated && w.scanned, memory);
}

struct cached_operand device_cache_look_at(struct gpu_work *work, const struct accel_span *x,
                                           const struct host_rectangle *from, gpu_address *memory)
{
    struct cached_operand r = {.here = false};
    if (!work->host->digests || !may_at(work, x, from))
        return r;
    r.part = with_triangle(x, from->uplo);
    const struct told_input *told = told_inputs_of(work, &r.part);
    const bool known = told_inputs_known(work, &r.part) && told->triangle == r.part.triangle &&
                       (told->scanned || !from->scan);
    enum admission how = known                ? ADMIT_INSERT
                         : told && told->seen ? ADMIT_LOOKUP
                                              : admission_see(&r.part);
    if ((told && !told->looks) || (known && found_as_told(work, told, &r.part, memory))) {
        r.here = known;
        if (r.here && from->scan)
            gpu_scan_add(from->scan, &told->scan);
        return r;
    }
    if (how == ADMIT_LOOKUP) {
        r.here = found_at(work, &r.part, from, memory);
        how = looked(told, &r.part, r.here);
    }
    r.digests = how == ADMIT_INSERT;
    return r;
}

/* Of Level 3 and LAPACK, a matrix in host memory. */
static bool result_may(const struct accel_call *call, const struct accel_span *x)
{
    const enum accel_op_group group = call->op->traits.group;
    return (group == ACCEL_LEVEL_3 || (group == ACCEL_LAPACK && !call->op->traits.moves)) &&
           x->inc == 0 && x->place == ACCEL_HOST && call->batch == 1 &&
           accel_bytes(x) >= GPU_LEAST_CACHED_BYTES;
}

/* LAPACK's inputs, which its results overwrite, may come again. So may other processes' at the
 * address that stands for this one. */
void device_cache_invalidate(struct gpu_work *work, const struct accel_span *x)
{
    static const char triangles[] = {0, 'L', 'U'};
    struct accel_span all = *x;
    struct gpu_key old;
    const bool is_batch = work->call->op->traits.group == ACCEL_BATCH;
    if (!work->host->digests || work->call->op->traits.group == ACCEL_LAPACK || !all.ptr ||
        work->host->packer || all.place != ACCEL_HOST ||
        (!is_batch && !result_may(work->call, x)) ||
        (is_batch && !scheduled_side_by_side(x, work->call->batch, &all)))
        return;
    for (size_t i = 0; i < sizeof triangles; i++) {
        const struct accel_span part = with_triangle(&all, triangles[i]);
        if (admission_write(&part, &old))
            gpu_memory(work)->invalidate(work, &old);
    }
}

struct cached_operand device_cache_begin_result(struct gpu_work *work, const struct accel_span *x)
{
    struct cached_operand r = {.here = false};
    if (!work->host->digests || work->host->packer || !result_may(work->call, x))
        return r;
    device_cache_invalidate(work, x);
    r.digests = admission_want_results();
    return r;
}

enum gpu_status device_cache_insert_result(struct gpu_work *work, const struct accel_span *x,
                                           gpu_address memory, struct gpu_tiles tiles,
                                           const struct cached_operand *r)
{
    const enum gpu_status status = gpu_memory(work)->cache(work, memory, &r->key);
    if (status == GPU_OK)
        admission_cached_result(x, &r->key, tiles);
    return status;
}

/* Adds an operand, of which a part is there. */
static void add_cached(struct gpu_cached *cached, int operand, const struct accel_span *part,
                       bool watched)
{
    const int64_t bytes = accel_bytes(part);
    *(watched ? &cached->watched_bytes : &cached->digested_bytes) += bytes;
    if (!watched && operand == ACCEL_a && part->triangle && part->rows == part->cols)
        cached->beside_bytes = part->rows * (part->rows - 1) / 2 * gpu_size_of(part);
    cached->operands |= 1u << operand;
}

/* Adds an operand of LAPACK that a call reads: all of it, or a triangle, as an earlier call has
 * left it there. */
static void add_cached_at(struct gpu_cached *cached, struct gpu_device *device,
                          const struct accel_call *call, int operand)
{
    static const char triangles[] = {0, 'L', 'U', 'l', 'u'};
    const struct accel_span *x = &call->span[operand];
    struct gpu_key key;
    bool may;
    if (!x->ptr || x->access == ACCEL_WRITE || x->inc || x->place != ACCEL_HOST ||
        accel_bytes(x) < GPU_LEAST_CACHED_BYTES)
        return;
    for (size_t i = 0; i < sizeof triangles; i++) {
        const struct accel_span part = with_triangle(x, triangles[i]);
        if (!is_expected(device, &part, 0, &key))
            continue;
        add_cached(cached, operand, &part, admission_watch(&part, &may).validated);
        return;
    }
}

/* Adds one of Level 2 or 3, or of a batch, as the call would find it. */
static void add_cached_of(struct gpu_cached *cached, struct gpu_device *device,
                          const struct accel_call *call, int operand)
{
    const struct accel_span part = device_cache_part(call, &call->span[operand]),
                            all = with_triangle(&part, 0);
    struct accel_span larger;
    struct gpu_key key;
    int64_t row, col;
    bool may;
    const struct admission_watch around = admission_around(&all, &larger, &row, &col);
    if (around.watch && device->functions->has_cached(device, &around.key, 0))
        add_cached(cached, operand, &all, true);
    else if (is_expected_as_all(device, &part, &all, 0))
        add_cached(cached, operand, &all, admission_watch(&all, &may).validated);
    else if (is_expected(device, &part, 0, &key))
        add_cached(cached, operand, &part, admission_watch(&part, &may).validated);
}

struct gpu_cached gpu_cached(struct gpu_device *device, const struct accel_call *call)
{
    struct gpu_cached cached = {.operands = 0};
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (call->op->traits.group == ACCEL_LAPACK && !call->op->traits.moves)
            add_cached_at(&cached, device, call, i);
        if (device_cache_may(call, &call->span[i]))
            add_cached_of(&cached, device, call, i);
    }
    return cached;
}
