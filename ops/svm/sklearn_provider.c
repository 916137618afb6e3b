/* Which scikit-learn it is: by the names that its objects define, and by its version. */
#include <pthread.h>
#include <string.h>

#include "base/thread/forks.h"
#include "ops/sklearn_version.h"
#include "sklearn.h"

_Static_assert(sizeof(struct sklearn_node) == 16 && sizeof(struct sklearn_problem) == 32 &&
                   sizeof(struct sklearn_parameter) == 112 && sizeof(struct sklearn_model) == 200,
               "as sklearn/svm/src/libsvm/svm.h has them");

static bool recognize(const struct accel_provider *provider, struct sklearn *library)
{
    /* A dense node by its address, and the functions of BLAS: from 0.24 on. */
    if (!provider->symbol(provider, "_ZN3svm6Kernel3dotEPK8svm_nodeS3_P13BlasFunctions") ||
        !sklearn_is_known(provider, "_libsvm"))
        return false;
    *library = (struct sklearn){
        .train = provider->function,
        .csr = provider->function == provider->symbol(provider, "svm_csr_train"),
        .libsvm = {.print = libsvm_print_of(provider), .sorts = true, .shuffle = sklearn_shuffle}};
    void *set_seed = provider->symbol(provider, "set_seed");
    memcpy(&library->set_seed, &set_seed, sizeof set_seed);
    return set_seed && library->libsvm.print;
}

/* ---- All that this process has had ---- */

enum { LIBRARIES = 64 };
static struct sklearn libraries[LIBRARIES];
static int library_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static bool is_same_sklearn(const struct sklearn *a, const struct sklearn *b)
{
    return a->train == b->train && a->csr == b->csr && a->set_seed == b->set_seed &&
           a->libsvm.print == b->libsvm.print;
}

int sklearn_of(const struct accel_provider *provider)
{
    struct sklearn library;
    int i = 0;
    if (!recognize(provider, &library))
        return 0;
    pthread_mutex_lock(&lock);
    while (i < library_count && !is_same_sklearn(&libraries[i], &library))
        i++;
    if (i == library_count && i < LIBRARIES)
        libraries[library_count++] = library;
    pthread_mutex_unlock(&lock);
    return i < LIBRARIES ? i + 1 : 0;
}

const struct sklearn *sklearn_numbered(int number)
{
    return &libraries[number - 1];
}
