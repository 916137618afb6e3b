#include "staged_chunk.h"

/* A chunk has the digest of its parts, one after the other. */
static void digest_part(const struct staged_chunk *c, const struct pack_chunk *part,
                        const char *packed, struct gpu_key *digest)
{
    const struct gpu_key own = pack_digest(c->host, part, packed, c->ld);
    *digest = c->parts > 1 ? own : gpu_digest_join(*digest, own);
}

static void scan_part(const struct staged_chunk *c, const struct pack_chunk *part,
                      const char *packed, struct gpu_scan *scan)
{
    for (int64_t col = 0; col < part->cols; col++) {
        const struct pack_rows rows = pack_rows_of(c->host, part, col);
        gpu_scan_numbers(scan, packed + (col * c->ld + rows.first) * c->host->size,
                         (rows.last - rows.first) * c->host->size);
    }
}

void staged_chunk_do(const struct staged_chunk *c, enum pack_action action, int task,
                     struct pack_seen *seen)
{
    const struct host_rectangle *host = c->host;
    struct host_rectangle scanned;
    const int64_t first = c->parts > 1 ? task : 0,
                  last = c->parts > 1 ? first + 1 : pack_parts(host, c->device_ld, c->bytes);
    seen->digest = (struct gpu_key){{0, 0}};
    if (host->scan) {
        seen->scan = gpu_scan_begin(host->scan->is_double);
        scanned = *host;
        scanned.scan = &seen->scan;
        host = &scanned;
    }
    for (int64_t i = first; i < last; i++) {
        const struct pack_chunk part = staged_chunk_part(c, i);
        char *packed = c->packed + pack_part_offset(host, &c->chunk, &part, c->ld);
        if (part.cols == 0)
            continue;
        if (c->old)
            pack_from_host(c->old + pack_part_offset(host, &c->chunk, &part, host->rows), host,
                           &part, host->rows);
        if (action == PACK_TO_BUFFER)
            pack_from_host(packed, host, &part, c->ld);
        else if (action == PACK_FROM_BUFFER)
            pack_to_host(host, &part, packed, c->ld);
        else if (host->scan)
            scan_part(c, &part, packed, host->scan);
        if (host->digest) /* of our own copy, to which the program does not write */
            digest_part(c, &part, packed, &seen->digest);
    }
}

void staged_chunk_take(struct staged_chunk *c, int task, const struct pack_seen *seen)
{
    const struct host_rectangle *host = c->host;
    if ((!host->scan && !host->digest) || (c->parts > 1 && staged_chunk_part(c, task).cols == 0))
        return;
    if (host->scan)
        gpu_scan_add(host->scan, &seen->scan);
    c->digest = c->parts > 1 ? gpu_digest_join(c->digest, seen->digest) : seen->digest;
}

void pack_digest_shape(const struct host_rectangle *r, int64_t device_ld)
{
    const int64_t shape[] = {r->rows, r->cols, r->size, device_ld, r->uplo};
    if (r->digest)
        *r->digest = gpu_digest_columns((const char *)shape, sizeof shape, 1, sizeof shape);
}
