/* Kernel values of one vector with many, which are cached on the device from call to call. */
#include "smo_steps.h"

/* Each array is cached by itself, under a key of its own. */
static struct gpu_key key_of_part(const struct gpu_key *key, unsigned part)
{
    return (struct gpu_key){{key->word[0], key->word[1] + part}};
}

static void cache_array(struct smo *s, const struct gpu_key *key, unsigned part, gpu_address memory)
{
    const struct gpu_key own = key_of_part(key, part);
    GPU_DO(s, gpu_memory(s->work)->cache(s->work, memory, &own));
}

static bool find_array(struct smo *s, const struct gpu_key *key, unsigned part, gpu_address *memory)
{
    const struct gpu_key own = key_of_part(key, part);
    return s->status == GPU_OK && gpu_memory(s->work)->find(s->work, &own, 0, memory);
}

void smo_cache(struct smo *s, const struct gpu_key *key, const struct smo_matrix *x)
{
    cache_array(s, key, 0, x->values);
    if (x->start) {
        cache_array(s, key, 1, x->start);
        cache_array(s, key, 2, x->column);
    }
}

bool smo_find(struct smo *s, const struct gpu_key *key, bool sparse, struct smo_matrix *x)
{
    x->ld = gpu_device_ld(x->features, ACCEL_FLOAT64);
    return find_array(s, key, 0, &x->values) &&
           (!sparse || (find_array(s, key, 1, &x->start) && find_array(s, key, 2, &x->column)));
}

void smo_vector(struct smo *s, const struct smo_matrix *x, gpu_address v, double rest,
                double *values)
{
    struct svm_rows rows = {x->rows, x->features, x->ld, x->values, x->start, x->column, 0};
    gpu_address to = smo_take(s, x->rows * (int64_t)sizeof *values);
    const struct gpu_grid grid = {(unsigned)accel_min(x->rows, 1 << 20), 1,
                                  smo_threads(s, "svm_vector", SVM_VECTOR_THREADS), 0, false};
    smo_launch(s, "svm_vector", grid, (void *[]){&s->kernel, &rows, &v, &rest, &to});
    smo_read(s, values, to, x->rows * (int64_t)sizeof *values);
}
