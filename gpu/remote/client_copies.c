#include "client_copies.h"

#include <stdlib.h>

#include "base/memory/host_memory.h"
#include "call/shape.h"
#include "gpu/pack/matrix.h"

/* With fewer bytes, all operands are sent at once, before the call. */
#define LEAST_BYTES ((int64_t)256 << 10)

bool client_copies_of(const struct accel_call *call)
{
    int64_t bytes = 0;
    if (call->op->traits.group != ACCEL_LEVEL_3 || call->batch != 1)
        return false;
    for (int i = 0; i < ACCEL_SPANS && bytes < LEAST_BYTES; i++)
        bytes += call->span[i].ptr ? wire_bytes(&call->span[i]) : 0;
    return bytes >= LEAST_BYTES;
}

/* ---- Where they are ---- */

/* Takes memory beside a matrix that the call reads and writes. */
static bool take_beside(struct host_rectangle *result)
{
    const int64_t bytes = result->rows * result->cols * result->size;
    result->ld = result->rows;
    result->host = malloc((size_t)bytes + 1);
    host_memory_prefer_huge(result->host, bytes);
    return result->host;
}

static bool is_beside(const struct client_copies *copies, int i)
{
    return copies->result[i].host && copies->result[i].host != copies->matrix[i].host;
}

static bool place_results(struct client_copies *copies)
{
    const struct accel_call *call = copies->call;
    bool placed = true;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->ptr || wire_bytes(x) == 0)
            continue;
        copies->matrix[i] = host_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
        if (!(x->access & ACCEL_WRITE))
            continue;
        copies->result[i] = copies->matrix[i];
        if (accel_is_read(call, x))
            placed = take_beside(&copies->result[i]) && placed;
    }
    return placed;
}

struct client_copies *client_copies_begin(struct lane *lane, const struct accel_call *call)
{
    struct client_copies *copies = calloc(1, sizeof *copies);
    struct wire_copies *shared = &lane->shared->copies;
    if (!copies)
        return NULL;
    copies->call = call;
    copies->lane = lane;
    atomic_store(&shared->posted, 0);
    atomic_store(&shared->done.count, 0);
    if (place_results(copies))
        return copies;
    client_copies_end(copies, false);
    return NULL;
}

/* ---- Tasks ---- */

static struct host_rectangle task_rectangle(const struct client_copies *copies,
                                            const struct wire_task *task)
{
    static struct gpu_key wanted; /* never written: a task has its own */
    struct host_rectangle r = task->action == PACK_FROM_BUFFER ? copies->result[task->operand]
                                                               : copies->matrix[task->operand];
    r.host += (task->row + task->col * r.ld) * r.size;
    r.rows = task->rows;
    r.cols = task->cols;
    r.uplo = task->uplo;
    r.hermitian = task->hermitian;
    r.diagonal = task->diagonal;
    r.backwards = task->backwards;
    r.trimmed = task->trimmed;
    r.streamed = task->streamed;
    r.digest = task->digests ? &wanted : NULL;
    return r;
}

static bool is_within(int64_t first, int64_t count, int64_t all)
{
    return first >= 0 && count >= 0 && first <= all && count <= all - first;
}

/* Whether a task is of a matrix of the call, and within the ring. */
static bool is_valid(const struct client_copies *copies, const struct wire_task *task)
{
    if (task->action > PACK_READ || task->operand >= ACCEL_SPANS)
        return false;
    const struct host_rectangle *all = task->action == PACK_FROM_BUFFER
                                           ? &copies->result[task->operand]
                                           : &copies->matrix[task->operand];
    const struct pack_chunk *chunk = &task->chunk;
    if (!all->host || !is_within(task->row, task->rows, all->rows) ||
        !is_within(task->col, task->cols, all->cols) ||
        !is_within(chunk->row, chunk->rows, task->rows) ||
        !is_within(chunk->col, chunk->cols, task->cols) || task->parts < 1 || task->part < 0 ||
        task->part >= task->parts || task->device_ld < task->rows || task->chunk_bytes < 1)
        return false;
    const struct host_rectangle r = task_rectangle(copies, task);
    return task->action == PACK_READ ||
           (task->ld >= chunk->rows && chunk->cols <= PACKER_BYTES && task->ld <= PACKER_BYTES &&
            is_within(task->at, pack_bytes(chunk, &r, task->ld), PACKER_BYTES));
}

static void do_task(void *context, int64_t number)
{
    struct client_copies *copies = context;
    struct wire_lane *const shared = copies->lane->shared;
    const struct wire_task *task = &copies->task[number % COPY_POOL_TASKS];
    const struct host_rectangle r = task_rectangle(copies, task);
    struct pack_seen seen;
    const bool reads = task->action == PACK_READ;
    const struct staged_chunk chunk = {.host = &r,
                                       .device_ld = task->device_ld,
                                       .bytes = task->chunk_bytes,
                                       .chunk = task->chunk,
                                       .packed = reads ? pack_host(&r, &task->chunk)
                                                       : (char *)shared + WIRE_RING + task->at,
                                       .ld = reads ? r.ld : task->ld,
                                       .parts = task->parts};
    staged_chunk_do(&chunk, (enum pack_action)task->action, task->part, &seen);
    shared->copies.digest[number % COPY_POOL_TASKS] = seen.digest;
}

/* Opens the tasks that the server has posted since. */
static bool open_tasks(struct client_copies *copies)
{
    const struct wire_copies *shared = &copies->lane->shared->copies;
    const int64_t posted = atomic_load(&shared->posted);
    if (posted < copies->opened || posted > copies->done + COPY_POOL_TASKS)
        return false;
    for (int64_t i = copies->opened; i < posted; i++) {
        struct wire_task *task = &copies->task[i % COPY_POOL_TASKS];
        *task = shared->task[i % COPY_POOL_TASKS];
        if (!is_valid(copies, task))
            return false;
    }
    if (posted == copies->opened)
        return true;
    if (!copies->begun) {
        copies->job = (struct copy_pool_job){.task = do_task, .context = copies};
        copy_pool_begin(&copies->job, true);
        copies->begun = true;
    }
    copies->opened = posted;
    copy_pool_open(&copies->job, posted);
    return true;
}

/* Tells the server which ones are done. */
static void tell_done(struct client_copies *copies)
{
    const int64_t done = copies->begun ? copy_pool_done(&copies->job) : 0;
    if (done == copies->done)
        return;
    copies->done = done;
    progress_raise(&copies->lane->shared->copies.done, (uint32_t)done);
}

bool client_copies_attend(struct client_copies *copies, bool *idle)
{
    if (!open_tasks(copies))
        return false;
    *idle = copies->done == copies->opened;
    if (!*idle)
        copy_pool_attend(&copies->job, copies->done + 1);
    tell_done(copies);
    return true;
}

/* ---- The end ---- */

static void write_result(const struct client_copies *copies, int i)
{
    struct host_rectangle to = copies->matrix[i];
    to.uplo = copies->call->span[i].triangle;
    pack_matrix_unpack(&to, copies->result[i].host, to.rows);
}

void client_copies_end(struct client_copies *copies, bool done)
{
    if (!copies)
        return;
    if (copies->begun)
        copy_pool_end(&copies->job);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (!is_beside(copies, i))
            continue;
        if (done)
            write_result(copies, i);
        free(copies->result[i].host);
    }
    free(copies);
}
