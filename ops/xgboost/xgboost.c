/*
 * XGBoost (2.0 or newer, built with CUDA) computes on the GPU when a booster's parameter `device`
 * says so. If the program has made no choice, a booster is told to use the device before it trains.
 * It is told to use the CPU again before a function that reads host data in place, which would warn
 * about a device that the program has not asked for, and before one that copies the parameters to
 * where libaccel may not be: a pickle, another booster.
 */
#include <stdatomic.h>
#include <string.h>

#include "ops/guide.h"
#include "ops/places.h"

/* ---- The library ---- */

static void *handle_of(const struct guide *guide)
{
    return (void *)(uintptr_t)guide->passed->gpr[0];
}

static bool says_true(const char *json, const char *key)
{
    const char *found = json ? strstr(json, key) : NULL;
    if (!found)
        return false;
    found += strlen(key);
    found += strspn(found, " :");
    return strncmp(found, "true", 4) == 0;
}

/* Versions before 2.0 have no parameter `device`. */
static int accepts_xgboost(const struct accel_provider *provider)
{
    void *found[] = {provider->symbol(provider, "XGBoostVersion"),
                     provider->symbol(provider, "XGBuildInfo"),
                     provider->symbol(provider, "XGBoosterSetParam")};
    void (*version)(int *major, int *minor, int *patch);
    int (*info)(const char **json);
    int major = 0, minor, patch;
    const char *json = NULL;
    memcpy(&version, &found[0], sizeof version);
    memcpy(&info, &found[1], sizeof info);
    if (!version || !info || !found[2])
        return 0;
    version(&major, &minor, &patch);
    if (info(&json) != 0)
        return 0;
    return major >= 2 && says_true(json, "\"USE_CUDA\"") ? GUIDE_WITH_CUDA : GUIDE_NO_CUDA;
}

static int accepts_cuda(const struct accel_provider *provider)
{
    return accepts_xgboost(provider) == GUIDE_WITH_CUDA ? GUIDE_WITH_CUDA : 0;
}

/* Whether several processes train together: each would need a device of its own. */
static bool is_distributed(const struct accel_provider *provider)
{
    void *found = provider->symbol(provider, "XGCommunicatorIsDistributed");
    int (*distributed)(void);
    memcpy(&distributed, &found, sizeof distributed);
    return found && distributed() != 0;
}

static bool lacks_memory(const struct accel_provider *provider)
{
    void *found = provider->symbol(provider, "XGBGetLastError");
    const char *(*error)(void);
    memcpy(&error, &found, sizeof error);
    return guide_lacks_memory(found ? error() : NULL);
}

/* Whether XGBoost has found the device as well: if not, it has turned to the CPU by itself. */
static bool is_there(const struct guide *guide)
{
    const struct accel_provider *provider = guide->passed->provider;
    void *found = provider->symbol(provider, "XGBoosterSaveJsonConfig");
    int (*save)(void *booster, uint64_t *length, const char **json);
    uint64_t length;
    const char *json = NULL;
    memcpy(&save, &found, sizeof save);
    return !found || save(handle_of(guide), &length, &json) != 0 || !json || strstr(json, "\"cuda");
}

/* ---- The program's choice ---- */

static const char *text_of(const struct guide *guide, int argument)
{
    const char *text = (const char *)(uintptr_t)accel_passed_word(guide->passed, argument);
    return text ? text : "";
}

/* Whether a parameter says where to compute, or asks for what the GPU does not have or does
 * otherwise. */
static bool is_choice(const char *name, const char *value)
{
    static const char *const devices[] = {"device",    "gpu_id",  "n_gpus",
                                          "predictor", "updater", "process_type"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(name, devices[i]) == 0)
            return true;
    if (strcmp(name, "tree_method") == 0)
        return strcmp(value, "auto") != 0 && strcmp(value, "hist") != 0 &&
               strcmp(value, "approx") != 0;
    return strcmp(name, "booster") == 0 && strcmp(value, "gbtree") != 0 &&
           strcmp(value, "dart") != 0;
}

/* ---- Guiding ---- */

struct booster_setting {
    int (*set)(void *booster, const char *name, const char *value);
    void *booster;
    const char *device;
};

static bool set_device(void *context)
{
    const struct booster_setting *s = context;
    return s->set(s->booster, "device", s->device) == 0;
}

/* Moves the booster to `to`, if it is at `from`: tells XGBoost the device. */
static bool booster_move(const struct guide *guide, enum place from, enum place to,
                         const char *device)
{
    const struct accel_provider *provider = guide->passed->provider;
    struct booster_setting setting = {.booster = handle_of(guide), .device = device};
    if (place_of(setting.booster) != from) /* most calls need not look up the function */
        return false;
    void *function = provider->symbol(provider, "XGBoosterSetParam");
    memcpy(&setting.set, &function, sizeof setting.set);
    return function && place_move(setting.booster, from, to, set_device, &setting);
}

static bool leave_device(const struct guide *guide)
{
    return booster_move(guide, PLACE_ON_GPU, PLACE_ASIDE, "cpu");
}

/* Runs a call of a booster that computes on the GPU; if it fails, once more on the CPU. The booster
 * stays there, unless the CPU fails as well: then the GPU was not at fault. */
static enum guide_news run_on_gpu(struct guide *guide)
{
    if ((int)guide->original(guide) == 0)
        return GUIDE_ON_GPU;
    const enum guide_news news =
        lacks_memory(guide->passed->provider) ? GUIDE_NO_MEMORY : GUIDE_FAILED;
    const bool cured = leave_device(guide) && (int)guide->original(guide) == 0;
    guide->call->own.pointer[GUIDE_TOLD] = "cpu";
    place_put(handle_of(guide), cured ? PLACE_LEFT : PLACE_OPEN);
    return cured ? news : GUIDE_NOTHING;
}

/* Only a failure is news of a booster that has been told before. */
static enum guide_news go_on_there(struct guide *guide)
{
    if (guide->device(guide) < 0) { /* such as in the child of a fork */
        leave_device(guide);
        return GUIDE_NOTHING;
    }
    const enum guide_news news = run_on_gpu(guide);
    return news == GUIDE_ON_GPU ? GUIDE_NOTHING : news;
}

static enum guide_news leave_alone(const struct guide *guide, enum guide_news why)
{
    place_put(handle_of(guide), PLACE_LEFT);
    return why;
}

static enum guide_news start_on_gpu(struct guide *guide, enum place from)
{
    const int number = guide->device(guide);
    if (number < 0)
        return leave_alone(guide, GUIDE_NO_DEVICE);
    if (is_distributed(guide->passed->provider))
        return leave_alone(guide, GUIDE_UNSUPPORTED);
    guide_name_device(guide, number);
    if (!booster_move(guide, from, PLACE_ON_GPU, guide->told))
        return GUIDE_NOTHING;
    const enum guide_news news = run_on_gpu(guide);
    if (news != GUIDE_ON_GPU || from == PLACE_ASIDE)
        return news == GUIDE_ON_GPU ? GUIDE_NOTHING : news;
    if (is_there(guide))
        return GUIDE_ON_GPU;
    guide->call->own.pointer[GUIDE_TOLD] = "cpu";
    return leave_alone(guide, GUIDE_UNSUPPORTED);
}

static enum guide_news train(struct guide *guide)
{
    static atomic_bool said;
    if (guide->passed->layout == GUIDE_NO_CUDA)
        return guide_lacks_cuda(guide, &said);
    const enum place place = place_of(handle_of(guide));
    if (place == PLACE_OPEN || place == PLACE_ASIDE)
        return start_on_gpu(guide, place);
    return place == PLACE_ON_GPU ? go_on_there(guide) : GUIDE_NOTHING;
}

static enum guide_news use_booster(struct guide *guide)
{
    return place_of(handle_of(guide)) == PLACE_ON_GPU ? go_on_there(guide) : GUIDE_NOTHING;
}

static enum guide_news leave_booster(struct guide *guide)
{
    leave_device(guide);
    return GUIDE_NOTHING;
}

/* A loaded configuration says where to compute. */
static enum guide_news load_booster(struct guide *guide)
{
    place_put(handle_of(guide), PLACE_CHOSEN);
    return GUIDE_NOTHING;
}

static enum guide_news create(struct guide *guide)
{
    void *const *made = (void *const *)(uintptr_t)guide->passed->gpr[2];
    if ((int)guide->original(guide) == 0 && made)
        place_add(*made, PLACE_OPEN);
    return GUIDE_NOTHING;
}

static enum guide_news set(struct guide *guide)
{
    const char *const name = text_of(guide, 1);
    if (!is_choice(name, text_of(guide, 2)))
        return GUIDE_NOTHING;
    if (strcmp(name, "device") != 0) /* which takes the place of what it was told */
        leave_device(guide);
    place_put(handle_of(guide), PLACE_CHOSEN);
    return GUIDE_NOTHING;
}

static enum guide_news forget_booster(struct guide *guide)
{
    place_remove(handle_of(guide));
    return GUIDE_NOTHING;
}

/* ---- The operations ---- */

#define XGBOOST(accepts_provider, guided_by)                                                       \
    {                                                                                              \
        GUIDED(ACCEL_XGBOOST, accepts_provider, guided_by, .nests = true, .words = 7)              \
    }

const struct accel_op op_xgboost_train = XGBOOST(accepts_xgboost, train);
const struct accel_op op_xgboost_use = XGBOOST(accepts_cuda, use_booster);
const struct accel_op op_xgboost_leave = XGBOOST(accepts_cuda, leave_booster);
const struct accel_op op_xgboost_load = XGBOOST(accepts_cuda, load_booster);
const struct accel_op op_xgboost_create = XGBOOST(accepts_cuda, create);
const struct accel_op op_xgboost_set = XGBOOST(accepts_cuda, set);
const struct accel_op op_xgboost_free = XGBOOST(accepts_cuda, forget_booster);
