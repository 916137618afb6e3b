/* Folds, as libsvm draws them. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libsvm.h"

static void swap(int *a, int *b)
{
    const int kept = *a;
    *a = *b;
    *b = kept;
}

void libsvm_shuffle_by_rand(int *place, int count, int seed)
{
    (void)seed; /* rand() goes on from where the program has left it */
    for (int i = 0; i < count; i++)
        swap(&place[i], &place[i + rand() % (count - i)]);
}

static bool allocate(struct libsvm_folds *folds, int rows, int count)
{
    *folds = (struct libsvm_folds){count, malloc((size_t)rows * sizeof(int)),
                                   calloc((size_t)count + 1, sizeof(int))};
    if (folds->place && folds->start)
        return true;
    libsvm_folds_free(folds);
    return false;
}

/* Returns where part i of `parts` begins. libsvm's product is an int, which overflows: then it must answer itself. */
static int part_of(int i, int rows, int parts)
{
    return (int)((int64_t)i * rows / parts);
}

bool libsvm_fold_all(const struct libsvm_source *source, int places, int count,
                     struct libsvm_folds *folds)
{
    if ((int64_t)count * places > INT32_MAX || !allocate(folds, places, count))
        return false;
    for (int i = 0; i < places; i++)
        folds->place[i] = i;
    source->library->shuffle(folds->place, places, source->seed);
    for (int i = 0; i <= count; i++)
        folds->start[i] = part_of(i, places, count);
    return true;
}

bool libsvm_fold_classes(const struct libsvm_source *source, const struct svm_classes *classes,
                         int count, struct libsvm_folds *folds)
{
    const int last = classes->count - 1, rows = classes->start[last] + classes->number[last];
    int *index = malloc((size_t)rows * sizeof *index), at = 0;
    if (!index || (int64_t)count * rows > INT32_MAX || !allocate(folds, rows, count)) {
        free(index);
        return false;
    }
    memcpy(index, classes->row, (size_t)rows * sizeof *index);
    for (int c = 0; c < classes->count; c++)
        source->library->shuffle(&index[classes->start[c]], classes->number[c], source->seed);
    for (int i = 0; i < count; i++) {
        for (int c = 0; c < classes->count; c++)
            for (int k = part_of(i, classes->number[c], count);
                 k < part_of(i + 1, classes->number[c], count); k++)
                folds->place[at++] = index[classes->start[c] + k];
        folds->start[i + 1] = at;
    }
    free(index);
    return true;
}

void libsvm_folds_free(struct libsvm_folds *folds)
{
    free(folds->place);
    free(folds->start);
    *folds = (struct libsvm_folds){0};
}

bool libsvm_fold_job(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                     const struct libsvm_folds *folds, int fold, const struct libsvm_rows *all,
                     struct svm_job *job)
{
    const int before = folds->start[fold], after = folds->start[fold + 1];
    const int count = before + folds->start[folds->count] - after;
    int *row = malloc(((size_t)count + 1) * sizeof *row);
    double *y = malloc(((size_t)count + 1) * sizeof *y);
    bool made = row && y;
    for (int i = 0; made && i < count; i++) {
        const int place = folds->place[i < before ? i : i - before + after];
        row[i] = all->row ? all->row[place] : place;
        y[i] = all->y[place];
    }
    made = made && libsvm_job_make(source, parameter, &(struct libsvm_rows){count, row, y}, job);
    free(row);
    free(y);
    return made;
}

/* ---- rand() ---- */

/* The bytes of glibc's states, by their type (initstate(3)), which the first word tells: type + 5 * position. */
static size_t size_of_state(const char *state)
{
    static const uint16_t sizes[] = {8, 32, 64, 128, 256};
    int32_t word;
    memcpy(&word, state, sizeof word);
    return sizes[word % 5];
}

/* Gives rand() another state: that completes its own, which is returned. */
static char *take_state(char other[128])
{
    return initstate(1, other, 128);
}

void libsvm_rand_keep(struct libsvm_rand *kept)
{
    _Alignas(8) char other[128];
    char *state = take_state(other);
    memcpy(kept->state, state, size_of_state(state));
    setstate(state);
}

void libsvm_rand_put_back(const struct libsvm_rand *kept)
{
    _Alignas(8) char other[128];
    char *state = take_state(other);
    memcpy(state, kept->state, size_of_state(kept->state));
    setstate(state);
}
