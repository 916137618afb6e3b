/*
 * LightGBM (4.0 or newer, built with CUDA) trains a booster on the GPU if the booster and its data
 * are made with the parameter device_type=cuda: then the data lie on the device. If the program has
 * made no choice, libaccel adds the parameter to both. Subsets and data for validation lie where
 * the data lie that they refer to. LightGBM cannot move a booster that has been made.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "ops/guide.h"
#include "ops/places.h"

/* call->own, after the log's fields: the text that the original gets in place of the program's
 * parameters (NULL: it gets the program's), and which argument that is, an integer. */
enum { PARAMETERS = GUIDE_BUILD + 1, PARAMETERS_AT };

/* ---- The library ---- */

/* The class is in each build, but overrides Init() only in a build with CUDA: see
 * src/treelearner/cuda/cuda_single_gpu_tree_learner.hpp of LightGBM 4.0.0 to 4.7.0. */
static int accepts_lightgbm(const struct accel_provider *provider)
{
    if (!provider->symbol(provider, "LGBM_GetLastError"))
        return 0;
    return provider->symbol(provider, "_ZN8LightGBM24CUDASingleGPUTreeLearner4InitEPKNS_7DatasetEb")
               ? GUIDE_WITH_CUDA
               : GUIDE_NO_CUDA;
}

static int accepts_cuda(const struct accel_provider *provider)
{
    return accepts_lightgbm(provider) == GUIDE_WITH_CUDA ? GUIDE_WITH_CUDA : 0;
}

static enum guide_news news_of_failure(const struct guide *guide)
{
    const struct accel_provider *provider = guide->passed->provider;
    void *found = provider->symbol(provider, "LGBM_GetLastError");
    const char *(*error)(void);
    memcpy(&error, &found, sizeof error);
    return guide_lacks_memory(error()) ? GUIDE_NO_MEMORY : GUIDE_FAILED;
}

/* ---- The program's choice ---- */

static void *pointer_at(const struct guide *guide, int argument)
{
    return (void *)(uintptr_t)accel_passed_word(guide->passed, argument);
}

/* Names of parameters and their aliases (src/io/config_auto.cpp); * stands for any end. They say
 * where to compute, concern several processes, belong to the CPU, or would be ignored by LightGBM's
 * CUDA learner (src/treelearner/cuda/). */
static const char *const choices[] = {"device_type",
                                      "device",
                                      "gpu_*",
                                      "num_gpu",
                                      "tree_learner*",
                                      "tree",
                                      "tree_type",
                                      "num_machine*",
                                      "machine*",
                                      "workers",
                                      "nodes",
                                      "mlist",
                                      "force_col_*",
                                      "force_row_*",
                                      "deterministic",
                                      "linear_tree*",
                                      "monoton*",
                                      "mc*",
                                      "ms_penalty",
                                      "cegb_*",
                                      "feature_con*",
                                      "fc",
                                      "fp",
                                      "feature_penalty",
                                      "forced*",
                                      "fs",
                                      "max_delta_step",
                                      "max_tree_output",
                                      "max_leaf_output",
                                      "use_quantized*"};

static bool is_named(const char *name, size_t length, const char *choice)
{
    const size_t known = strcspn(choice, "*");
    return (choice[known] ? length >= known : length == known) && strncmp(name, choice, known) == 0;
}

/* Whether a parameter, `length` characters `name` before an equals sign, is a choice. The CUDA
 * learner ignores max_depth, too, but scikit-learn's interface always sets it: -1 or 0 is no limit,
 * and no choice. */
static bool is_choice(const char *name, size_t length)
{
    if (is_named(name, length, "max_depth"))
        return !strchr("-0", name[length + strspn(name + length, "=")]);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (is_named(name, length, choices[i]))
            return true;
    return false;
}

/* Whether one of the parameters, with white space between them, is a choice. */
static bool are_chosen(const char *parameters)
{
    const char *const space = " \t\n\r";
    for (const char *at = parameters; *(at += strspn(at, space)); at += strcspn(at, space))
        if (is_choice(at, strcspn(at, "= \t\n\r")))
            return true;
    return false;
}

/* ---- Guiding ---- */

/* Returns the program's parameters and the device, or NULL if memory is short. Free it with
 * free(). */
static char *with_device(const char *parameters, int number)
{
    const size_t length = strlen(parameters) + 64;
    char *both = malloc(length);
    if (!both)
        return NULL;
    struct accel_text text;
    text_start(&text, both, length);
    text_string(&text, parameters);
    text_string(&text, " device_type=cuda gpu_device_id=");
    text_integer(&text, number);
    text_end(&text);
    return both;
}

/* Runs the original with the device added to the parameters, which are argument `at`; if that
 * fails, runs it once more as the program has called it. Returns GUIDE_NOTHING if that fails,
 * too. */
static enum guide_news run_with_device(struct guide *guide, int at, int number)
{
    char *parameters = with_device(pointer_at(guide, at), number);
    if (!parameters)
        return GUIDE_NO_MEMORY;
    guide_name_device(guide, number);
    guide->call->own.pointer[PARAMETERS] = parameters;
    guide->call->own.integer[PARAMETERS_AT] = at;
    const bool done = (int)guide->original(guide) == 0;
    guide->call->own.pointer[PARAMETERS] = NULL;
    free(parameters);
    if (done)
        return GUIDE_ON_GPU;
    const enum guide_news news = news_of_failure(guide);
    guide->call->own.pointer[GUIDE_TOLD] = "cpu";
    return (int)guide->original(guide) == 0 ? news : GUIDE_NOTHING;
}

/* Runs a function that makes data which refer to others, and notes that they lie where those do.
 * Argument `at` is the place where the program gets the new data's handle. */
static enum guide_news make_referring(struct guide *guide, const void *other, int at)
{
    void *const *made = pointer_at(guide, at);
    if ((int)guide->original(guide) == 0 && place_of(other) == PLACE_ON_GPU)
        place_add(*made, PLACE_ON_GPU);
    return GUIDE_NOTHING;
}

/* Makes data. Argument `at` is their parameters; the next two are the data that they refer to
 * (NULL: none) and the place where the program gets their handle. The log has a line only of a
 * failure: boosters compute, and have lines of their own. */
static enum guide_news make_data(struct guide *guide, int at)
{
    const char *parameters = pointer_at(guide, at);
    const void *other = pointer_at(guide, at + 1);
    void *const *made = pointer_at(guide, at + 2);
    if (other)
        return make_referring(guide, other, at + 2);
    if (!parameters || !made || are_chosen(parameters))
        return GUIDE_NOTHING;
    const int number = guide->device(guide);
    if (number < 0)
        return GUIDE_NOTHING;
    const enum guide_news news = run_with_device(guide, at, number);
    if (news != GUIDE_ON_GPU)
        return news;
    place_add(*made, PLACE_ON_GPU);
    return GUIDE_NOTHING;
}

static enum guide_news make_file(struct guide *guide)
{
    return make_data(guide, 1);
}

static enum guide_news make_dense(struct guide *guide)
{
    return make_data(guide, 5);
}

static enum guide_news make_sparse(struct guide *guide)
{
    return make_data(guide, 8);
}

static enum guide_news make_subset(struct guide *guide)
{
    return make_referring(guide, pointer_at(guide, 0), 4);
}

static enum guide_news forget_booster(struct guide *guide)
{
    place_remove(pointer_at(guide, 0));
    return GUIDE_NOTHING;
}

static enum guide_news make_booster(struct guide *guide)
{
    static atomic_bool said;
    if (guide->passed->layout == GUIDE_NO_CUDA)
        return guide_lacks_cuda(guide, &said);
    const char *parameters = pointer_at(guide, 1);
    if (!parameters || are_chosen(parameters))
        return GUIDE_NOTHING;
    const int number = guide->device(guide);
    if (number < 0)
        return GUIDE_NO_DEVICE;
    if (place_of(pointer_at(guide, 0)) != PLACE_ON_GPU)
        return GUIDE_UNSUPPORTED;
    return run_with_device(guide, 1, number);
}

/* ---- The operations ---- */

static int instead(const struct accel_call *call, uint64_t *word)
{
    if (!call->own.pointer[PARAMETERS])
        return -1;
    *word = (uint64_t)(uintptr_t)call->own.pointer[PARAMETERS];
    return (int)call->own.integer[PARAMETERS_AT];
}

#define LIGHTGBM(accepts_provider, guided_by, count)                                               \
    {                                                                                              \
        GUIDED(ACCEL_LIGHTGBM, accepts_provider, guided_by, .instead = instead, .words = (count))  \
    }

const struct accel_op op_lightgbm_file = LIGHTGBM(accepts_cuda, make_file, 0);
const struct accel_op op_lightgbm_dense = LIGHTGBM(accepts_cuda, make_dense, 8);
const struct accel_op op_lightgbm_sparse = LIGHTGBM(accepts_cuda, make_sparse, 11);
const struct accel_op op_lightgbm_subset = LIGHTGBM(accepts_cuda, make_subset, 0);
const struct accel_op op_lightgbm_free = LIGHTGBM(accepts_cuda, forget_booster, 0);
const struct accel_op op_lightgbm_booster = LIGHTGBM(accepts_lightgbm, make_booster, 0);
