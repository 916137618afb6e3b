#include "dirty_tracking.h"

#include "base/memory/write_watch.h"

/* The operand's memory [first, end), with gaps between columns, and the pages [inner, outer) that
 * are its own. */
struct operand_pages {
    uintptr_t first, end, inner, outer;
};

static struct operand_pages pages_of(const struct accel_span *x)
{
    const uintptr_t page = write_watch_page(), first = (uintptr_t)x->ptr;
    const uintptr_t end = first + (uintptr_t)accel_extent(x, 1);
    const uintptr_t inner = (first + page - 1) / page * page, outer = end / page * page;
    return (struct operand_pages){first, end, inner, outer > inner ? outer : inner};
}

/* Joins the elements in [from, to) to a digest. */
static struct gpu_key digest_part(const struct accel_span *x, uintptr_t from, uintptr_t to,
                                  struct gpu_key key)
{
    const uintptr_t size = accel_dtype_size(x->dtype), first = (uintptr_t)x->ptr;
    const uintptr_t bytes = (uintptr_t)x->rows * size, step = (uintptr_t)x->ld * size;
    for (uintptr_t at = first + (from - first) / step * step; at < to; at += step) {
        const uintptr_t start = at > from ? at : from, end = at + bytes < to ? at + bytes : to;
        if (start < end)
            key =
                gpu_digest_join(key, gpu_digest_columns((const char *)start, (int64_t)(end - start),
                                                        1, (int64_t)(end - start)));
    }
    return key;
}

static struct gpu_key digest_first(const struct accel_span *x, const struct operand_pages *p)
{
    return digest_part(x, p->first, p->inner, (struct gpu_key){{0, 0}});
}

static struct gpu_key digest_last(const struct accel_span *x, const struct operand_pages *p)
{
    return digest_part(x, p->outer, p->end, (struct gpu_key){{0, 0}});
}

uint64_t dirty_tracking_begin(const struct accel_span *x)
{
    const struct operand_pages p = pages_of(x);
    return p.inner < p.outer ? write_watch_begin(p.inner, p.outer) : 0;
}

/* One watch of all pages: each looks for what may be pinned, which takes longer than to scan some
 * more pages. */
void dirty_tracking_validate(const struct accel_span *x,
                             struct dirty_tracking_validation *validation)
{
    const struct operand_pages p = pages_of(x);
    const uintptr_t page = write_watch_page();
    const uintptr_t start = p.first < p.inner ? p.inner - page : p.inner,
                    end = p.outer < p.end ? p.outer + page : p.outer;
    validation->has_edges = start < p.inner || p.outer < end;
    validation->watch = validation->has_edges ? write_watch_begin(start, end) : 0;
    validation->edges = (struct gpu_edges){digest_first(x, &p), digest_last(x, &p)};
}

bool dirty_tracking_is_validated(struct dirty_tracking_validation *validation)
{
    const bool validated = !validation->has_edges || write_watch_unchanged(validation->watch);
    write_watch_leave(validation->watch);
    return validated;
}

bool dirty_tracking_part_is_unchanged(const struct accel_span *x, const struct accel_span *part,
                                      uint64_t watch, const struct gpu_edges *edges)
{
    const struct operand_pages p = pages_of(x), q = pages_of(part);
    const uintptr_t page = write_watch_page();
    if (!write_watch_unchanged_in(watch, q.first / page * page, (q.end + page - 1) / page * page))
        return false;
    const struct gpu_key first = q.first < p.inner ? digest_first(x, &p) : edges->first,
                         last = q.end > p.outer ? digest_last(x, &p) : edges->last;
    return gpu_key_is(&first, &edges->first) && gpu_key_is(&last, &edges->last);
}

bool dirty_tracking_is_unchanged(const struct accel_span *x, uint64_t watch,
                                 const struct gpu_edges *edges)
{
    return dirty_tracking_part_is_unchanged(x, x, watch, edges);
}
