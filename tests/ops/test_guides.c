/* How XGBoost's boosters and LightGBM's data and boosters are guided to the GPU (ops/xgboost/,
 * ops/lightgbm/): libraries of this test's, which note what they are told. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/guide.h"
#include "ops/op.h"
#include "ops/places.h"
#include "tests/lib/routine.h"

/* ---- The library, the program's call and the device ---- */

static char done[512]; /* what has happened to the library, in order */
static int device_number, failures;
static bool distributed, lacks_set, config_without_cuda;
static const char *error_text;
static int major_version;
static const char *build;
static const char *lacking;

static void note(const char *text)
{
    const size_t length = strlen(done);
    snprintf(done + length, sizeof done - length, "%s;", text);
}

static int set_param(void *booster, const char *name, const char *value)
{
    char text[64];
    (void)booster;
    snprintf(text, sizeof text, "%s=%s", name, value);
    note(text);
    return 0;
}

static int is_distributed(void)
{
    return distributed;
}

static const char *last_error(void)
{
    return error_text;
}

static int save_config(void *booster, uint64_t *length, const char **json)
{
    (void)booster;
    *json = config_without_cuda ? "{\"device\":\"cpu\"}" : "{\"device\":\"cuda:0\"}";
    *length = strlen(*json);
    return 0;
}

static void version(int *major, int *minor, int *patch)
{
    *major = major_version;
    *minor = *patch = 0;
}

static int build_info(const char **json)
{
    *json = build;
    return build ? 0 : -1;
}

static void *symbol_of(const struct accel_provider *provider, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"XGBoosterSetParam", (void *)set_param},
        {"XGCommunicatorIsDistributed", (void *)is_distributed},
        {"XGBGetLastError", (void *)last_error},
        {"XGBoosterSaveJsonConfig", (void *)save_config},
        {"XGBoostVersion", (void *)version},
        {"XGBuildInfo", (void *)build_info},
        {"LGBM_GetLastError", (void *)last_error},
        {"_ZN8LightGBM24CUDASingleGPUTreeLearner4InitEPKNS_7DatasetEb", (void *)last_error}};
    (void)provider;
    if (lacking && strcmp(name, lacking) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0 && !(lacks_set && i == 0))
            return functions[i].function;
    return NULL;
}

static const struct accel_provider provider = {.symbol = symbol_of};

static int device(struct guide *guide)
{
    (void)guide;
    return device_number;
}

static int set_up(void **state)
{
    (void)state;
    done[0] = 0;
    device_number = failures = 0;
    distributed = lacks_set = config_without_cuda = false;
    error_text = "no";
    major_version = 2;
    build = "{\"USE_CUDA\": true}";
    lacking = NULL;
    return 0;
}

/* Fails `failures` times. Notes the argument that it gets in place of the program's. */
static uint64_t original(struct guide *guide)
{
    const struct accel_op *op = accel_op_of(guide->call->routine);
    uint64_t word = 0;
    const int at = op->foreign->instead ? op->foreign->instead(guide->call, &word) : -1;
    char text[128] = "original";
    if (at >= 0)
        snprintf(text, sizeof text, "original %d:%s", at, (const char *)(uintptr_t)word);
    note(text);
    if (failures == 0)
        return 0;
    failures--;
    return (uint64_t)-1;
}

static struct accel_call call;

/* The call of a function: what there is to report of it. */
static enum guide_news guided(const char *name, int layout, const uint64_t *words)
{
    const struct accel_passed passed = {.gpr = words,
                                        .stack = words + ACCEL_WORD_REGISTERS,
                                        .abi = ACCEL_ABI_OWN,
                                        .provider = &provider,
                                        .layout = layout};
    struct guide guide = {.call = &call, .passed = &passed, .device = device, .original = original};
    call = accel_call_of(routine(name));
    assert_true(guide_parse(&call, &passed));
    return accel_op_of(call.routine)->foreign->guide(&guide);
}

static void assert_done(const char *expected)
{
    assert_string_equal(done, expected);
    done[0] = 0;
}

/* ---- XGBoost ---- */

static char booster;

static enum guide_news xgboost(const char *name, const char *first, const char *second)
{
    const uint64_t words[ACCEL_WORD_REGISTERS] = {(uintptr_t)&booster, (uintptr_t)first,
                                                  (uintptr_t)second};
    return guided(name, GUIDE_WITH_CUDA, words);
}

static void is_at(enum place place)
{
    assert_int_equal(place_of(&booster), place);
}

static void new_booster(void)
{
    void *made = &booster;
    const uint64_t words[ACCEL_WORD_REGISTERS] = {0, 0, (uintptr_t)&made};
    assert_int_equal(guided("xgboost_create", GUIDE_WITH_CUDA, words), GUIDE_NOTHING);
    assert_done("original;");
    is_at(PLACE_OPEN);
}

static void boosters_train_on_the_device(void **state)
{
    (void)state;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_ON_GPU);
    assert_done("device=cuda;original;");
    assert_string_equal(call.own.pointer[GUIDE_TOLD], "cuda");
    is_at(PLACE_ON_GPU);
    /* It has been told. */
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    assert_int_equal(xgboost("xgboost_use", NULL, NULL), GUIDE_NOTHING);
    assert_done("original;original;");
    /* What reads the program's data in place has it on the CPU, until it trains on. */
    assert_int_equal(xgboost("xgboost_leave", NULL, NULL), GUIDE_NOTHING);
    assert_done("device=cpu;");
    is_at(PLACE_ASIDE);
    assert_int_equal(xgboost("xgboost_leave", NULL, NULL), GUIDE_NOTHING);
    assert_int_equal(xgboost("xgboost_use", NULL, NULL), GUIDE_NOTHING);
    assert_done("");
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    assert_done("device=cuda;original;");
    is_at(PLACE_ON_GPU);
    assert_int_equal(xgboost("xgboost_free", NULL, NULL), GUIDE_NOTHING);
    is_at(PLACE_UNKNOWN);
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    assert_done("");
}

static void another_device(void **state)
{
    (void)state;
    device_number = 3;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_ON_GPU);
    assert_done("device=cuda:3;original;");
    device_number = -1; /* as in the child of a fork */
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    assert_done("device=cpu;");
    is_at(PLACE_ASIDE);
}

static void what_keeps_a_booster_on_the_cpu(void **state)
{
    (void)state;
    device_number = -1;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NO_DEVICE);
    is_at(PLACE_LEFT);
    device_number = 0;
    distributed = true;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_UNSUPPORTED);
    is_at(PLACE_LEFT);
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    distributed = false;
    lacks_set = true;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    is_at(PLACE_OPEN);
    assert_done("");
    /* XGBoost has turned to the CPU by itself. */
    lacks_set = false;
    config_without_cuda = true;
    new_booster();
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_UNSUPPORTED);
    assert_done("device=cuda;original;");
    assert_string_equal(call.own.pointer[GUIDE_TOLD], "cpu");
    is_at(PLACE_LEFT);
    assert_int_equal(xgboost("xgboost_load", NULL, NULL), GUIDE_NOTHING);
    is_at(PLACE_CHOSEN);
}

static void a_build_without_cuda(void **state)
{
    const uint64_t words[ACCEL_WORD_REGISTERS] = {(uintptr_t)&booster};
    (void)state;
    new_booster();
    assert_int_equal(guided("xgboost_train", GUIDE_NO_CUDA, words), GUIDE_UNSUPPORTED);
    assert_string_equal(call.own.pointer[GUIDE_BUILD], "no_cuda");
    assert_int_equal(guided("xgboost_train", GUIDE_NO_CUDA, words), GUIDE_NOTHING); /* one line */
    assert_done("");
}

static void failures_on_the_device(void **state)
{
    static const struct {
        const char *error;
        enum guide_news news;
    } rows[] = {{"no", GUIDE_FAILED},
                {NULL, GUIDE_FAILED},
                {"cuda: out of memory", GUIDE_NO_MEMORY},
                {"std::bad_alloc", GUIDE_NO_MEMORY}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        error_text = rows[i].error;
        new_booster();
        failures = 1; /* the CPU succeeds */
        assert_int_equal(xgboost("xgboost_train", NULL, NULL), rows[i].news);
        assert_done("device=cuda;original;device=cpu;original;");
        assert_string_equal(call.own.pointer[GUIDE_TOLD], "cpu");
        is_at(PLACE_LEFT);
    }
    error_text = "no";
    new_booster();
    failures = 2; /* the GPU was not at fault */
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_NOTHING);
    assert_done("device=cuda;original;device=cpu;original;");
    is_at(PLACE_OPEN);
    /* Later: news, too. */
    assert_int_equal(xgboost("xgboost_train", NULL, NULL), GUIDE_ON_GPU);
    failures = 1;
    assert_int_equal(xgboost("xgboost_use", NULL, NULL), GUIDE_FAILED);
    is_at(PLACE_LEFT);
}

static void choices_of_the_program(void **state)
{
    static const struct {
        const char *name, *value;
        bool choice;
    } rows[] = {{"device", "cpu", true},
                {"gpu_id", "0", true},
                {"n_gpus", "1", true},
                {"predictor", "auto", true},
                {"updater", "shotgun", true},
                {"process_type", "update", true},
                {"tree_method", "exact", true},
                {"tree_method", "gpu_hist", true},
                {"tree_method", "auto", false},
                {"tree_method", "hist", false},
                {"tree_method", "approx", false},
                {"booster", "gblinear", true},
                {"booster", "gbtree", false},
                {"booster", "dart", false},
                {"eta", "0.3", false},
                {"devices", "cpu", false},
                {NULL, NULL, false},
                {"tree_method", NULL, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        new_booster();
        assert_int_equal(xgboost("xgboost_set", rows[i].name, rows[i].value), GUIDE_NOTHING);
        is_at(rows[i].choice ? PLACE_CHOSEN : PLACE_OPEN);
        assert_done("");
        assert_int_equal(xgboost("xgboost_train", NULL, NULL),
                         rows[i].choice ? GUIDE_NOTHING : GUIDE_ON_GPU);
        done[0] = 0;
    }
    /* What it was told goes, but where the program tells it itself. */
    new_booster();
    xgboost("xgboost_train", NULL, NULL);
    done[0] = 0;
    xgboost("xgboost_set", "tree_method", "exact");
    assert_done("device=cpu;");
    is_at(PLACE_CHOSEN);
    new_booster();
    xgboost("xgboost_train", NULL, NULL);
    done[0] = 0;
    xgboost("xgboost_set", "device", "cuda:1");
    assert_done("");
    is_at(PLACE_CHOSEN);
}

static int layout_of(const char *name)
{
    return accel_op_of(routine(name))->foreign->accepts(&provider);
}

static void builds_of_xgboost(void **state)
{
    static const struct {
        int major;
        const char *build;
        int of_train, of_others;
    } rows[] = {{2, "{\"USE_CUDA\":true}", GUIDE_WITH_CUDA, GUIDE_WITH_CUDA},
                {3, "{\"A\":false, \"USE_CUDA\" : true}", GUIDE_WITH_CUDA, GUIDE_WITH_CUDA},
                {1, "{\"USE_CUDA\":true}", GUIDE_NO_CUDA, 0},
                {2, "{\"USE_CUDA\":false}", GUIDE_NO_CUDA, 0},
                {2, "{\"USE_NCCL\":true}", GUIDE_NO_CUDA, 0},
                {2, NULL, 0, 0}};
    static const char *const needed[] = {"XGBoostVersion", "XGBuildInfo", "XGBoosterSetParam"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        major_version = rows[i].major;
        build = rows[i].build;
        assert_int_equal(layout_of("xgboost_train"), rows[i].of_train);
        assert_int_equal(layout_of("xgboost_set"), rows[i].of_others);
    }
    set_up(NULL);
    for (int i = 0; i < 3; i++) {
        lacking = needed[i];
        assert_int_equal(layout_of("xgboost_train"), 0);
    }
}

/* ---- LightGBM ---- */

static char dataset, other_dataset;

/* Makes data with these parameters, which are argument 5, behind another's or NULL. */
static enum guide_news make_data(const char *parameters, const void *other, void **made)
{
    const uint64_t words[ACCEL_WORD_REGISTERS + 4] = {
        [5] = (uintptr_t)parameters, [6] = (uintptr_t)other, [7] = (uintptr_t)made};
    return guided("lightgbm_dense", GUIDE_WITH_CUDA, words);
}

static enum guide_news make_booster(const void *data, const char *parameters, int layout)
{
    const uint64_t words[ACCEL_WORD_REGISTERS + 4] = {(uintptr_t)data, (uintptr_t)parameters};
    return guided("lightgbm_booster", layout, words);
}

static enum guide_news forget_data(const void *data)
{
    const uint64_t words[ACCEL_WORD_REGISTERS] = {(uintptr_t)data};
    return guided("lightgbm_free", GUIDE_WITH_CUDA, words);
}

static void data_and_boosters(void **state)
{
    void *made = &dataset, *other = &other_dataset;
    (void)state;
    assert_int_equal(make_booster(&dataset, "num_leaves=7", GUIDE_WITH_CUDA), GUIDE_UNSUPPORTED);
    assert_int_equal(make_data("num_leaves=7", NULL, &made), GUIDE_NOTHING); /* boosters compute */
    assert_int_equal(place_of(&dataset), PLACE_ON_GPU);
    assert_done("original 5:num_leaves=7 device_type=cuda gpu_device_id=0;");
    device_number = 2;
    assert_int_equal(make_booster(&dataset, "num_leaves=7", GUIDE_WITH_CUDA), GUIDE_ON_GPU);
    assert_done("original 1:num_leaves=7 device_type=cuda gpu_device_id=2;");
    assert_string_equal(call.own.pointer[GUIDE_TOLD], "cuda:2");
    /* Data for validation lie where those lie that they refer to. */
    assert_int_equal(make_data("", &dataset, &other), GUIDE_NOTHING);
    assert_done("original;");
    assert_int_equal(place_of(&other_dataset), PLACE_ON_GPU);
    assert_int_equal(forget_data(&dataset), GUIDE_NOTHING);
    assert_int_equal(forget_data(&other_dataset), GUIDE_NOTHING);
    assert_int_equal(place_of(&dataset), PLACE_UNKNOWN);
    assert_int_equal(make_data("", &dataset, &other), GUIDE_NOTHING);
    assert_int_equal(place_of(&other_dataset), PLACE_UNKNOWN);
    assert_done("original;");
}

/* Each function has its parameters, other data and the place of the handle at other arguments. */
static void functions_that_make_data(void **state)
{
    static const struct {
        const char *name, *expected;
        int parameters;
    } rows[] = {{"lightgbm_file", "original 1:p device_type=cuda gpu_device_id=0;", 1},
                {"lightgbm_dense", "original 5:p device_type=cuda gpu_device_id=0;", 5},
                {"lightgbm_sparse", "original 8:p device_type=cuda gpu_device_id=0;", 8}};
    void *made = &dataset;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t words[ACCEL_WORD_REGISTERS + 8] = {0};
        words[rows[i].parameters] = (uintptr_t) "p";
        words[rows[i].parameters + 2] = (uintptr_t)&made;
        assert_int_equal(guided(rows[i].name, GUIDE_WITH_CUDA, words), GUIDE_NOTHING);
        assert_done(rows[i].expected);
        assert_int_equal(place_of(&dataset), PLACE_ON_GPU);
        forget_data(&dataset);
    }
    /* A subset: argument 0 is the whole, 4 the place of the subset's handle. */
    void *subset = &other_dataset;
    const uint64_t words[ACCEL_WORD_REGISTERS] = {(uintptr_t)&dataset, 0, 0, 0, (uintptr_t)&subset};
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        place_add(&dataset, on_gpu ? PLACE_ON_GPU : PLACE_LEFT);
        assert_int_equal(guided("lightgbm_subset", GUIDE_WITH_CUDA, words), GUIDE_NOTHING);
        assert_done("original;");
        assert_int_equal(place_of(&other_dataset), on_gpu ? PLACE_ON_GPU : PLACE_UNKNOWN);
    }
    forget_data(&dataset);
    forget_data(&other_dataset);
}

static void what_keeps_lightgbm_on_the_cpu(void **state)
{
    void *made = &dataset;
    (void)state;
    device_number = -1;
    assert_int_equal(make_data("", NULL, &made), GUIDE_NOTHING);
    assert_int_equal(make_booster(&dataset, "", GUIDE_WITH_CUDA), GUIDE_NO_DEVICE);
    device_number = 0;
    assert_int_equal(make_data(NULL, NULL, &made), GUIDE_NOTHING);
    assert_int_equal(make_data("", NULL, NULL), GUIDE_NOTHING);
    assert_int_equal(make_booster(&dataset, NULL, GUIDE_WITH_CUDA), GUIDE_NOTHING);
    assert_int_equal(make_booster(&dataset, "", GUIDE_NO_CUDA), GUIDE_UNSUPPORTED);
    assert_string_equal(call.own.pointer[GUIDE_BUILD], "no_cuda");
    assert_int_equal(make_booster(&dataset, "", GUIDE_NO_CUDA), GUIDE_NOTHING);
    assert_done("");
    failures = 1; /* once more as the program has called it */
    assert_int_equal(make_data("a=1", NULL, &made), GUIDE_FAILED);
    assert_done("original 5:a=1 device_type=cuda gpu_device_id=0;original;");
    assert_string_equal(call.own.pointer[GUIDE_TOLD], "cpu");
    assert_int_equal(place_of(&dataset), PLACE_UNKNOWN);
    failures = 2;
    assert_int_equal(make_data("a=1", NULL, &made), GUIDE_NOTHING);
    failures = 1;
    error_text = "out of memory";
    assert_int_equal(make_data("a=1", NULL, &made), GUIDE_NO_MEMORY);
    failures = 1; /* data that refer to others, and were not made */
    place_add(&other_dataset, PLACE_ON_GPU);
    assert_int_equal(make_data("", &other_dataset, &made), GUIDE_NOTHING);
    assert_int_equal(place_of(&dataset), PLACE_UNKNOWN);
    place_remove(&other_dataset);
}

static void choices_in_parameters(void **state)
{
    static const struct {
        const char *parameters;
        bool choice;
    } rows[] = {{"", false},
                {"num_leaves=7 eta=0.1", false},
                {"device=cpu", true},
                {"num_leaves=7 device_type=gpu", true},
                {" \tnum_leaves=7\n\rdevice=cuda", true},
                {"devices=cpu", false},
                {"xdevice=cpu", false},
                {"gpu_platform_id=0", true},
                {"gpu=1", false},
                {"num_gpu=2", true},
                {"tree_learner=data", true},
                {"tree=data", true},
                {"trees=9", false},
                {"force_col_wise=true", true},
                {"deterministic=true", true},
                {"forcedsplits_filename=x", true},
                {"monotone_constraints=1", true},
                {"max_depth=-1", false},
                {"max_depth=0", false},
                {"max_depth=5", true},
                {"max_depth==5", true},
                {"max_depths=5", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *made = &dataset;
        const enum guide_news expected = rows[i].choice ? GUIDE_NOTHING : GUIDE_ON_GPU;
        assert_int_equal(make_data(rows[i].parameters, NULL, &made), GUIDE_NOTHING);
        if (place_of(&dataset) != (rows[i].choice ? PLACE_UNKNOWN : PLACE_ON_GPU))
            fail_msg("%s", rows[i].parameters);
        place_add(&dataset, PLACE_ON_GPU);
        assert_int_equal(make_booster(&dataset, rows[i].parameters, GUIDE_WITH_CUDA), expected);
        place_remove(&dataset);
    }
}

static void builds_of_lightgbm(void **state)
{
    (void)state;
    assert_int_equal(layout_of("lightgbm_booster"), GUIDE_WITH_CUDA);
    assert_int_equal(layout_of("lightgbm_dense"), GUIDE_WITH_CUDA);
    lacking = "_ZN8LightGBM24CUDASingleGPUTreeLearner4InitEPKNS_7DatasetEb";
    assert_int_equal(layout_of("lightgbm_booster"), GUIDE_NO_CUDA);
    assert_int_equal(layout_of("lightgbm_dense"), 0);
    lacking = "LGBM_GetLastError";
    assert_int_equal(layout_of("lightgbm_booster"), 0);
}

#define OF_LIBRARY(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {OF_LIBRARY(boosters_train_on_the_device),
                                       OF_LIBRARY(another_device),
                                       OF_LIBRARY(what_keeps_a_booster_on_the_cpu),
                                       OF_LIBRARY(a_build_without_cuda),
                                       OF_LIBRARY(failures_on_the_device),
                                       OF_LIBRARY(choices_of_the_program),
                                       OF_LIBRARY(builds_of_xgboost),
                                       OF_LIBRARY(data_and_boosters),
                                       OF_LIBRARY(functions_that_make_data),
                                       OF_LIBRARY(what_keeps_lightgbm_on_the_cpu),
                                       OF_LIBRARY(choices_in_parameters),
                                       OF_LIBRARY(builds_of_lightgbm)};
    mallopt(M_PERTURB, 0x5a); /* new memory is not all 0 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
