#include "pack_job.h"

/* Threads help with copies of at least this: one thread takes several times as long for it as to
 * wake another up. */
#define HELPED_BYTES (1 << 20)

/* One thread packs a piece of this while the one before is on its way. */
#define ALONE_BYTES (LANE_SLOT_BYTES / 2)

int64_t pack_matrix_bytes(const struct lane_rectangle *r, int64_t packed_ld)
{
    const struct pack_piece all = {0, r->cols, 0, r->rows};
    return r->rows > 0 && r->cols > 0 ? pack_bytes(&all, r, packed_ld) : 0;
}

static int64_t choose_piece(const struct pack_job *p, int64_t least_piece)
{
    if (p->host.digest || p->host.trimmed || (least_piece == 0 && p->helpers > 0))
        return pieces_of_matrix(&p->host, p->device_ld);
    return p->helpers > 0 ? pieces_bytes(&p->host, p->device_ld, PIECES_OF_MATRIX, least_piece)
                          : ALONE_BYTES;
}

void pack_job_begin(struct pack_job *p, void (*item)(void *, int64_t), int64_t least_piece)
{
    const int64_t bytes = pack_matrix_bytes(&p->host, p->device_ld);
    p->job = (struct crew_job){.item = item, .context = p};
    p->helpers = crew_begin(&p->job, bytes >= HELPED_BYTES);
    p->host.streamed = bytes >= PACK_STREAMED_BYTES;
    p->piece_bytes = choose_piece(p, least_piece);
    p->count = pack_count(&p->host, p->device_ld, p->piece_bytes);
    p->parts = least_piece > 0 && p->helpers > 0 && !p->fresh
                   ? pack_parts(&p->host, p->device_ld, p->piece_bytes)
                   : 1;
}

/* ---- Items ---- */

static struct pack_piece part_of(const struct pack_job *p, const struct pack_piece *piece,
                                 int64_t number)
{
    return pack_part(&p->host, p->device_ld, p->piece_bytes, piece, number);
}

/* The parts of an item's piece that are the item's: from *first on, behind the last one *last. */
static void parts_of_item(const struct pack_job *p, int64_t item, int64_t *first, int64_t *last)
{
    *first = p->parts > 1 ? item % p->parts : 0;
    *last = p->parts > 1 ? *first + 1 : pack_parts(&p->host, p->device_ld, p->piece_bytes);
}

/* Returns what the item's scan begins with. */
static struct gpu_scan *begin_scan(struct pack_job *p, int64_t item)
{
    struct gpu_scan *seen = &p->seen[item % CREW_ITEMS];
    if (p->host.scan)
        *seen = gpu_scan_begin(p->host.scan->is_double);
    return seen;
}

/* Joins the digest of a part that begins at `first` to its item's. A piece has the digest of its
 * parts, one after the other. */
static void digest_part(struct pack_job *p, int64_t item, const struct pack_piece *part,
                        const char *first, int64_t ld)
{
    struct gpu_key *digest = &p->digest[item % CREW_ITEMS];
    const struct gpu_key own = pack_digest(&p->host, part, first, ld);
    *digest = p->parts > 1 ? own : gpu_digest_join(*digest, own);
}

void pack_job_pack(struct pack_job *p, int64_t item, char *slot)
{
    const struct pack_piece piece = pack_job_piece(p, item / p->parts);
    const int64_t ld = pack_slot_ld(&p->host, &piece, p->device_ld);
    struct lane_rectangle from = p->host;
    int64_t first, last;
    parts_of_item(p, item, &first, &last);
    from.scan = from.scan ? begin_scan(p, item) : NULL;
    p->digest[item % CREW_ITEMS] = (struct gpu_key){{0, 0}};
    for (int64_t i = first; i < last; i++) {
        const struct pack_piece part = part_of(p, &piece, i);
        char *to = slot + pack_part_offset(&from, &piece, &part, ld);
        if (part.cols == 0)
            continue;
        pack_from_host(to, &from, &part, ld);
        if (from.digest) /* of our own copy, to which the program does not write */
            digest_part(p, item, &part, to, ld);
    }
}

/* Unpacks an item from its piece's packed form with leading dimension `ld`. */
static void unpack(struct pack_job *p, int64_t item, const struct pack_piece *piece,
                   const char *packed, int64_t ld)
{
    int64_t first, last;
    parts_of_item(p, item, &first, &last);
    p->digest[item % CREW_ITEMS] = (struct gpu_key){{0, 0}};
    for (int64_t i = first; i < last; i++) {
        const struct pack_piece part = part_of(p, piece, i);
        const char *from = packed + pack_part_offset(&p->host, piece, &part, ld);
        if (part.cols == 0)
            continue;
        pack_to_host(&p->host, &part, from, ld);
        if (p->host.digest)
            digest_part(p, item, &part, from, ld);
    }
}

void pack_job_unpack(struct pack_job *p, int64_t item, const char *slot)
{
    const struct pack_piece piece = pack_job_piece(p, item / p->parts);
    unpack(p, item, &piece, slot, pack_slot_ld(&p->host, &piece, p->device_ld));
}

/* ---- Digests ---- */

/* Returns the digest of a piece whose items are done. */
static struct gpu_key digest_of_piece(const struct pack_job *p, int64_t number)
{
    const struct pack_piece piece = pack_job_piece(p, number);
    struct gpu_key digest = {{0, 0}};
    if (p->parts == 1)
        return p->digest[number % CREW_ITEMS];
    for (int64_t i = 0; i < p->parts; i++)
        if (part_of(p, &piece, i).cols > 0)
            digest = gpu_digest_join(digest, p->digest[(number * p->parts + i) % CREW_ITEMS]);
    return digest;
}

void pack_job_digest_shape(const struct pack_job *p)
{
    const struct lane_rectangle *r = &p->host;
    const int64_t shape[] = {r->rows, r->cols, r->size, p->device_ld, r->uplo};
    if (r->digest)
        *r->digest = gpu_digest_columns((const char *)shape, sizeof shape, 1, sizeof shape);
}

void pack_job_take_seen(struct pack_job *p, int64_t number)
{
    for (int64_t i = 0; p->host.scan && i < p->parts; i++)
        gpu_scan_add(p->host.scan, &p->seen[(number * p->parts + i) % CREW_ITEMS]);
    if (p->host.digest)
        *p->host.digest = gpu_digest_join(*p->host.digest, digest_of_piece(p, number));
}

void pack_job_take_all_seen(struct pack_job *p, int64_t *taken, int64_t done)
{
    for (; *taken < done; ++*taken)
        pack_job_take_seen(p, *taken);
}

/* ---- Whole matrices ---- */

/* Looks at the numbers of a piece, if that is asked for. */
static void scan_piece(struct gpu_scan *seen, const struct lane_rectangle *r,
                       const struct pack_piece *piece)
{
    for (int64_t col = 0; r->scan && col < piece->cols; col++) {
        const struct pack_rows rows = pack_rows_of(r, piece, col);
        gpu_scan_numbers(seen, pack_host(r, piece) + (col * r->ld + rows.first) * r->size,
                         (rows.last - rows.first) * r->size);
    }
}

/* Returns the digest of a piece in host memory, and looks at its numbers. */
static struct gpu_key read_piece(const struct lane_rectangle *r, int64_t packed_ld,
                                 int64_t piece_bytes, int64_t number, struct gpu_scan *seen)
{
    const struct pack_piece piece = pack_piece(r, packed_ld, piece_bytes, number);
    const int64_t parts = pack_parts(r, packed_ld, piece_bytes);
    struct gpu_key digest = {{0, 0}};
    for (int64_t i = 0; i < parts; i++) {
        const struct pack_piece part = pack_part(r, packed_ld, piece_bytes, &piece, i);
        if (part.cols > 0)
            digest = gpu_digest_join(digest, pack_digest(r, &part, pack_host(r, &part), r->ld));
    }
    scan_piece(seen, r, &piece);
    return digest;
}

static void digest_item(void *job, int64_t number)
{
    struct pack_job *p = job;
    p->digest[number % CREW_ITEMS] =
        read_piece(&p->host, p->device_ld, p->piece_bytes, number, begin_scan(p, number));
}

/* Digests a cell as the device's flow does that brings it down, in the pieces of that copy. */
static void digest_cell(void *job, int64_t number)
{
    struct pack_job *p = job;
    const struct lane_rectangle cell = cells_at(&p->host, p->cells, number);
    const int64_t ld = pack_ld(cell.rows, cell.size), bytes = pieces_of_cell(&cell, ld),
                  pieces = pack_count(&cell, ld, bytes);
    struct gpu_scan *seen = begin_scan(p, number);
    struct gpu_key digest = {{0, 0}};
    for (int64_t i = 0; i < pieces; i++)
        digest = gpu_digest_join(digest, read_piece(&cell, ld, bytes, i, seen));
    p->digest[number % CREW_ITEMS] = digest;
}

/* Has the crew do the items of a job that has begun without a device, and takes over what they have
 * seen. */
static void do_all(struct pack_job *p)
{
    int64_t taken = 0;
    while (taken < p->count) {
        pack_job_open(p, accel_min(p->count, taken + CREW_ITEMS));
        crew_finish(&p->job, taken + 1);
        pack_job_take_all_seen(p, &taken, pack_job_done(p));
    }
    crew_end(&p->job);
}

struct gpu_key pack_matrix_digest(const struct lane_rectangle *from, int64_t device_ld)
{
    struct gpu_key digest;
    struct pack_job p = {.host = *from, .device_ld = device_ld};
    p.host.digest = &digest;
    pack_job_digest_shape(&p);
    pack_job_begin(&p, digest_item, 0);
    do_all(&p);
    return digest;
}

struct gpu_key pack_matrix_digest_cells(const struct lane_rectangle *from,
                                        const struct gpu_cells *cells)
{
    struct gpu_key digest = cells_shape(from, cells);
    struct pack_job p = {
        .host = *from, .device_ld = pack_ld(from->rows, from->size), .cells = cells};
    p.host.digest = &digest;
    pack_job_begin(&p, digest_cell, 0);
    p.count = cells_count(from, cells);
    do_all(&p);
    return digest;
}

/* A matrix whose packed form is in host memory. */
struct unpacking {
    struct pack_job job; /* first: items get a pointer to it */
    const char *packed;
};

static void unpack_item(void *job, int64_t number)
{
    const struct unpacking *u = job;
    struct pack_job *p = job;
    const struct pack_piece piece = pack_job_piece(p, number);
    unpack(p, number, &piece, u->packed + pack_offset(&piece, &p->host, p->device_ld),
           p->device_ld);
}

void pack_matrix_unpack(const struct lane_rectangle *to, const void *packed, int64_t packed_ld)
{
    struct unpacking u = {.job = {.host = *to, .device_ld = packed_ld}, .packed = packed};
    pack_job_digest_shape(&u.job);
    pack_job_begin(&u.job, unpack_item, 0);
    do_all(&u.job);
}
