/*
 * XGBoost (2.0 or newer, built with CUDA) computes on the GPU when a booster's parameter `device` says so. If the program has
 * made no choice, a booster is told to use the device before it trains. It is told to use the CPU again before a function that
 * reads host data in place, which would warn about a device that the program has not asked for, and before one that copies the
 * parameters to where libaccel may not be: a pickle, another booster.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "boosters.h"
#include "ops/op.h"

enum layout { NO_CUDA = 1, WITH_CUDA };

/* call->own, for the log: what the library was told, and what it lacks. */
enum { TOLD, BUILD };

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
static int accepts(const struct accel_provider *provider)
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
    return major >= 2 && says_true(json, "\"USE_CUDA\"") ? WITH_CUDA : NO_CUDA;
}

static int accepts_cuda(const struct accel_provider *provider)
{
    return accepts(provider) == WITH_CUDA ? WITH_CUDA : 0;
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
    const char *message = found ? error() : NULL;
    return message && (strstr(message, "out of memory") || strstr(message, "bad_alloc"));
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

/* Whether a parameter says where to compute, or asks for what the GPU does not have or does otherwise. */
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

static void name_device(struct guide *guide, int number)
{
    struct accel_text text;
    text_start(&text, guide->told, sizeof guide->told);
    text_string(&text, "cuda");
    if (number > 0) {
        text_char(&text, ':');
        text_integer(&text, number);
    }
    text_end(&text);
    guide->call->own.pointer[TOLD] = guide->told;
}

static bool leave_device(const struct guide *guide)
{
    return booster_move(guide, BOOSTER_ON_GPU, BOOSTER_ASIDE, "cpu");
}

/* Runs a call of a booster that computes on the GPU; if it fails, once more on the CPU. The booster stays there, unless the CPU
 * fails as well: then the GPU was not at fault. */
static enum guide_news run_on_gpu(struct guide *guide)
{
    if ((int)guide->original(guide) == 0)
        return GUIDE_ON_GPU;
    const enum guide_news news =
        lacks_memory(guide->passed->provider) ? GUIDE_NO_MEMORY : GUIDE_FAILED;
    const bool cured = leave_device(guide) && (int)guide->original(guide) == 0;
    guide->call->own.pointer[TOLD] = "cpu";
    booster_put(handle_of(guide), cured ? BOOSTER_LEFT : BOOSTER_OPEN);
    return cured ? news : GUIDE_NOTHING;
}

/* Only a failure is news of a booster that has been told before. */
static enum guide_news go_on(struct guide *guide)
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
    booster_put(handle_of(guide), BOOSTER_LEFT);
    return why;
}

static enum guide_news start(struct guide *guide, enum booster_place from)
{
    const int number = guide->device(guide);
    if (number < 0)
        return leave_alone(guide, GUIDE_NO_DEVICE);
    if (is_distributed(guide->passed->provider))
        return leave_alone(guide, GUIDE_UNSUPPORTED);
    name_device(guide, number);
    if (!booster_move(guide, from, BOOSTER_ON_GPU, guide->told))
        return GUIDE_NOTHING;
    const enum guide_news news = run_on_gpu(guide);
    if (news != GUIDE_ON_GPU || from == BOOSTER_ASIDE)
        return news == GUIDE_ON_GPU ? GUIDE_NOTHING : news;
    if (is_there(guide))
        return GUIDE_ON_GPU;
    guide->call->own.pointer[TOLD] = "cpu";
    return leave_alone(guide, GUIDE_UNSUPPORTED);
}

static enum guide_news train(struct guide *guide)
{
    static atomic_bool said;
    if (guide->passed->layout == NO_CUDA) {
        guide->call->own.pointer[BUILD] = "no_cuda";
        return atomic_exchange(&said, true) ? GUIDE_NOTHING : GUIDE_UNSUPPORTED;
    }
    const enum booster_place place = booster_place(handle_of(guide));
    if (place == BOOSTER_OPEN || place == BOOSTER_ASIDE)
        return start(guide, place);
    return place == BOOSTER_ON_GPU ? go_on(guide) : GUIDE_NOTHING;
}

static enum guide_news use(struct guide *guide)
{
    return booster_place(handle_of(guide)) == BOOSTER_ON_GPU ? go_on(guide) : GUIDE_NOTHING;
}

static enum guide_news leave(struct guide *guide)
{
    leave_device(guide);
    return GUIDE_NOTHING;
}

/* A loaded configuration says where to compute. */
static enum guide_news load(struct guide *guide)
{
    booster_put(handle_of(guide), BOOSTER_CHOSEN);
    return GUIDE_NOTHING;
}

static enum guide_news create(struct guide *guide)
{
    void *const *made = (void *const *)(uintptr_t)guide->passed->gpr[2];
    if ((int)guide->original(guide) == 0 && made)
        booster_add(*made);
    return GUIDE_NOTHING;
}

static enum guide_news set(struct guide *guide)
{
    if (is_choice(text_of(guide, 1), text_of(guide, 2)))
        booster_put(handle_of(guide), BOOSTER_CHOSEN);
    return GUIDE_NOTHING;
}

static enum guide_news forget(struct guide *guide)
{
    booster_remove(handle_of(guide));
    return GUIDE_NOTHING;
}

/* ---- The operations ---- */

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    (void)passed;
    call->own.pointer[TOLD] = call->own.pointer[BUILD] = NULL;
    return true;
}

static double no_flops(const struct accel_call *call)
{
    (void)call;
    return 0;
}

static void describe(const struct accel_call *call, const struct accel_fields *fields)
{
    if (call->own.pointer[BUILD])
        fields->string(fields, "build", call->own.pointer[BUILD]);
    if (call->own.pointer[TOLD])
        fields->string(fields, "device", call->own.pointer[TOLD]);
}

#define GUIDED(accepts_provider, guided_by)                                                        \
    {                                                                                              \
        .group = ACCEL_NO_BLAS, .ml = ACCEL_XGBOOST, .accepts = (accepts_provider), .nests = true, \
        .stack_words = 1, .nominal = {.cpu_share = 0.1, .gpu_share = 0.1}, .parse = parse,         \
        .flops = no_flops, .describe = describe, .guide = (guided_by)                              \
    }

const struct accel_op op_xgboost_train = GUIDED(accepts, train);
const struct accel_op op_xgboost_use = GUIDED(accepts_cuda, use);
const struct accel_op op_xgboost_leave = GUIDED(accepts_cuda, leave);
const struct accel_op op_xgboost_load = GUIDED(accepts_cuda, load);
const struct accel_op op_xgboost_create = GUIDED(accepts_cuda, create);
const struct accel_op op_xgboost_set = GUIDED(accepts_cuda, set);
const struct accel_op op_xgboost_free = GUIDED(accepts_cuda, forget);
