#include "packer.h"

#include <string.h>

bool packer_has_done(struct packer *packer, int64_t number)
{
    if (number >= packer->done)
        packer->look(packer, 0);
    return number < packer->done;
}

void packer_await(struct packer *packer, int64_t number)
{
    if (number >= packer->done)
        packer->look(packer, number + 1);
}

void packer_finish(struct packer *packer)
{
    while (packer && packer->done < packer->posted)
        packer->look(packer, packer->posted);
}

/* ---- To memory of this process ---- */

/* Copies a chunk after the other. There are few such copies. */
static bool copy_chunks(struct packer *packer, const struct host_rectangle *r, char *packed,
                        enum pack_action action)
{
    char *const aside = packer->memory + PACKER_RING_BYTES;
    const int64_t bytes = PACKER_BYTES - PACKER_RING_BYTES, count = pack_count(r, r->rows, bytes);
    for (int64_t i = 0; i < count && !packer->gone; i++) {
        struct staged_chunk chunk = staged_chunk_at(r, r->rows, bytes, i);
        char *own = packed + pack_offset(&chunk.chunk, r, r->rows);
        const size_t size = (size_t)pack_bytes(&chunk.chunk, r, r->rows);
        chunk.packed = aside;
        chunk.ld = r->rows;
        if (action == PACK_FROM_BUFFER)
            memcpy(aside, own, size);
        packer->post(packer, &chunk, action, 0);
        packer_finish(packer);
        if (action == PACK_TO_BUFFER)
            memcpy(own, aside, size);
    }
    return !packer->gone;
}

bool packer_read(struct packer *packer, const struct host_rectangle *from, void *to)
{
    return copy_chunks(packer, from, to, PACK_TO_BUFFER);
}

bool packer_write(struct packer *packer, const struct host_rectangle *to, const void *from)
{
    return copy_chunks(packer, to, (char *)(uintptr_t)from, PACK_FROM_BUFFER);
}
