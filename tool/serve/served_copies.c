#define _GNU_SOURCE
#include "served_copies.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread/clock.h"

/* A client that is asked to pack answers within this, or loses its call; and in all its calls it
 * does not take longer than this, and what so slow a thread would copy in. */
#define PATIENCE_MS  5000
#define SLOWEST_GBPS 0.1

/* ---- Addresses ---- */

/* Operands' addresses are so far apart. Those of two users differ: the device cache remembers
 * operands by their addresses, and one user's calls must not tell what another one's have. */
#define STEP_BYTES (2 * SERVED_COPIES_MOST)
#define USERS      ((uint64_t)1 << 20)
#define USER_BYTES 4096
/* So do those of two devices, by so much. */
#define DEVICE_BYTES ((int64_t)USERS * USER_BYTES)

static char *addresses;
static pthread_once_t addresses_once = PTHREAD_ONCE_INIT;

/* Whoever reads or writes there, by a fault of this program, ends it. */
static void reserve_addresses(void)
{
    void *at = mmap(NULL, (size_t)(ACCEL_SPANS * STEP_BYTES), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    addresses = at == MAP_FAILED ? NULL : at;
}

static int64_t user_bytes(uint64_t user)
{
    return (int64_t)(user % USERS) * USER_BYTES;
}

char *served_copies_address(int i, uint64_t user)
{
    pthread_once(&addresses_once, reserve_addresses);
    return addresses ? addresses + i * STEP_BYTES + user_bytes(user) : NULL;
}

/* ---- Tasks ---- */

static struct served_copies *copies_of(struct packer *packer)
{
    return (struct served_copies *)packer;
}

/* Says where in an operand a rectangle begins. */
static void find_operand(const struct served_copies *copies, struct wire_task *task,
                         const struct host_rectangle *r)
{
    const int64_t at = r->host - addresses - user_bytes(copies->user) -
                       copies->number * DEVICE_BYTES,
                  within = at % STEP_BYTES / r->size;
    task->operand = (uint8_t)(at / STEP_BYTES);
    const int64_t ld = copies->call->span[task->operand].ld;
    task->row = within % ld;
    task->col = within / ld;
    task->ld_more = r->rows == 1 && r->ld == ld + 1;
}

static void post(struct packer *packer, const struct staged_chunk *chunk, enum pack_action action,
                 int part)
{
    struct wire_copies *shared = &copies_of(packer)->lane->copies;
    const struct host_rectangle *r = chunk->host;
    struct wire_task task = {.rows = r->rows,
                             .cols = r->cols,
                             .diagonal = r->diagonal,
                             .device_ld = chunk->device_ld,
                             .chunk_bytes = chunk->bytes,
                             .ld = chunk->ld,
                             .at = action == PACK_READ ? 0 : chunk->packed - packer->memory,
                             .chunk = chunk->chunk,
                             .part = part,
                             .parts = chunk->parts,
                             .action = (uint8_t)action,
                             .uplo = r->uplo,
                             .hermitian = r->hermitian,
                             .backwards = r->backwards,
                             .trimmed = r->trimmed,
                             .streamed = r->streamed,
                             .scans = !r->scan             ? 0
                                      : r->scan->is_double ? 8
                                                           : 4,
                             .digests = r->digest != NULL};
    find_operand(copies_of(packer), &task, r);
    if (packer->done == packer->posted)
        copies_of(packer)->heard_ms = accel_now_ms(); /* it had nothing to do */
    shared->task[packer->posted % COPY_POOL_TASKS] = task;
    atomic_store(&shared->posted, (uint32_t)++packer->posted);
    progress_raise(&shared->news, atomic_load(&shared->news.count) + 1);
}

/* Takes over the client's count; a wrong one ends the call. */
static void take_count(struct served_copies *copies)
{
    struct packer *packer = &copies->packer;
    const uint32_t told = atomic_load(&copies->lane->copies.done.count);
    if (told < packer->done || told > packer->posted)
        packer->gone = true;
    else if (told > packer->done)
        copies->heard_ms = accel_now_ms();
    packer->done = packer->gone ? packer->posted : told;
}

/* The thread looks after its device between two moments. */
#define MOMENT_MS 0.2

static void look(struct packer *packer, int64_t wanted)
{
    struct served_copies *copies = copies_of(packer);
    const int64_t before = packer->done;
    take_count(copies);
    if (packer->done >= wanted || packer->gone)
        return;
    const double begun_ms = accel_now_ms();
    progress_await(&copies->lane->copies.done, (uint32_t)packer->done, MOMENT_MS);
    take_count(copies);
    copies->waited_ms += accel_now_ms() - begun_ms;
    const double silent_ms = accel_now_ms() - copies->heard_ms;
    if (copies->waited_ms > copies->most_ms ||
        (packer->done == before && silent_ms > 100 &&
         (silent_ms > PATIENCE_MS || wire_is_closed(copies->socket)))) {
        packer->gone = true;
        packer->done = packer->posted;
    }
}

static void take(const struct packer *packer, int64_t number, struct pack_seen *seen)
{
    const struct served_copies *copies = (const struct served_copies *)packer;
    struct pack_seen told;
    unsigned char finite; /* a client's bool may be any byte */
    memcpy(&told, &copies->lane->copies.seen[number % COPY_POOL_TASKS], sizeof told);
    memcpy(&finite, &told.scan.finite, 1);
    *seen = (struct pack_seen){.digest = told.digest,
                               .scan = {.finite = finite != 0, .largest = told.scan.largest}};
}

/* ---- Memory ---- */

/* Little memory stays: to give it back and take it again costs more. */
#define STAYS_BYTES ((int64_t)256 << 10)

void served_copies_note(struct served_copies *copies, int64_t area_bytes)
{
    copies->packer.gone = false; /* its copies of the call before have ended */
    copies->used_bytes = accel_max(copies->used_bytes, area_bytes);
}

/* Both processes have the area's memory, until one removes it for both: not while the client
 * uses it. */
static void give_back_area(struct served_copies *copies, int64_t area_bytes)
{
    struct wire_lane *lane = copies->lane;
    atomic_store(&lane->frees, 1);
    if (!atomic_load(&lane->uses)) {
        madvise((char *)lane + WIRE_AREA, (size_t)area_bytes, MADV_REMOVE);
        copies->used_bytes = 0;
    }
    atomic_store(&lane->frees, 0);
}

void served_copies_go_to(struct served_copies *copies, struct gpu_device *device, int number,
                         struct accel_call *call)
{
    if (!copies->packer.pinned)
        copies->device = device;
    copies->number = number;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (packer_of(&copies->packer, call->span[i].ptr))
            call->span[i].ptr = (char *)call->span[i].ptr + number * DEVICE_BYTES;
}

bool served_copies_are_lost(const struct served_copies *copies)
{
    const struct packer *const packer = &copies->packer;
    return packer->lost || (packer->pinned && gpu_has_failure(copies->device));
}

void served_copies_unpin(struct served_copies *copies)
{
    if (copies->device && !served_copies_are_lost(copies))
        gpu_unpin(copies->device, &copies->packer);
}

/* A client that was given up may still be at its copies, until it sends another request. */
void served_copies_rest(struct served_copies *copies, int64_t area_bytes)
{
    if (copies->used_bytes > STAYS_BYTES)
        give_back_area(copies, area_bytes);
    if (!copies->used_ring || copies->packer.gone)
        return;
    served_copies_unpin(copies);
    if (!copies->packer.pinned)
        madvise(copies->packer.memory, (size_t)PACKER_BYTES, MADV_REMOVE);
    copies->used_ring = copies->packer.pinned;
}

/* ---- Calls ---- */

static _Atomic int64_t least_bytes;

void served_copies_set_least(int64_t bytes)
{
    atomic_store(&least_bytes, bytes);
}

int64_t served_copies_least(void)
{
    return atomic_load(&least_bytes);
}

void served_copies_init(struct served_copies *copies, struct wire_lane *lane, int socket)
{
    *copies = (struct served_copies){.packer = {.post = post,
                                                .look = look,
                                                .take = take,
                                                .first = served_copies_address(0, 0),
                                                .bytes = ACCEL_SPANS * STEP_BYTES,
                                                .memory = (char *)lane + WIRE_RING,
                                                .helpers = copy_pool_size()},
                                     .lane = lane,
                                     .socket = socket};
}

void served_copies_begin(struct served_copies *copies, const struct accel_call *call, uint64_t user)
{
    copies->call = call;
    copies->user = user;
    copies->waited_ms = 0;
    copies->most_ms = PATIENCE_MS;
    for (int i = 0; i < ACCEL_SPANS; i++)
        copies->most_ms += (double)wire_bytes(&call->span[i]) / SLOWEST_GBPS * 1e-6;
    copies->used_ring = true;
    copies->packer.posted = copies->packer.done = 0;
}
