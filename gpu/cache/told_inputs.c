#include "told_inputs.h"

struct told_input *told_inputs_of(const struct gpu_work *work, const struct accel_span *part)
{
    struct told_inputs *told = work->host->told;
    for (int i = 0; told && i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &told->input[i].x;
        if (x->ptr && x->ptr == part->ptr && x->rows == part->rows && x->cols == part->cols &&
            x->dtype == part->dtype)
            return &told->input[i];
    }
    return NULL;
}

const struct told_input *told_inputs_known(const struct gpu_work *work,
                                           const struct accel_span *part)
{
    const struct told_input *told = told_inputs_of(work, part);
    const bool is_it = told && told->known && !told->is_part &&
                       (!told->triangle || told->triangle == part->triangle);
    return is_it ? told : NULL;
}

void told_inputs_keep(struct gpu_work *work, const struct accel_span *part,
                      const struct gpu_key *key, enum told_kept kept, const struct gpu_scan *scan)
{
    struct told_input *told = told_inputs_of(work, part);
    if (!told)
        return;
    told->kept = kept;
    told->triangle = part->triangle;
    told->key = *key;
    told->scanned = scan != NULL;
    if (scan)
        told->scan = *scan;
}
