#define _GNU_SOURCE
#include "tests/lib/settings_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/settings/setting.h"
#include "ops/names.h"
#include "ops/op.h"

/* The file that this process runs, as the system says it; NULL: it is asked. This program is linked
 * with --wrap=file_program. */
static const char *program;
bool __wrap_file_program(char path[PATH_MAX]);
bool __real_file_program(char path[PATH_MAX]);
bool __wrap_file_program(char path[PATH_MAX])
{
    if (!program)
        return __real_file_program(path);
    strcpy(path, program);
    return true;
}

static bool same_settings(const struct accel_settings *a, const struct accel_settings *b)
{
    return a->on == b->on && a->log == b->log && !a->log_file == !b->log_file &&
           a->log_min_ms == b->log_min_ms && a->summary == b->summary && a->policy == b->policy &&
           !a->gpu_routines.text == !b->gpu_routines.text &&
           !a->cpu_routines.text == !b->cpu_routines.text && a->require_gpu == b->require_gpu &&
           a->start == b->start && a->start_given == b->start_given && a->learn == b->learn &&
           a->ml == b->ml && a->devices.kind == b->devices.kind &&
           a->devices.count == b->devices.count && a->verify_every == b->verify_every &&
           a->verify_action == b->verify_action && a->memory_share == b->memory_share &&
           a->memory_bytes == b->memory_bytes && a->model_given == b->model_given &&
           !a->server == !b->server && (!a->server || strcmp(a->server, b->server) == 0) &&
           !a->cuda_dir == !b->cuda_dir && !a->original == !b->original &&
           !a->summary_table == !b->summary_table && !a->estimate == !b->estimate &&
           !a->estimate_dir == !b->estimate_dir && a->broken_promise == b->broken_promise;
}

static const struct accel_settings standard = {
    .on = true, .memory_share = 0.8, .ml = ACCEL_ML_SAME, .server = ""};

static void defaults(void **state)
{
    char path[PATH_MAX];
    (void)state;
    struct accel_settings s = read_now();
    assert_true(same_settings(&s, &standard));
    assert_int_equal(s.log, ACCEL_LOG_OFF);
    assert_int_equal(s.policy, ACCEL_POLICY_AUTO);
    assert_int_equal(s.start, ACCEL_START_BACKGROUND);
    assert_int_equal(s.devices.kind, ACCEL_DEVICES_AUTO);
    print(path, sizeof path, "%s/.cache/accel/model", folder);
    assert_string_equal(s.model, path);
    assert_string_equal(complaints(), "");
}

/* An empty value is the default. */
static void empty_values(void **state)
{
    static const char *const names[] = {"ACCEL",
                                        "ACCEL_LOG",
                                        "ACCEL_LOG_FILE",
                                        "ACCEL_LOG_MIN_MS",
                                        "ACCEL_SUMMARY",
                                        "ACCEL_POLICY",
                                        "ACCEL_GPU",
                                        "ACCEL_CPU",
                                        "ACCEL_REQUIRE",
                                        "ACCEL_START",
                                        "ACCEL_LEARN",
                                        "ACCEL_DEVICES",
                                        "ACCEL_MEMORY",
                                        "ACCEL_MODEL",
                                        "ACCEL_EXCLUDE",
                                        "ACCEL_CUDA_DIR",
                                        "ACCEL_CONFIG",
                                        "ACCEL_ORIGINAL",
                                        "ACCEL_ESTIMATE",
                                        "ACCEL_ESTIMATE_DIR",
                                        "ACCEL_CALLED",
                                        "ACCEL_SUMMARY_TABLE",
                                        "ACCEL_METRICS_DIR",
                                        "ACCEL_VERIFY",
                                        "ACCEL_VERIFY_ACTION",
                                        "ACCEL_ML"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_settings s = read_with(names[i], "");
        assert_true(same_settings(&s, &standard));
        assert_non_null(s.model);
        assert_string_equal(complaints(), "");
    }
}

/* The default that people are shown is the one that counts. */
static void usual_values(void **state)
{
    int words = 0;
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &setting_table[i];
        if (!*setting->usual || strcmp(setting->name, "ACCEL_LOG_FILE") == 0 ||
            strcmp(setting->name, "ACCEL_MODEL") == 0)
            continue; /* nothing, and words that are no values: their tests are in tests/tool/ */
        struct accel_settings s = read_with(setting->name, setting->usual);
        s.start_given = false;
        assert_true(same_settings(&s, &standard));
        assert_string_equal(complaints(), "");
        words++;
    }
    assert_int_equal(words, 18);
}

static void server(void **state)
{
    static const char *const off[] = {"off", "OFF", "0", "no", "false"};
    static const char *const wrong[] = {"on", "1", "serve"};
    char path[PATH_MAX], here[PATH_MAX];
    (void)state;
    assert_string_equal(read_with("ACCEL_SERVER", "auto").server, "");
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        assert_null(read_with("ACCEL_SERVER", off[i]).server);
    assert_string_equal(read_with("ACCEL_SERVER", "/run/x").server, "/run/x");
    assert_non_null(getcwd(here, sizeof here));
    print(path, sizeof path, "%s/a/b", here);
    assert_string_equal(read_with("ACCEL_SERVER", "a/b").server, path);
    assert_string_equal(complaints(), "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_string_equal(read_with("ACCEL_SERVER", wrong[i]).server, "");
        assert_non_null(strstr(complaints(), "allowed: auto, off, or a socket's path"));
    }
}

static void choices(void **state)
{
    (void)state;
    assert_false(read_with("ACCEL", "0").on);
    assert_true(read_with("ACCEL", "1").on);
    assert_int_equal(read_with("ACCEL_LOG", "0").log, ACCEL_LOG_OFF);
    assert_int_equal(read_with("ACCEL_LOG", "1").log, ACCEL_LOG_DECISIONS);
    assert_int_equal(read_with("ACCEL_LOG", "2").log, ACCEL_LOG_MOVES);
    assert_int_equal(read_with("ACCEL_LOG", "json").log, ACCEL_LOG_JSON);
    assert_int_equal(read_with("ACCEL_POLICY", "auto").policy, ACCEL_POLICY_AUTO);
    assert_int_equal(read_with("ACCEL_POLICY", "gpu").policy, ACCEL_POLICY_GPU);
    assert_int_equal(read_with("ACCEL_POLICY", "cpu").policy, ACCEL_POLICY_CPU);
    assert_int_equal(read_with("ACCEL_RESIDENT", "auto").resident, ACCEL_RESIDENT_AUTO);
    assert_int_equal(read_with("ACCEL_RESIDENT", "hash").resident, ACCEL_RESIDENT_HASH);
    assert_int_equal(read_with("ACCEL_RESIDENT", "off").resident, ACCEL_RESIDENT_OFF);
    assert_int_equal(read_with("ACCEL_RESIDENT", "0").resident, ACCEL_RESIDENT_OFF);
    assert_int_equal(read_with("ACCEL_SUMMARY", "1").summary, ACCEL_SUMMARY_TEXT);
    assert_int_equal(read_with("ACCEL_SUMMARY", "json").summary, ACCEL_SUMMARY_JSON);
    assert_false(read_with("ACCEL_SUMMARY", "0").summary);
    assert_true(read_with("ACCEL_LEARN", "1").learn);
    assert_false(read_with("ACCEL_LEARN", "0").learn);
    assert_int_equal(read_with("ACCEL_ML", "1").ml, ACCEL_ML_SAME);
    assert_int_equal(read_with("ACCEL_ML", "0").ml, 0);
    assert_int_equal(read_with("ACCEL_ML", "xgboost").ml, 1u << ACCEL_XGBOOST);
    assert_int_equal(read_with("ACCEL_ML", "on , LightGBM").ml,
                     ACCEL_ML_SAME | 1u << ACCEL_LIGHTGBM);
    assert_int_equal(read_with("ACCEL_ML", "libsvm,liblinear").ml, ACCEL_ML_SAME);
    assert_int_equal(read_with("ACCEL_VERIFY", "off").verify_every, 0);
    assert_int_equal(read_with("ACCEL_VERIFY", "all").verify_every, 1);
    assert_int_equal(read_with("ACCEL_VERIFY", "sample:250").verify_every, 250);
    assert_int_equal(read_with("ACCEL_VERIFY_ACTION", "warn").verify_action, ACCEL_VERIFY_WARN);
    assert_int_equal(read_with("ACCEL_VERIFY_ACTION", "cpu").verify_action, ACCEL_VERIFY_CPU);
    assert_int_equal(read_with("ACCEL_VERIFY_ACTION", "abort").verify_action, ACCEL_VERIFY_ABORT);
    assert_true(read_with("ACCEL_REQUIRE", "gpu").require_gpu);
    assert_int_equal(read_with("ACCEL_START", "wait").start, ACCEL_START_WAIT);
    assert_true(read_with("ACCEL_START", "wait").start_given);
    assert_int_equal(read_with("ACCEL_START", "background").start, ACCEL_START_BACKGROUND);
    assert_int_equal(read_with("ACCEL_START", "program").start, ACCEL_START_PROGRAM);
    assert_true(read_with("ACCEL_START", "background").start_given);
    assert_string_equal(read_with("ACCEL_GPU", "dgemm,lapack:*").gpu_routines.text,
                        "dgemm,lapack:*");
    assert_string_equal(read_with("ACCEL_CPU", "[sd]*").cpu_routines.text, "[sd]*");
    assert_string_equal(read_with("ACCEL_CUDA_DIR", "/usr").cuda_dir, "/usr");
    assert_string_equal(read_with("ACCEL_ORIGINAL", "a:b").original, "a:b");
    assert_string_equal(read_with("ACCEL_ESTIMATE", "H100").estimate, "H100");
    assert_string_equal(complaints(), "");
}

/* Other words for the same, and upper and lower case. */
static void other_words(void **state)
{
    static const char *const yes[] = {"1", "on", "yes", "true", "On", "YES", "tRUE"},
                             *const no[] = {"0", "off", "no", "false", "OFF", "No", "falsE"};
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        assert_true(read_with("ACCEL", yes[i]).on);
        assert_false(read_with("ACCEL", no[i]).on);
        assert_true(read_with("ACCEL_SUMMARY", yes[i]).summary);
        assert_false(read_with("ACCEL_SUMMARY", no[i]).summary);
        assert_true(read_with("ACCEL_LEARN", yes[i]).learn);
        assert_int_equal(read_with("ACCEL_LOG", yes[i]).log, ACCEL_LOG_DECISIONS);
        assert_int_equal(read_with("ACCEL_LOG", no[i]).log, ACCEL_LOG_OFF);
        assert_int_equal(read_with("ACCEL_VERIFY", no[i]).verify_every, 0);
        assert_string_equal(complaints(), "");
        assert_false(read_with("ACCEL_REQUIRE", no[i]).require_gpu);
        assert_string_equal(complaints(), "");
    }
    assert_int_equal(read_with("ACCEL_LOG", "JSON").log, ACCEL_LOG_JSON);
    assert_int_equal(read_with("ACCEL_POLICY", "GPU").policy, ACCEL_POLICY_GPU);
    assert_true(read_with("ACCEL_REQUIRE", "Gpu").require_gpu);
    assert_int_equal(read_with("ACCEL_START", "Wait").start, ACCEL_START_WAIT);
    assert_int_equal(read_with("ACCEL_DEVICES", "None").devices.kind, ACCEL_DEVICES_NONE);
    assert_int_equal(read_with("ACCEL_VERIFY", "ALL").verify_every, 1);
    assert_int_equal(read_with("ACCEL_VERIFY", "Sample:7").verify_every, 7);
    assert_int_equal(read_with("ACCEL_VERIFY_ACTION", "ABORT").verify_action, ACCEL_VERIFY_ABORT);
    assert_string_equal(complaints(), "");
}

/* The user wants the GPU, and who has written another file has switched libaccel off. */
static void switched_off_by_others(void **state)
{
    char line[PATH_MAX + 200];
    (void)state;
    setenv("ACCEL_REQUIRE", "gpu", 1);
    write_file(systems, "\nACCEL = 0\n");
    struct accel_settings s = read_now();
    assert_true(s.on && s.broken_promise);
    print(line, sizeof line,
          "accel: %s:2: ACCEL switches libaccel off, and ACCEL_REQUIRE=gpu is set; the program "
          "ends at "
          "its first call of BLAS, unless ACCEL=1 is set, too\n",
          systems);
    assert_string_equal(complaints(), line);
    sources.whole = true;
    assert_true(read_now().broken_promise);
    assert_false(read_now().on);
    sources.whole = false;
    setenv("ACCEL", "1", 1);
    assert_false(read_now().broken_promise);
    setenv("ACCEL", "0", 1); /* the user's own wish */
    s = read_now();
    assert_false(s.on || s.broken_promise);
    assert_string_equal(complaints(), "");
    unsetenv("ACCEL");
    sources.program = "bash";
    assert_false(read_now().broken_promise);
    sources.program = "test";
    unsetenv("ACCEL_REQUIRE");
    assert_false(read_now().broken_promise);
    write_file(users_own, "ACCEL_REQUIRE = gpu\n");
    assert_true(read_now().broken_promise);
    write_file(users_own, "ACCEL_REQUIRE = gpu\nACCEL = 0\n");
    assert_false(read_now().broken_promise);
    write_file(systems, "ACCEL = 0\nACCEL_REQUIRE = gpu\n");
    unlink(users_own);
    assert_false(read_now().broken_promise);
}

/* What is set beside ACCEL=0: nothing for a program, all for the tool. */
static void settings_beside_off(void **state)
{
    (void)state;
    setenv("ACCEL", "0", 1);
    setenv("ACCEL_CUDA_DIR", folder, 1);
    setenv("ACCEL_LOG", "wrong", 1);
    struct accel_settings s = read_now();
    assert_true(!s.on && !s.cuda_dir && !s.model);
    assert_string_equal(complaints(), "");
    sources.whole = true;
    s = read_now();
    assert_false(s.on);
    assert_string_equal(s.cuda_dir, folder);
    assert_non_null(s.model);
    assert_string_equal(complaints(), "");
    setenv("ACCEL_REQUIRE", "1", 1);
    assert_false(read_now().broken_promise);
}

/* A setting that promises something, and cannot be read. */
static void broken_promises(void **state)
{
    static const char *const broken[][2] = {{"ACCEL_REQUIRE", "1"},
                                            {"ACCEL_VERIFY", "on"},
                                            {"ACCEL_VERIFY", "1"},
                                            {"ACCEL_VERIFY_ACTION", "stop"}};
    char text[2000] = "";
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_true(read_with(broken[i][0], broken[i][1]).broken_promise);
        assert_non_null(strstr(complaints(), "; the program ends at its first call of BLAS\n"));
    }
    assert_false(read_with("ACCEL_REQUIRE", "").broken_promise);
    assert_false(read_with("ACCEL_LOG", "wrong").broken_promise);
    /* Not where libaccel is off, or leaves the program alone. */
    setenv("ACCEL_REQUIRE", "1", 1);
    setenv("ACCEL", "0", 1);
    assert_false(read_now().broken_promise);
    assert_string_equal(complaints(), "");
    setenv("ACCEL", "1", 1);
    sources.program = "bash";
    assert_false(read_now().broken_promise);
    assert_string_equal(complaints(), "");
    /* It is said, however much else is wrong. */
    for (int i = 0; i < 40; i++)
        strcat(text, "wrong\n");
    strcat(text, "ACCEL_REQUIRE=1\nACCEL_VERIFY=on\n");
    assert_true(read_file(text).broken_promise);
    const char *said = complaints();
    assert_non_null(strstr(said, ":41: ACCEL_REQUIRE=1 is not understood; allowed: gpu,off; the "
                                 "program ends at its first call of BLAS\n"));
    assert_non_null(strstr(said, ":42: ACCEL_VERIFY=on is not understood"));
    assert_int_equal(lines_of(said), 17);
}

/* Names in the environment that begin like ours. */
static void unknown_names(void **state)
{
    static const char *const unknown[][2] = {
        {"ACCEL_LOGG", "ACCEL_LOG"},         {"ACCEL_REQUIRES", "ACCEL_REQUIRE"},
        {"ACCEL_VERFIY", "ACCEL_VERIFY"},    {"ACCEL_LOGFILE", "ACCEL_LOG_FILE"},
        {"ACCEL_CUDADIR", "ACCEL_CUDA_DIR"}, {"ACCEL_policy", "ACCEL_POLICY"}};
    char expected[300];
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct accel_settings s = read_with(unknown[i][0], "1");
        assert_true(same_settings(&s, &standard));
        print(expected, sizeof expected,
              "accel: %s is no setting of this version; the nearest is %s; it is ignored\n",
              unknown[i][0], unknown[i][1]);
        assert_string_equal(complaints(), expected);
    }
    read_with("ACCEL_HOME", "/opt/somebody/elses");
    assert_int_equal(lines_of(complaints()), 1);
    read_with("ACCELERATE", "1");
    assert_string_equal(complaints(), "");
    read_with("ACCEL_ESTIMATE", "H100"); /* the tool's own */
    assert_string_equal(complaints(), "");
    char **const before = environ; /* which the runner's own are in */
    environ = NULL;
    read_now();
    environ = before;
    assert_string_equal(complaints(), "");
}

/* Files and folders that a setting names, and that are not there. */
static void missing_files(void **state)
{
    char path[PATH_MAX], expected[2 * PATH_MAX];
    (void)state;
    assert_string_equal(read_with("ACCEL_CUDA_DIR", "/none/x").cuda_dir, "/none/x");
    assert_string_equal(complaints(), "accel: ACCEL_CUDA_DIR=/none/x cannot be opened (No such "
                                      "file or directory); it is ignored\n");
    read_with("ACCEL_CUDA_DIR", "/dev/null");
    assert_string_equal(complaints(), "accel: ACCEL_CUDA_DIR=/dev/null cannot be opened (Not a "
                                      "directory); it is ignored\n");
    write_file(named, "");
    print(path, sizeof path, "libblas.so.3:%s:/none/liba.so::./none/libb.so", named);
    setenv("ACCEL_CUDA_DIR", "/", 1);
    setenv("ACCEL_ORIGINAL", path, 1);
    assert_string_equal(read_now().original, path);
    assert_string_equal(complaints(), "accel: ACCEL_ORIGINAL=/none/liba.so cannot be opened (No "
                                      "such file or directory); it is ignored\n"
                                      "accel: ACCEL_ORIGINAL=./none/libb.so cannot be opened (No "
                                      "such file or directory); it is ignored\n");
    read_file("\nACCEL_CUDA_DIR = /none\n");
    print(expected, sizeof expected,
          "accel: %s:2: ACCEL_CUDA_DIR=/none cannot be opened (No such file or directory); it is "
          "ignored\n",
          systems);
    assert_string_equal(complaints(), expected);
}

static void paths(void **state)
{
    char path[PATH_MAX], odd[PATH_MAX], here[PATH_MAX];
    (void)state;
    assert_string_equal(read_with("ACCEL_LOG_FILE", "/tmp/x.%p").log_file, "/tmp/x.%p");
    assert_string_equal(read_with("ACCEL_MODEL", "/tmp/x.%p").model, "/tmp/x.%p");
    assert_true(read_with("ACCEL_MODEL", "/tmp/x.%p").model_given);
    assert_string_equal(read_with("ACCEL_ESTIMATE_DIR", "/tmp/x").estimate_dir, "/tmp/x");
    /* The program may change its folder before anything is written. That of a pattern stays
     * itself. */
    assert_non_null(getcwd(here, sizeof here));
    print(odd, sizeof odd, "%s/50%%p", folder);
    mkdir(odd, 0700);
    assert_int_equal(chdir(odd), 0);
    print(path, sizeof path, "%s/50%%%%p/x.%%p", folder);
    assert_string_equal(read_with("ACCEL_LOG_FILE", "x.%p").log_file, path);
    print(path, sizeof path, "%s/50%%p/x.%%p", folder);
    assert_string_equal(read_with("ACCEL_MODEL", "x.%p").model, path);
    assert_string_equal(read_with("ACCEL_ESTIMATE_DIR", "x.%p").estimate_dir, path);
    assert_string_equal(read_with("ACCEL_CALLED", "x.%p").called, path);
    assert_int_equal(chdir(here), 0);
    rmdir(odd);

    assert_string_equal(read_with("XDG_CACHE_HOME", "/cache").model, "/cache/accel/model");
    print(path, sizeof path, "%s/.cache/accel/model", folder);
    assert_string_equal(read_with("XDG_CACHE_HOME", "relative").model, path);
    assert_false(read_with("XDG_CACHE_HOME", "/cache").model_given);
    assert_null(read_with("HOME", "relative").model);
    clear(NULL);
    unsetenv("HOME");
    assert_null(read_now().model);
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = 0;
    assert_null(read_with("HOME", path).model);
    assert_string_equal(complaints(), "");
}

static void milliseconds(void **state)
{
    (void)state;
    assert_true(read_with("ACCEL_LOG_MIN_MS", "0").log_min_ms == 0);
    assert_true(read_with("ACCEL_LOG_MIN_MS", "0.5").log_min_ms == 0.5);
    assert_true(read_with("ACCEL_LOG_MIN_MS", ".25").log_min_ms == 0.25);
    assert_true(read_with("ACCEL_LOG_MIN_MS", "1000").log_min_ms == 1000);
    assert_string_equal(complaints(), "");
}

static void memory(void **state)
{
    (void)state;
    assert_true(read_with("ACCEL_MEMORY", "50%").memory_share == 0.5);
    assert_int_equal(read_with("ACCEL_MEMORY", "50%").memory_bytes, 0);
    assert_int_equal(read_with("ACCEL_MEMORY", "1048576").memory_bytes, 1 << 20);
    assert_int_equal(read_with("ACCEL_MEMORY", "3K").memory_bytes, 3 << 10);
    assert_int_equal(read_with("ACCEL_MEMORY", "1.5M").memory_bytes, 3 << 19);
    assert_int_equal(read_with("ACCEL_MEMORY", "2G").memory_bytes, (int64_t)2 << 30);
    assert_int_equal(read_with("ACCEL_MEMORY", "1T").memory_bytes, (int64_t)1 << 40);
    static const char *const four[] = {"4G", "4g", "4GB", "4gb", "4GiB", "4gIb", "4 GB", "4096M"};
    for (size_t i = 0; i < sizeof four / sizeof *four; i++)
        assert_int_equal(read_with("ACCEL_MEMORY", four[i]).memory_bytes, (int64_t)4 << 30);
    assert_true(read_with("ACCEL_MEMORY", "25 %").memory_share == 0.25);
    assert_string_equal(complaints(), "");
}

static void devices(void **state)
{
    char all[400] = "";
    (void)state;
    assert_int_equal(read_with("ACCEL_DEVICES", "auto").devices.kind, ACCEL_DEVICES_AUTO);
    assert_int_equal(read_with("ACCEL_DEVICES", "none").devices.kind, ACCEL_DEVICES_NONE);
    assert_int_equal(read_with("ACCEL_DEVICES", "All").devices.kind, ACCEL_DEVICES_ALL);
    struct accel_devices d = read_with("ACCEL_DEVICES", "2, 0").devices;
    assert_int_equal(d.kind, ACCEL_DEVICES_LIST);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.number[0], 2);
    assert_int_equal(d.number[1], 0);
    for (int i = 0; i < ACCEL_DEVICES_MAX; i++)
        print(all + strlen(all), sizeof all - strlen(all), "%s%d", i ? "," : "", i);
    d = read_with("ACCEL_DEVICES", all).devices;
    assert_int_equal(d.count, ACCEL_DEVICES_MAX);
    assert_int_equal(d.number[63], 63);
    assert_string_equal(complaints(), "");
}

static void bad_values(void **state)
{
    static const char devices[] = "auto, all, none, or numbers of devices such as 0,2, each once",
                      memory[] =
                          "a share such as 80%, or a size such as 500M or 12G; of bytes without a "
                          "unit, 1048576 at least",
                      precision[] =
                          "native, emulated (double precision alone), tf32, bf16x9 (single "
                          "alone); of one routine of products, as in ROUTINE:emulated",
                      ml[] = "1, 0, or names of libsvm, liblinear, xgboost, lightgbm",
                      ms[] = "a number of milliseconds such as 0.5",
                      verify[] = "off, all, or sample:N with N from 1 to 9999999999";
    static const struct {
        const char *name, *value, *allowed;
    } bad[] = {{"ACCEL", "maybe", "0,1"},
               {"ACCEL_LOG_MIN_MS", "-1", ms},
               {"ACCEL_LOG_MIN_MS", "1s", ms},
               {"ACCEL_LOG_MIN_MS", "1e3", ms},
               {"ACCEL_LOG_MIN_MS", "nan", ms},
               {"ACCEL_LOG_MIN_MS", ".", ms},
               {"ACCEL_LOG", "3", "0,1,2,json"},
               {"ACCEL_LOG", "json,", "0,1,2,json"},
               {"ACCEL_LOG", "0,1", "0,1,2,json"},
               {"ACCEL_LOG", "0|off", "0,1,2,json"},
               {"ACCEL_LOG", "jsonl", "0,1,2,json"},
               {"ACCEL_LOG", "js", "0,1,2,json"},
               {"ACCEL_POLICY", "auto,", "auto,gpu,cpu"},
               {"ACCEL_SUMMARY", "2", "0,1,json"},
               {"ACCEL_REQUIRE", "cpu", "gpu,off"},
               {"ACCEL_REQUIRE", "1", "gpu,off"},
               {"ACCEL_START", "0", "background,wait,program"},
               {"ACCEL_LEARN", "y", "0,1"},
               {"ACCEL_ML", "xgb", ml},
               {"ACCEL_ML", "xgboost,", ml},
               {"ACCEL_ML", ",xgboost", ml},
               {"ACCEL_ML", "xgboost libsvm", ml},
               {"ACCEL_ML", "a-name-that-is-longer-than-any-library", ml},
               {"ACCEL_DEVICES", "all,0", devices},
               {"ACCEL_DEVICES", "0,", devices},
               {"ACCEL_DEVICES", ",0", devices},
               {"ACCEL_DEVICES", "0,,1", devices},
               {"ACCEL_DEVICES", "0,1,0", devices},
               {"ACCEL_DEVICES", "0 1", devices},
               {"ACCEL_DEVICES", "-1", devices},
               {"ACCEL_DEVICES", "64", devices},
               {"ACCEL_DEVICES", "99999999999999999999", devices},
               {"ACCEL_DEVICES", "0,auto", devices},
               {"ACCEL_DEVICES", "none,", devices},
               {"ACCEL_DEVICES", " ", devices},
               {"ACCEL_PRECISION", "sgemm:emulated", precision},
               {"ACCEL_MEMORY", "0%", memory},
               {"ACCEL_MEMORY", "101%", memory},
               {"ACCEL_MEMORY", "-1G", memory},
               {"ACCEL_MEMORY", "1X", memory},
               {"ACCEL_MEMORY", "nan", memory},
               {"ACCEL_MEMORY", "0x10", memory},
               {"ACCEL_MEMORY", "1GBs", memory},
               {"ACCEL_MEMORY", "1B", memory},
               {"ACCEL_MEMORY", "1iB", memory},
               {"ACCEL_MEMORY", "12", memory},
               {"ACCEL_MEMORY", "80", memory},
               {"ACCEL_MEMORY", "40000", memory},
               {"ACCEL_MEMORY", "0.5K", memory},
               {"ACCEL_MEMORY", " 1G", memory},
               {"ACCEL_MEMORY", "99999999T", memory},
               {"ACCEL_VERIFY", "1", verify},
               {"ACCEL_VERIFY", "on", verify},
               {"ACCEL_VERIFY", "sample", verify},
               {"ACCEL_VERIFY", "sample:", verify},
               {"ACCEL_VERIFY", "sample:0", verify},
               {"ACCEL_VERIFY", "sample:-1", verify},
               {"ACCEL_VERIFY", "sample:10%", verify},
               {"ACCEL_VERIFY", "sample:99999999999999999999", verify},
               {"ACCEL_VERIFY", "allofthem", verify},
               {"ACCEL_VERIFY_ACTION", "stop", "warn,cpu,abort"}};
    char expected[500], text[500];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const bool promise = strncmp(bad[i].name, "ACCEL_REQUIRE", 13) == 0 ||
                             strncmp(bad[i].name, "ACCEL_VERIFY", 12) == 0;
        const char *outcome =
            promise ? "the program ends at its first call of BLAS" : "the default is used";
        struct accel_settings s = read_with(bad[i].name, bad[i].value), unread = standard;
        unread.broken_promise = promise;
        assert_true(same_settings(&s, &unread));
        print(expected, sizeof expected, "accel: %s=%s is not understood; allowed: %s; %s\n",
              bad[i].name, bad[i].value, bad[i].allowed, outcome);
        assert_string_equal(complaints(), expected);
        /* The same in a file, whose name and line are said. Blanks around a value mean nothing
         * there. */
        print(text, sizeof text, "# here:\n%s = \"%s\"\n", bad[i].name, bad[i].value);
        s = read_file(text);
        assert_true(same_settings(&s, &unread));
        print(expected, sizeof expected, "accel: %s:2: %s=%s is not understood; allowed: %s; %s\n",
              systems, bad[i].name, bad[i].value, bad[i].allowed, outcome);
        assert_string_equal(complaints(), expected);
    }
    read_with("ACCEL_LOG", "a\nb\x1b[2J");
    assert_non_null(strstr(complaints(), "accel: ACCEL_LOG=a?b?[2J is not understood"));
    setenv("ACCEL_POLICY", "fast", 1);
    read_now();
    assert_int_equal(lines_of(complaints()), 2);
}

static void what_does_not_fit(void **state)
{
    static char value[20000];
    (void)state;
    memset(value, 'a', sizeof value - 1);
    static const char *const names[] = {"ACCEL_LOG_FILE", "ACCEL_GPU", "ACCEL_MODEL",
                                        "ACCEL_ORIGINAL", "ACCEL_ESTIMATE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_settings s = read_with(names[i], value);
        assert_true(same_settings(&s, &standard));
        const char *said = complaints();
        assert_int_equal(lines_of(said), 1);
        assert_non_null(strstr(said, names[i]));
        assert_non_null(strstr(said, "aaa… is too long: there is room for 16 KiB in all settings; "
                                     "the default is used\n"));
    }
    /* Together they do not fit either. What else there is counts. */
    value[9000] = 0;
    clear(NULL);
    setenv("ACCEL_GPU", value, 1);
    setenv("ACCEL_CPU", value, 1);
    setenv("ACCEL_LOG", "1", 1);
    write_file(systems, "ACCEL_SUMMARY=1\n");
    struct accel_settings s = read_now();
    assert_string_equal(s.gpu_routines.text, value);
    assert_null(s.cpu_routines.text);
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    assert_true(s.summary);
    assert_int_equal(lines_of(complaints()), 1);
}

static void nothing_is_read_when_off(void **state)
{
    (void)state;
    setenv("ACCEL", "0", 1);
    setenv("ACCEL_LOG", "1", 1);
    setenv("ACCEL_POLICY", "wrong", 1);
    setenv("ACCEL_ORIGINAL", "libblas.so.3", 1);
    struct accel_settings s = read_now();
    assert_false(s.on);
    assert_int_equal(s.log, ACCEL_LOG_OFF);
    assert_null(s.model);
    assert_string_equal(s.original, "libblas.so.3"); /* to find the original is no acceleration */
    assert_string_equal(complaints(), "");
    clear(NULL);
    write_file(systems, "ACCEL=0\nACCEL_LOG=1\nACCEL_ORIGINAL=libblas.so.3\n");
    s = read_now();
    assert_false(s.on);
    assert_int_equal(s.log, ACCEL_LOG_OFF);
    assert_string_equal(s.original, "libblas.so.3");
}

static void secure(void **state)
{
    (void)state;
    setenv("ACCEL_LOG", "1", 1);
    setenv("ACCEL_ORIGINAL", "libblas.so.3", 1);
    write_file(systems, "ACCEL_SUMMARY=1\nwrong\n");
    sources.secure = true;
    struct accel_settings s = read_now();
    assert_false(s.on);
    assert_false(s.summary);
    assert_null(s.original);
    assert_null(s.model);
    assert_string_equal(complaints(), "");
}

/* ---- Programs that are left alone ---- */

static bool is_on(const char *program, const char *exclude)
{
    clear(NULL);
    sources.program = program;
    if (exclude)
        setenv("ACCEL_EXCLUDE", exclude, 1);
    return read_now().on;
}

static void excluded_programs(void **state)
{
    static const char *const launchers[] = {
        "sh",   "bash",   "dash",   "zsh",     "zsh-5.9",       "ksh93",
        "csh",  "tcsh",   "fish",   "busybox", "env",           "sudo",
        "su",   "ssh",    "sshd",   "make",    "ninja",         "git",
        "srun", "salloc", "sbatch", "orted",   "slurmstepd",    "mpirun",
        "time", "xargs",  "tmux",   "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy"};
    static const char *const others[] = {"python3.12", "octave-cli", "R",     "a.out", "bashful",
                                         "shx",        "default",    "xhpcc", "",      "mpirunner"};
    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        assert_false(is_on(launchers[i], NULL));
        assert_false(is_on(launchers[i], ""));
        assert_false(is_on(launchers[i], "foo,default"));
        assert_true(is_on(launchers[i], "foo"));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(is_on(others[i], NULL));
        assert_true(is_on(others[i], "default,foo"));
    }
    assert_false(is_on("python3.12", "python*"));
    assert_false(is_on("python3.12", "default, python3.1[0-2]"));
    assert_true(is_on("python3.13", "default, python3.1[0-2]"));
    assert_false(is_on("foo", "default,foo"));

    clear(NULL);
    sources.program = "bash";
    setenv("ACCEL_ORIGINAL", "libblas.so.3", 1);
    setenv("ACCEL_LOG", "wrong", 1);
    write_file(systems, "wrong\n");
    assert_string_equal(read_now().original, "libblas.so.3");
    assert_string_equal(complaints(), "");
    write_file(systems, "ACCEL_EXCLUDE=dash\n");
    unsetenv("ACCEL_LOG");
    assert_true(read_now().on);
    setenv("ACCEL_EXCLUDE", "", 1); /* the default again */
    assert_false(read_now().on);
}

/* The real sources: this program is no shell. */
static void real_sources(void **state)
{
    struct accel_settings s;
    (void)state;
    setenv("ACCEL_LOG", "1", 1);
    settings_read(&s);
    assert_true(s.on);
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    setenv("ACCEL_EXCLUDE", "test_settings", 1);
    settings_read(&s);
    assert_false(s.on);
    /* As the system names a program whose file is gone. */
    static const char *const names[][2] = {{"/opt/some_program (deleted)", "some_program"},
                                           {"/opt/p (deleted)", "p"},
                                           {"some_program (deleted)", "some_program"},
                                           {"/opt/ (deleted)", "?(deleted)"},
                                           {"/opt (deleted)/program", "program"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        program = names[i][0];
        setenv("ACCEL_EXCLUDE", names[i][1], 1);
        settings_read(&s);
        assert_false(s.on);
        setenv("ACCEL_EXCLUDE", "another_program", 1);
        settings_read(&s);
        assert_true(s.on);
    }
    program = NULL;
}

static void routines(void **state)
{
    char expected[1000];
    (void)state;
    struct accel_settings s = read_with("ACCEL_GPU", "dgemm,lapack:*");
    settings_check_routines(&s, accel_routines, accel_routine_count);
    assert_string_equal(complaints(), "");
    setenv("ACCEL_GPU", "dgem,sgem", 1);
    write_file(systems, "\nACCEL_CPU=dgemm,blas1:*\n");
    s = read_now();
    settings_check_routines(&s, accel_routines, accel_routine_count);
    print(expected, sizeof expected,
          "accel: ACCEL_GPU=dgem: no routine has that name; allowed: names and globs such as "
          "?gemm; this name is ignored\n"
          "accel: %s:2: ACCEL_CPU=blas1:*: no such group; there are blas, blas2, blas3 and lapack; "
          "this name is ignored\n",
          systems);
    assert_string_equal(complaints(), expected);
    assert_string_equal(s.gpu_routines.text, "dgem,sgem");
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear),
        cmocka_unit_test_setup(empty_values, clear),
        cmocka_unit_test_setup(usual_values, clear),
        cmocka_unit_test_setup(server, clear),
        cmocka_unit_test_setup(choices, clear),
        cmocka_unit_test_setup(other_words, clear),
        cmocka_unit_test_setup(broken_promises, clear),
        cmocka_unit_test_setup(switched_off_by_others, clear),
        cmocka_unit_test_setup(settings_beside_off, clear),
        cmocka_unit_test_setup(unknown_names, clear),
        cmocka_unit_test_setup(missing_files, clear),
        cmocka_unit_test_setup(paths, clear),
        cmocka_unit_test_setup(milliseconds, clear),
        cmocka_unit_test_setup(memory, clear),
        cmocka_unit_test_setup(devices, clear),
        cmocka_unit_test_setup(bad_values, clear),
        cmocka_unit_test_setup(what_does_not_fit, clear),
        cmocka_unit_test_setup(nothing_is_read_when_off, clear),
        cmocka_unit_test_setup(secure, clear),
        cmocka_unit_test_setup(excluded_programs, clear),
        cmocka_unit_test_setup(real_sources, clear),
        cmocka_unit_test_setup(routines, clear),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
