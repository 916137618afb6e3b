#include "matrix.h"

#include "base/thread/copy_pool.h"
#include "packer.h"
#include "staged_chunk.h"

int64_t pack_matrix_bytes(const struct host_rectangle *r, int64_t packed_ld)
{
    const struct pack_chunk all = {0, r->cols, 0, r->rows};
    return r->rows > 0 && r->cols > 0 ? pack_bytes(&all, r, packed_ld) : 0;
}

/* A matrix whose chunks, or tiles, are the tasks of a job. */
struct matrix_job {
    struct host_rectangle host;
    int64_t packed_ld, chunk_bytes;
    char *packed;                  /* the packed form, if there is one */
    const struct gpu_tiles *tiles; /* by which it is digested */
    struct pack_seen seen[COPY_POOL_TASKS];
    struct copy_pool_job job;
};

/* Has the copy pool do `count` tasks, and joins what they have seen, in their order. */
static void do_all(struct matrix_job *m, void (*task)(void *, int64_t), int64_t count)
{
    int64_t taken = 0;
    m->job = (struct copy_pool_job){.task = task, .context = m};
    copy_pool_begin(&m->job, pack_matrix_bytes(&m->host, m->packed_ld) >= PACK_HELPED_BYTES);
    while (taken < count) {
        copy_pool_open(&m->job, accel_min(count, taken + COPY_POOL_TASKS));
        copy_pool_finish(&m->job, taken + 1);
        for (const int64_t done = copy_pool_done(&m->job); taken < done; taken++) {
            const struct pack_seen *seen = &m->seen[taken % COPY_POOL_TASKS];
            if (m->host.scan)
                gpu_scan_add(m->host.scan, &seen->scan);
            pack_digest_add(&m->host, seen->digest);
        }
    }
    copy_pool_end(&m->job);
}

static void do_chunks(struct matrix_job *m, void (*task)(void *, int64_t))
{
    pack_digest_shape(&m->host, m->packed_ld);
    m->chunk_bytes = chunks_of_matrix(&m->host, m->packed_ld);
    do_all(m, task, pack_count(&m->host, m->packed_ld, m->chunk_bytes));
}

/* ---- By a packer ---- */

/* Has the packer do all chunks, and joins what it has seen, in their order. */
static void read_by_packer(struct matrix_job *m, struct packer *packer)
{
    const int64_t bytes = chunks_of_matrix(&m->host, m->packed_ld),
                  count = pack_count(&m->host, m->packed_ld, bytes), first = packer->posted;
    struct pack_seen seen;
    for (int64_t taken = 0, next = 0; taken < count && !packer->gone; taken++) {
        for (; next < count && next < taken + COPY_POOL_TASKS; next++) {
            const struct staged_chunk chunk = staged_chunk_at(&m->host, m->packed_ld, bytes, next);
            packer->post(packer, &chunk, PACK_READ, 0);
        }
        while (!packer_has_done(packer, first + taken))
            packer_await(packer, first + taken);
        packer->take(packer, first + taken, &seen);
        pack_digest_add(&m->host, seen.digest);
        if (m->host.scan)
            gpu_scan_add(m->host.scan, &seen.scan);
    }
    packer_finish(packer);
}

/* ---- Digests ---- */

/* Reads a chunk in host memory. */
static void read_chunk(const struct host_rectangle *r, int64_t packed_ld, int64_t bytes,
                       int64_t number, struct pack_seen *seen)
{
    struct staged_chunk chunk = staged_chunk_at(r, packed_ld, bytes, number);
    chunk.packed = pack_host(r, &chunk.chunk);
    chunk.ld = r->ld;
    staged_chunk_do(&chunk, PACK_READ, 0, seen);
}

static void digest_task(void *job, int64_t number)
{
    struct matrix_job *m = job;
    read_chunk(&m->host, m->packed_ld, m->chunk_bytes, number, &m->seen[number % COPY_POOL_TASKS]);
}

/* Digests a tile as the device's pipeline does that brings it down, in the chunks of that copy. */
static void digest_tile(void *job, int64_t number)
{
    struct matrix_job *m = job;
    const struct host_rectangle tile = tiles_at(&m->host, m->tiles, number);
    const int64_t ld = pack_ld(tile.rows, tile.size), bytes = chunks_of_tile(&tile, ld),
                  chunks = pack_count(&tile, ld, bytes);
    struct pack_seen *all = &m->seen[number % COPY_POOL_TASKS], one;
    *all = (struct pack_seen){.digest = {{0, 0}}};
    if (tile.scan)
        all->scan = gpu_scan_begin(tile.scan->is_double);
    for (int64_t i = 0; i < chunks; i++) {
        read_chunk(&tile, ld, bytes, i, &one);
        all->digest = gpu_digest_join(all->digest, one.digest);
        if (tile.scan)
            gpu_scan_add(&all->scan, &one.scan);
    }
}

struct gpu_key pack_matrix_digest(const struct host_rectangle *from, int64_t device_ld)
{
    struct gpu_key digest;
    struct matrix_job m = {.host = *from, .packed_ld = device_ld};
    m.host.digest = &digest;
    if (!from->packer) {
        do_chunks(&m, digest_task);
        return digest;
    }
    pack_digest_shape(&m.host, device_ld);
    read_by_packer(&m, from->packer);
    return digest;
}

struct gpu_key pack_matrix_digest_tiles(const struct host_rectangle *from,
                                        const struct gpu_tiles *tiles)
{
    struct gpu_key digest = tiles_shape(from, tiles);
    struct matrix_job m = {
        .host = *from, .packed_ld = pack_ld(from->rows, from->size), .tiles = tiles};
    m.host.digest = &digest;
    do_all(&m, digest_tile, tiles_count(from, tiles));
    return digest;
}

/* ---- Packing and unpacking ---- */

static void copy_chunk(struct matrix_job *m, enum pack_action action, int64_t number)
{
    struct staged_chunk chunk = staged_chunk_at(&m->host, m->packed_ld, m->chunk_bytes, number);
    chunk.packed = m->packed + pack_offset(&chunk.chunk, &m->host, m->packed_ld);
    chunk.ld = m->packed_ld;
    staged_chunk_do(&chunk, action, 0, &m->seen[number % COPY_POOL_TASKS]);
}

static void pack_task(void *job, int64_t number)
{
    copy_chunk(job, PACK_TO_BUFFER, number);
}

static void unpack_task(void *job, int64_t number)
{
    copy_chunk(job, PACK_FROM_BUFFER, number);
}

void pack_matrix_pack(void *packed, const struct host_rectangle *from, int64_t packed_ld)
{
    struct matrix_job m = {.host = *from, .packed_ld = packed_ld, .packed = packed};
    do_chunks(&m, pack_task);
}

void pack_matrix_unpack(const struct host_rectangle *to, const void *packed, int64_t packed_ld)
{
    struct matrix_job m = {
        .host = *to, .packed_ld = packed_ld, .packed = (char *)(uintptr_t)packed};
    m.host.streamed = pack_matrix_bytes(to, packed_ld) >= PACK_STREAMED_BYTES;
    do_chunks(&m, unpack_task);
}
