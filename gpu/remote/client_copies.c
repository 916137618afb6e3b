#include "client_copies.h"

#include <stdlib.h>

#include "base/memory/host_memory.h"
#include "call/shape.h"
#include "gpu/pack/matrix.h"

unsigned client_copies_of(const struct accel_call *call, int64_t least_bytes)
{
    unsigned which = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (x->ptr && x->inc == 0 && wire_may_ask(call, x) && wire_bytes(x) > 0 &&
            wire_bytes(x) >= least_bytes)
            which |= 1u << i;
    }
    return which;
}

/* ---- Where they are ---- */

/* Of less, it is not asked whether there is so much: a sandbox may forbid that. */
#define LARGE_BYTES ((int64_t)1 << 30)

/* Whether each element of the result depends on its own old value alone: C of a product. */
static bool writes_at_once(const struct accel_call *call)
{
    return call->op->traits.group == ACCEL_LEVEL_3 && accel_has_scalar(call->routine, ACCEL_beta);
}

/* Takes memory for a matrix that the call reads and writes. at_once: it is used after a failure
 * alone. */
static bool take_beside(struct host_rectangle *beside, bool at_once)
{
    const int64_t bytes = beside->rows * beside->cols * beside->size;
    beside->ld = beside->rows;
    const bool has = at_once || bytes < LARGE_BYTES || host_memory_has((double)bytes);
    beside->host = has ? malloc((size_t)bytes + 1) : NULL;
    if (!at_once)
        host_memory_prefer_huge(beside->host, bytes);
    return beside->host;
}

static bool place_results(struct client_copies *copies)
{
    const struct accel_call *call = copies->call;
    const unsigned which = client_copies_of(call, copies->lane->chunked_from);
    const bool at_once = writes_at_once(call);
    bool placed = true;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!(which & 1u << i))
            continue;
        copies->matrix[i] = host_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
        if (!(x->access & ACCEL_WRITE))
            continue;
        copies->result[i] = copies->beside[i] = copies->matrix[i];
        copies->beside[i].host = NULL;
        if (!accel_is_read(call, x))
            continue;
        placed = take_beside(&copies->beside[i], at_once) && placed;
        if (!at_once)
            copies->result[i] = copies->beside[i];
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
    client_copies_free(copies);
    return NULL;
}

/* ---- Tasks ---- */

/* Returns the task's rectangle of a whole matrix. */
static struct host_rectangle task_rectangle(const struct host_rectangle *all,
                                            const struct wire_task *task)
{
    struct host_rectangle r = *all;
    r.host += (task->row + task->col * r.ld) * r.size;
    r.ld += task->ld_more;
    r.rows = task->rows;
    r.cols = task->cols;
    r.uplo = task->uplo;
    r.hermitian = task->hermitian;
    r.diagonal = task->diagonal;
    r.backwards = task->backwards;
    r.trimmed = task->trimmed;
    r.streamed = task->streamed;
    return r;
}

/* Returns the matrix that a task reads or writes. */
static const struct host_rectangle *matrix_of(const struct client_copies *copies,
                                              const struct wire_task *task)
{
    return task->action == PACK_FROM_BUFFER ? &copies->result[task->operand]
                                            : &copies->matrix[task->operand];
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
    const struct host_rectangle *all = matrix_of(copies, task);
    const struct pack_chunk *chunk = &task->chunk;
    const bool is_diagonal = task->ld_more == 1 && task->rows == 1;
    if (!all->host || (task->ld_more && !is_diagonal) ||
        (task->scans && task->scans != 4 && task->scans != 8) ||
        !is_within(task->row, is_diagonal ? task->cols : task->rows, all->rows) ||
        !is_within(task->col, task->cols, all->cols) ||
        !is_within(chunk->row, chunk->rows, task->rows) ||
        !is_within(chunk->col, chunk->cols, task->cols) || task->parts < 1 || task->part < 0 ||
        task->part >= task->parts || task->device_ld < task->rows || task->chunk_bytes < 1)
        return false;
    const struct host_rectangle r = task_rectangle(all, task);
    return task->action == PACK_READ ||
           (task->ld >= chunk->rows && chunk->cols <= PACKER_BYTES && task->ld <= PACKER_BYTES &&
            is_within(task->at, pack_bytes(chunk, &r, task->ld), PACKER_BYTES));
}

static void do_task(void *context, int64_t of_job)
{
    struct client_copies *copies = context;
    const int64_t number = copies->first + of_job;
    struct wire_lane *const shared = copies->lane->shared;
    const struct wire_task *task = &copies->task[number % COPY_POOL_TASKS];
    struct host_rectangle r = task_rectangle(matrix_of(copies, task), task);
    struct gpu_scan scan = gpu_scan_begin(task->scans == 8); /* the task's own is in `seen` */
    struct gpu_key digest;
    struct pack_seen seen = {.scan = scan};
    const bool reads = task->action == PACK_READ;
    const struct staged_chunk chunk = {.host = &r,
                                       .device_ld = task->device_ld,
                                       .bytes = task->chunk_bytes,
                                       .chunk = task->chunk,
                                       .packed = reads ? pack_host(&r, &task->chunk)
                                                       : (char *)shared + WIRE_RING + task->at,
                                       .ld = reads ? r.ld : task->ld,
                                       .parts = task->parts};
    r.scan = task->scans ? &scan : NULL;
    r.digest = task->digests ? &digest : NULL;
    staged_chunk_do(&chunk, (enum pack_action)task->action, task->part, &seen);
    shared->copies.seen[number % COPY_POOL_TASKS] = seen;
}

/* Notes what comes down of a matrix that the call reads and writes. */
static bool note_down(struct client_copies *copies, const struct wire_task *task, int64_t number)
{
    if (task->action != PACK_FROM_BUFFER || !copies->beside[task->operand].host)
        return true;
    if (copies->downs == copies->room) {
        const int64_t room = 2 * copies->room + 64;
        struct client_result *more = realloc(copies->down, (size_t)room * sizeof *more);
        if (!more)
            return false;
        copies->down = more;
        copies->room = room;
    }
    copies->down[copies->downs++] = (struct client_result){*task, number};
    return true;
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
        if (!is_valid(copies, task) || !note_down(copies, task, i))
            return false;
        client_inputs_see(copies->inputs, task);
    }
    if (posted == copies->opened)
        return true;
    if (!copies->begun) {
        copies->job = (struct copy_pool_job){.task = do_task, .context = copies};
        copies->first = copies->opened;
        copy_pool_begin(&copies->job, true);
        copies->begun = true;
    }
    copies->opened = posted;
    copy_pool_open(&copies->job, posted - copies->first);
    return true;
}

/* Returns how many tasks are done. */
static int64_t count_done(struct client_copies *copies)
{
    return copies->begun ? copies->first + copy_pool_done(&copies->job) : copies->done;
}

/* Tells the server which ones are done. */
static void tell_done(struct client_copies *copies)
{
    const int64_t done = count_done(copies);
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
        copy_pool_attend(&copies->job, copies->done + 1 - copies->first);
    tell_done(copies);
    return true;
}

void client_copies_pause(struct client_copies *copies)
{
    if (copies->begun)
        copy_pool_end(&copies->job);
    copies->begun = false;
}

/* ---- The end ---- */

/* Writes a part of what is beside its matrix. */
static void write_beside(void *context, int64_t number)
{
    const struct client_copies *copies = context;
    const struct wire_task *task = &copies->down[number].task;
    const struct host_rectangle to = task_rectangle(&copies->matrix[task->operand], task),
                                from = task_rectangle(&copies->beside[task->operand], task);
    const struct staged_chunk chunk = {.host = &to,
                                       .device_ld = task->device_ld,
                                       .bytes = task->chunk_bytes,
                                       .chunk = task->chunk,
                                       .packed = pack_host(&from, &task->chunk),
                                       .ld = from.ld,
                                       .parts = task->parts};
    struct pack_seen seen;
    staged_chunk_do(&chunk, PACK_FROM_BUFFER, task->part, &seen);
}

/* Writes what has come down, part by part. */
static void write_results(const struct client_copies *copies)
{
    int64_t bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++)
        bytes += copies->beside[i].host ? wire_bytes(&copies->call->span[i]) : 0;
    struct copy_pool_job job = {.task = write_beside, .context = (void *)copies};
    copy_pool_do(&job, copies->downs, bytes >= PACK_HELPED_BYTES);
}

/* Leaves out what the client has not taken over. */
static void leave_undone(struct client_copies *copies)
{
    int64_t downs = 0;
    for (int64_t i = 0; i < copies->downs; i++)
        if (copies->down[i].number < copies->done)
            copies->down[downs++] = copies->down[i];
    copies->downs = downs;
}

bool client_copies_end(struct client_copies *copies, bool done)
{
    const bool at_once = writes_at_once(copies->call);
    if (copies->begun)
        copy_pool_end(&copies->job);
    copies->done = count_done(copies);
    copies->begun = false;
    leave_undone(copies);
    if (done && !at_once)
        write_results(copies);
    return !done && at_once && copies->downs > 0;
}

bool client_copies_recover(const struct client_copies *copies, const struct gpu_host *host)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (copies->beside[i].host)
            pack_matrix_pack(copies->beside[i].host, &copies->matrix[i], copies->beside[i].ld);
    const bool done = host->original(host->context, copies->call);
    write_results(copies);
    return done;
}

void client_copies_free(struct client_copies *copies)
{
    if (!copies)
        return;
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(copies->beside[i].host);
    free(copies->down);
    free(copies);
}
