/*
 * Models that have been seen, by the addresses of their first and last support vector. Whether a
 * model's vectors are worth a place on the device depends on how many predictions there will be; as
 * many as there have been is a good guess. A wrong hint costs time, and nothing else: what is on
 * the device is known by its content (predict_content.c).
 */
#include "base/memory/lru.h"
#include "predict.h"

struct model {
    struct lru_entry lru;
    struct model_key {
        const void *first, *last;
        int64_t vectors;
    } key;
    bool sampled;
    struct svm_admission admission;
};
LRU(models, model, 8, 8);

static const void *address_of(const struct svm_view *view, int i)
{
    return view->dense ? (const void *)view->dense[i].values : view->nodes[i];
}

/* With the lock. Returns the model's entry, a new one if it has none. */
static struct model *find_model(const struct svm_view *view)
{
    const struct model_key key = {address_of(view, 0), address_of(view, view->vectors - 1),
                                  view->vectors};
    struct model *model = lru_lookup(&models, &key);
    if (!model) {
        model = lru_insert(&models, &key);
        *model = (struct model){.lru = model->lru, .key = key};
    }
    return model;
}

/* Returns how many elements x has that y lacks; the indices ascend. */
static int64_t count_alone(const struct libsvm_node *x, const struct libsvm_node *y)
{
    int64_t alone = 0;
    if (!x || !y)
        return 0;
    for (; x->index != -1; x++) {
        while (y->index != -1 && y->index < x->index)
            y++;
        alone += y->index != x->index;
    }
    return alone;
}

static const struct libsvm_node *sample_of(const struct svm_view *view, int i, int samples)
{
    return view->nodes[(int64_t)(i % samples) * view->vectors / samples];
}

/* Some vectors tell how long all are, and how many features two of them share. */
static void sample(const struct svm_view *view, struct svm_admission *admission)
{
    const int samples = view->vectors < 8 ? view->vectors : 8;
    int64_t length = 0, alone = 0;
    if (view->dense) {
        admission->features = view->dense[0].features;
        admission->stored = admission->features * view->vectors;
        return;
    }
    for (int i = 0; i < samples; i++) {
        const struct libsvm_node *node = sample_of(view, i, samples);
        alone += count_alone(node, sample_of(view, i + 1, samples));
        for (; node && node->index != -1; node++, length++)
            if (node->index > admission->features)
                admission->features = node->index;
    }
    admission->stored = length * view->vectors / samples;
    admission->alone = alone * view->vectors / samples;
}

struct svm_admission svm_admission_look(const struct svm_view *view)
{
    pthread_mutex_lock(&models.lock);
    struct model *model = find_model(view);
    if (!model->sampled)
        sample(view, &model->admission);
    model->sampled = true;
    lru_touch(&models, model);
    if (model->admission.seen < INT32_MAX)
        model->admission.seen++;
    const struct svm_admission admission = model->admission;
    pthread_mutex_unlock(&models.lock);
    return admission;
}

void svm_admission_found(const struct svm_view *view)
{
    pthread_mutex_lock(&models.lock);
    struct svm_admission *admission = &find_model(view)->admission;
    admission->cached = true;
    if (admission->hits < INT32_MAX)
        admission->hits++;
    pthread_mutex_unlock(&models.lock);
}

void svm_admission_put(const struct svm_view *view, bool surprised)
{
    const int enough = 8, most = 20; /* predictions that putting vectors on the device costs */
    pthread_mutex_lock(&models.lock);
    struct svm_admission *admission = &find_model(view)->admission;
    const bool changed = admission->cached && surprised;
    if (changed)
        admission->misses = admission->hits >= enough  ? 0
                            : admission->misses < most ? admission->misses + 1
                                                       : most;
    admission->cached = !changed || admission->misses == 0;
    admission->hits = admission->seen = 0;
    pthread_mutex_unlock(&models.lock);
}

void svm_admission_refused(const struct svm_view *view)
{
    pthread_mutex_lock(&models.lock);
    find_model(view)->admission.refused = true;
    pthread_mutex_unlock(&models.lock);
}

void svm_admission_vector(const struct svm_view *view, bool far)
{
    const int enough = 8;
    pthread_mutex_lock(&models.lock);
    struct svm_admission *admission = &find_model(view)->admission;
    admission->far = far ? admission->far + 1 : 0;
    admission->refused = admission->refused || admission->far >= enough;
    pthread_mutex_unlock(&models.lock);
}
