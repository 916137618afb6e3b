#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/output.h"
#include "dispatch/settings.h"
#include "shim/names.h"

/* A folder with the config files there may be. */
static char folder[] = "/tmp/accel-settings-XXXXXX";
static char named[PATH_MAX], users_own[PATH_MAX], systems[PATH_MAX];
static struct settings_sources sources = {.system_file = systems, .program = "test"};

__attribute__((format(printf, 3, 4))) static void print(char *to, size_t size, const char *format,
                                                        ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    assert_true(length >= 0 && (size_t)length < size);
}

static int make_folder(void **state)
{
    char path[PATH_MAX];
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    print(named, sizeof named, "%s/named", folder);
    print(systems, sizeof systems, "%s/systems", folder);
    print(path, sizeof path, "%s/.config", folder);
    mkdir(path, 0700);
    print(path, sizeof path, "%s/.config/accel", folder);
    mkdir(path, 0700);
    print(users_own, sizeof users_own, "%s/accel.conf", path);
    return 0;
}

static int remove_folder(void **state)
{
    char path[PATH_MAX];
    (void)state;
    print(path, sizeof path, "%s/.config/accel", folder);
    rmdir(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    return rmdir(folder);
}

static int clear(void **state)
{
    (void)state;
    static char format[16]; /* cmocka's own, in which the runner reads the results */
    const char *wanted = getenv("CMOCKA_MESSAGE_OUTPUT");
    if (wanted)
        strncpy(format, wanted, sizeof format - 1);
    clearenv();
    if (format[0])
        setenv("CMOCKA_MESSAGE_OUTPUT", format, 1);
    setenv("HOME", folder, 1);
    unlink(named);
    unlink(users_own);
    unlink(systems);
    sources = (struct settings_sources){.system_file = systems, .program = "test"};
    return 0;
}

static struct accel_settings read_now(void)
{
    struct accel_settings settings;
    errno = 77;
    settings_read_from(&settings, &sources);
    assert_int_equal(errno, 77);
    return settings;
}

static struct accel_settings read_with(const char *name, const char *value)
{
    clear(NULL);
    setenv(name, value, 1);
    return read_now();
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static void write_file(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* The settings with this file alone. */
static struct accel_settings read_file(const char *text)
{
    clear(NULL);
    write_file(systems, text);
    return read_now();
}

/* What settings_complain() writes to stderr, as often as it is called. */
static const char *complaints(void)
{
    static char text[32768];
    int ends[2], keep = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    close(ends[1]);
    output_start(); /* this is stderr */
    settings_complain();
    settings_complain();
    dup2(keep, 2);
    close(keep);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)n;
    text[length] = 0;
    close(ends[0]);
    return text;
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static bool same_settings(const struct accel_settings *a, const struct accel_settings *b)
{
    return a->on == b->on && a->log == b->log && !a->log_file == !b->log_file &&
           a->summary == b->summary && a->policy == b->policy &&
           !a->gpu_routines.text == !b->gpu_routines.text &&
           !a->cpu_routines.text == !b->cpu_routines.text && a->require_gpu == b->require_gpu &&
           a->start == b->start && a->start_given == b->start_given && a->learn == b->learn &&
           a->devices.kind == b->devices.kind && a->devices.count == b->devices.count &&
           a->memory_share == b->memory_share && a->memory_bytes == b->memory_bytes &&
           a->model_given == b->model_given && !a->cuda_dir == !b->cuda_dir &&
           !a->original == !b->original && !a->estimate == !b->estimate &&
           !a->estimate_dir == !b->estimate_dir;
}

static const struct accel_settings standard = {.on = true, .memory_share = 0.8};

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
    static const char *const names[] = {
        "ACCEL",         "ACCEL_LOG",      "ACCEL_LOG_FILE", "ACCEL_SUMMARY",     "ACCEL_POLICY",
        "ACCEL_GPU",     "ACCEL_CPU",      "ACCEL_REQUIRE",  "ACCEL_START",       "ACCEL_LEARN",
        "ACCEL_DEVICES", "ACCEL_MEMORY",   "ACCEL_MODEL",    "ACCEL_EXCLUDE",     "ACCEL_CUDA_DIR",
        "ACCEL_CONFIG",  "ACCEL_ORIGINAL", "ACCEL_ESTIMATE", "ACCEL_ESTIMATE_DIR"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_settings s = read_with(names[i], "");
        assert_true(same_settings(&s, &standard));
        assert_non_null(s.model);
        assert_string_equal(complaints(), "");
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
    assert_true(read_with("ACCEL_SUMMARY", "1").summary);
    assert_false(read_with("ACCEL_SUMMARY", "0").summary);
    assert_true(read_with("ACCEL_LEARN", "1").learn);
    assert_false(read_with("ACCEL_LEARN", "0").learn);
    assert_true(read_with("ACCEL_REQUIRE", "gpu").require_gpu);
    assert_int_equal(read_with("ACCEL_START", "wait").start, ACCEL_START_WAIT);
    assert_true(read_with("ACCEL_START", "wait").start_given);
    assert_int_equal(read_with("ACCEL_START", "background").start, ACCEL_START_BACKGROUND);
    assert_true(read_with("ACCEL_START", "background").start_given);
    assert_string_equal(read_with("ACCEL_GPU", "dgemm,lapack:*").gpu_routines.text,
                        "dgemm,lapack:*");
    assert_string_equal(read_with("ACCEL_CPU", "[sd]*").cpu_routines.text, "[sd]*");
    assert_string_equal(read_with("ACCEL_CUDA_DIR", "/opt/cuda").cuda_dir, "/opt/cuda");
    assert_string_equal(read_with("ACCEL_ORIGINAL", "a:b").original, "a:b");
    assert_string_equal(read_with("ACCEL_ESTIMATE", "H100").estimate, "H100");
    assert_string_equal(complaints(), "");
}

static void paths(void **state)
{
    char path[PATH_MAX], odd[PATH_MAX], here[PATH_MAX];
    (void)state;
    assert_string_equal(read_with("ACCEL_LOG_FILE", "/tmp/x.%p").log_file, "/tmp/x.%p");
    assert_string_equal(read_with("ACCEL_MODEL", "/tmp/x.%p").model, "/tmp/x.%p");
    assert_true(read_with("ACCEL_MODEL", "/tmp/x.%p").model_given);
    assert_string_equal(read_with("ACCEL_ESTIMATE_DIR", "/tmp/x").estimate_dir, "/tmp/x");
    /* The program may change its folder before anything is written. That of a pattern stays itself. */
    assert_non_null(getcwd(here, sizeof here));
    print(odd, sizeof odd, "%s/50%%p", folder);
    mkdir(odd, 0700);
    assert_int_equal(chdir(odd), 0);
    print(path, sizeof path, "%s/50%%%%p/x.%%p", folder);
    assert_string_equal(read_with("ACCEL_LOG_FILE", "x.%p").log_file, path);
    print(path, sizeof path, "%s/50%%p/x.%%p", folder);
    assert_string_equal(read_with("ACCEL_MODEL", "x.%p").model, path);
    assert_string_equal(read_with("ACCEL_ESTIMATE_DIR", "x.%p").estimate_dir, path);
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

static void memory(void **state)
{
    (void)state;
    assert_true(read_with("ACCEL_MEMORY", "50%").memory_share == 0.5);
    assert_int_equal(read_with("ACCEL_MEMORY", "50%").memory_bytes, 0);
    assert_int_equal(read_with("ACCEL_MEMORY", "4096").memory_bytes, 4096);
    assert_int_equal(read_with("ACCEL_MEMORY", "3K").memory_bytes, 3 << 10);
    assert_int_equal(read_with("ACCEL_MEMORY", "1.5M").memory_bytes, 3 << 19);
    assert_int_equal(read_with("ACCEL_MEMORY", "2G").memory_bytes, (int64_t)2 << 30);
    assert_int_equal(read_with("ACCEL_MEMORY", "1T").memory_bytes, (int64_t)1 << 40);
}

static void devices(void **state)
{
    char all[400] = "";
    (void)state;
    assert_int_equal(read_with("ACCEL_DEVICES", "auto").devices.kind, ACCEL_DEVICES_AUTO);
    assert_int_equal(read_with("ACCEL_DEVICES", "none").devices.kind, ACCEL_DEVICES_NONE);
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
    static const char devices[] = "auto, none, or numbers of devices such as 0,2, each once",
                      memory[] = "a share such as 80%, or a size such as 500M or 12G";
    static const struct {
        const char *name, *value, *allowed;
    } bad[] = {{"ACCEL", "yes", "0,1"},
               {"ACCEL_LOG", "3", "0,1,2,json"},
               {"ACCEL_LOG", "json,", "0,1,2,json"},
               {"ACCEL_LOG", "0,1", "0,1,2,json"},
               {"ACCEL_LOG", "JSON", "0,1,2,json"},
               {"ACCEL_POLICY", "auto,", "auto,gpu,cpu"},
               {"ACCEL_SUMMARY", "on", "0,1"},
               {"ACCEL_REQUIRE", "cpu", "gpu"},
               {"ACCEL_REQUIRE", "1", "gpu"},
               {"ACCEL_START", "0", "background,wait"},
               {"ACCEL_LEARN", "yes", "0,1"},
               {"ACCEL_DEVICES", "all", devices},
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
               {"ACCEL_MEMORY", "0%", memory},
               {"ACCEL_MEMORY", "101%", memory},
               {"ACCEL_MEMORY", "-1G", memory},
               {"ACCEL_MEMORY", "1X", memory},
               {"ACCEL_MEMORY", "nan", memory},
               {"ACCEL_MEMORY", "0x10", memory},
               {"ACCEL_MEMORY", "1GB", memory},
               {"ACCEL_MEMORY", " 1G", memory},
               {"ACCEL_MEMORY", "99999999T", memory}};
    char expected[500], text[500];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct accel_settings s = read_with(bad[i].name, bad[i].value);
        assert_true(same_settings(&s, &standard));
        print(expected, sizeof expected,
              "accel: %s=%s is not understood; allowed: %s; the default is used\n", bad[i].name,
              bad[i].value, bad[i].allowed);
        assert_string_equal(complaints(), expected);
        /* The same in a file, whose name and line are said. Blanks around a value mean nothing there. */
        print(text, sizeof text, "# here:\n%s = \"%s\"\n", bad[i].name, bad[i].value);
        s = read_file(text);
        assert_true(same_settings(&s, &standard));
        print(expected, sizeof expected,
              "accel: %s:2: %s=%s is not understood; allowed: %s; the default is used\n", systems,
              bad[i].name, bad[i].value, bad[i].allowed);
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
    static const char *const names[] = {"ACCEL_LOG_FILE", "ACCEL_GPU",      "ACCEL_MODEL",
                                        "ACCEL_CUDA_DIR", "ACCEL_ORIGINAL", "ACCEL_ESTIMATE"};
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
}

/* ---- Config files ---- */

static void precedence(void **state)
{
    (void)state;
    write_file(systems, "ACCEL_POLICY=gpu\nACCEL_MEMORY=1G\nACCEL_LOG=json\nACCEL_SUMMARY=1\n"
                        "ACCEL_GPU=a\nACCEL_CPU=a\nACCEL_LEARN=1\n");
    write_file(users_own,
               "ACCEL_MEMORY=2G\nACCEL_LOG=2\nACCEL_CUDA_DIR=/b\nACCEL_GPU=b\nACCEL_CPU=b\n");
    write_file(named, "ACCEL_LOG=1\nACCEL_ORIGINAL=c\nACCEL_CUDA_DIR=/c\nACCEL_CPU=\n");
    setenv("ACCEL_CONFIG", named, 1);
    setenv("ACCEL_CUDA_DIR", "/d", 1);
    setenv("ACCEL_SUMMARY", "", 1);
    struct accel_settings s = read_now();
    assert_int_equal(s.policy, ACCEL_POLICY_GPU);
    assert_int_equal(s.memory_bytes, (int64_t)2 << 30);
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    assert_string_equal(s.cuda_dir, "/d");
    assert_string_equal(s.original, "c");
    assert_true(s.learn);
    assert_string_equal(s.gpu_routines.text, "b");
    /* An empty value is the default, and hides those below. */
    assert_false(s.summary);
    assert_null(s.cpu_routines.text);
    assert_string_equal(complaints(), "");

    /* So does one that cannot be read; what is hidden is not looked at. */
    write_file(systems, "ACCEL_LOG=wrong\n");
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    assert_string_equal(complaints(), "");
    setenv("ACCEL_LOG", "wrong", 1);
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    assert_int_equal(lines_of(complaints()), 1);

    /* The user's own folder. */
    char path[PATH_MAX];
    clear(NULL);
    write_file(users_own, "ACCEL_LOG=1\n");
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    print(path, sizeof path, "%s/.config", folder);
    setenv("XDG_CONFIG_HOME", path, 1);
    setenv("HOME", "/nowhere", 1);
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    setenv("HOME", folder, 1);
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    setenv("XDG_CONFIG_HOME", ".", 1); /* relative: as if not set */
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    unsetenv("HOME");
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    sources.system_file = NULL;
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    assert_string_equal(complaints(), "");
}

static void forms(void **state)
{
    (void)state;
    struct accel_settings s = read_file("\n  # ACCEL_LOG=2\n\t\n#\n ACCEL_LOG\t=  1 \t\r\n"
                                        "ACCEL_LOG_FILE = \"/tmp/a # b \"\r\n"
                                        "ACCEL_CUDA_DIR=/a \"b\" = #c\n"
                                        "ACCEL_GPU=\"\"\nACCEL_CPU=\nACCEL_SUMMARY=1");
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    assert_string_equal(s.log_file, "/tmp/a # b ");
    assert_string_equal(s.cuda_dir, "/a \"b\" = #c");
    assert_null(s.gpu_routines.text);
    assert_null(s.cpu_routines.text);
    assert_true(s.summary);
    assert_string_equal(complaints(), "");
    /* The last of several lines counts. */
    assert_int_equal(read_file("ACCEL_LOG=1\nACCEL_LOG=wrong\nACCEL_LOG=2\n").log, ACCEL_LOG_MOVES);
    assert_string_equal(complaints(), "");
    read_file("");
    assert_string_equal(complaints(), "");
}

static void bad_lines(void **state)
{
    static const char *const bad[] = {"ACCEL_LOG 1",
                                      "=1",
                                      "ACCEL LOG=1",
                                      "export ACCEL_LOG=1",
                                      "ACCEL_LOG",
                                      "ACCEL_LOG=\"1",
                                      "ACCEL_LOG=\"",
                                      "[accel]",
                                      "ACCEL_LOG=\"1\" # log",
                                      "ACCEL_LOG=\"a\"b\"",
                                      "=",
                                      "\xef\xbb\xbf"
                                      "ACCEL_LOG=1"};
    static const char *const unknown[] = {
        "ACCEL_LOGG", "accel_log", "PATH", "ACCEL_CONFIG", "LOG", "ACCEL_ESTIMATE", "ACCEL_TRACE"};
    char text[500], expected[1000];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        print(text, sizeof text, "ACCEL_SUMMARY=1\n\n %s \r\nACCEL_POLICY=gpu\n", bad[i]);
        struct accel_settings s = read_file(text);
        assert_true(s.summary);
        assert_int_equal(s.policy, ACCEL_POLICY_GPU);
        assert_int_equal(s.log, ACCEL_LOG_OFF);
        print(expected, sizeof expected,
              "accel: %s:3: %s is not understood; allowed: NAME=value; the line is ignored\n",
              systems, bad[i]);
        assert_string_equal(complaints(), expected);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        print(text, sizeof text, "ACCEL_SUMMARY=1\n%s=1\nACCEL_POLICY=gpu\n", unknown[i]);
        struct accel_settings s = read_file(text);
        assert_true(s.summary);
        assert_int_equal(s.policy, ACCEL_POLICY_GPU);
        print(expected, sizeof expected,
              "accel: %s:2: %s is no setting; allowed: ACCEL,ACCEL_LOG,ACCEL_LOG_FILE,"
              "ACCEL_SUMMARY,ACCEL_POLICY,ACCEL_GPU,ACCEL_CPU,ACCEL_REQUIRE,ACCEL_START,"
              "ACCEL_LEARN,ACCEL_DEVICES,ACCEL_MEMORY,ACCEL_MODEL,ACCEL_EXCLUDE,ACCEL_CUDA_DIR,"
              "ACCEL_ORIGINAL; the line is ignored\n",
              systems, unknown[i]);
        assert_string_equal(complaints(), expected);
        /* In the environment it may be anybody's. */
        read_with(unknown[i], "");
        assert_string_equal(complaints(), "");
    }
    /* Many. */
    text[0] = 0;
    for (int i = 0; i < 20; i++)
        strcat(text, "wrong\n");
    strcat(text, "ACCEL_LOG=1\n");
    assert_int_equal(read_file(text).log, ACCEL_LOG_DECISIONS);
    assert_int_equal(lines_of(complaints()), 17);
    read_now();
    assert_non_null(strstr(complaints(),
                           ":16: wrong is not understood; allowed: NAME=value; the line "
                           "is ignored\naccel: and so on: 4 more of the settings are "
                           "not understood\n"));
}

/* What is said of a file that ACCEL_CONFIG names. */
static const char *said_of(const char *path)
{
    setenv("ACCEL_CONFIG", path, 1);
    setenv("ACCEL_LOG", "1", 1);
    write_file(systems, "ACCEL_SUMMARY=1\n");
    struct accel_settings s = read_now();
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS); /* all else is used */
    assert_true(s.summary);
    return complaints();
}

static void bad_files(void **state)
{
    char expected[2 * PATH_MAX];
    static char large[65538];
    (void)state;
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s cannot be opened (No such file or directory); it is ignored\n",
          named);
    assert_string_equal(said_of(named), expected);
    assert_string_equal(
        said_of("/dev/null/x"),
        "accel: ACCEL_CONFIG=/dev/null/x cannot be opened (Not a directory); it is ignored\n");
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is not a regular file; it is ignored\n", folder);
    assert_string_equal(said_of(folder), expected);
    mkfifo(named, 0600);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is not a regular file; it is ignored\n", named);
    assert_string_equal(said_of(named), expected);
    unlink(named);
    assert_string_equal(said_of("/proc/self/mem"),
                        "accel: ACCEL_CONFIG=/proc/self/mem cannot be read "
                        "(Input/output error); it is ignored\n");
    write_bytes(named, "ACCEL_POLICY=gpu\n\0\n", 19);
    print(expected, sizeof expected, "accel: ACCEL_CONFIG=%s has a NUL byte in it; it is ignored\n",
          named);
    assert_string_equal(said_of(named), expected);
    assert_int_equal(read_now().policy, ACCEL_POLICY_AUTO);
    memset(large, '#', sizeof large);
    write_bytes(named, large, 65537);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is larger than 64 KiB; it is ignored\n", named);
    assert_string_equal(said_of(named), expected);
    memcpy(large + 65519, "\nACCEL_POLICY=gpu", 17);
    write_bytes(named, large, 65536);
    assert_string_equal(said_of(named), "");
    assert_int_equal(read_now().policy, ACCEL_POLICY_GPU);

    /* Those that nobody has named are silent where they are not there, and only there. */
    clear(NULL);
    mkdir(systems, 0700);
    mkdir(users_own, 0700);
    print(expected, sizeof expected,
          "accel: %s is not a regular file; it is ignored\n"
          "accel: %s is not a regular file; it is ignored\n",
          users_own, systems);
    read_now();
    assert_string_equal(complaints(), expected);
    rmdir(systems);
    rmdir(users_own);
    setenv("HOME", "/dev/null", 1);
    sources.system_file = "/dev/null/x";
    read_now();
    assert_string_equal(complaints(), "");
    /* One file under two names is read once. */
    clear(NULL);
    write_file(systems, "wrong\n");
    setenv("ACCEL_CONFIG", systems, 1);
    read_now();
    assert_int_equal(lines_of(complaints()), 1);
}

/* Whatever a damaged file has in it: every line of complaint is one, and no value is out of its set. */
static void check_damaged(const char *text, size_t size)
{
    write_bytes(systems, text, size);
    struct accel_settings s = read_now();
    assert_true(s.log <= ACCEL_LOG_JSON && s.policy <= ACCEL_POLICY_CPU);
    assert_true(s.devices.count >= 0 && s.devices.count <= ACCEL_DEVICES_MAX);
    assert_true(s.devices.kind <= ACCEL_DEVICES_LIST && s.start <= ACCEL_START_WAIT);
    assert_true(s.memory_share > 0 && s.memory_share <= 1 && s.memory_bytes >= 0);
    settings_check_routines(&s, accel_routines, accel_routine_count);
    const char *said = complaints();
    assert_true(lines_of(said) <= 17);
    for (const char *line = said; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(strncmp(line, "accel: ", 7), 0);
}

static void damaged_files(void **state)
{
    static const char text[] =
        "# accel.conf\nACCEL = 1\r\nACCEL_LOG=json\nACCEL_LOG_FILE=\"log.%p\"\n"
        "ACCEL_SUMMARY=1\nACCEL_POLICY=cpu\nACCEL_GPU=\"dgemm, lapack:[cz]*\"\n"
        "ACCEL_CPU=blas2:*\nACCEL_REQUIRE=gpu\nACCEL_START=wait\nACCEL_LEARN=1\n"
        "ACCEL_DEVICES=0,2,17\nACCEL_MEMORY=12.5G\nACCEL_MODEL=/tmp/model\n"
        "ACCEL_EXCLUDE=default,foo*\nACCEL_ORIGINAL=a:b\n";
    static char large[65536];
    char damaged[sizeof text];
    size_t size = sizeof text - 1;
    (void)state;
    struct accel_settings s = read_file(text);
    assert_string_equal(complaints(), "");
    assert_int_equal(s.devices.number[2], 17);
    for (size_t i = 0; i < size; i++) {
        check_damaged(text, i);
        memcpy(damaged, text, i);
        memcpy(damaged + i, text + i + 1, size - i - 1);
        check_damaged(damaged, size - 1);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(damaged, text, size);
            damaged[i] = (char)(damaged[i] ^ 1 << bit);
            check_damaged(damaged, size);
        }
    }
    uint32_t random = 1;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof large; i++) {
            random = random * 1664525 + 1013904223;
            large[i] =
                round % 2 ? (char)((random >> 24) % 255 + 1) : "=\"\n# ACEL_"[random >> 24 & 7];
        }
        check_damaged(large, sizeof large);
    }
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = "\nA="[i % 3];
    check_damaged(large, sizeof large);
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
    print(
        expected, sizeof expected,
        "accel: ACCEL_GPU=dgem: no routine has that name\n"
        "accel: %s:2: ACCEL_CPU=blas1:*: no such group; there are blas, blas2, blas3 and lapack\n",
        systems);
    assert_string_equal(complaints(), expected);
    assert_string_equal(s.gpu_routines.text, "dgem,sgem");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear),
        cmocka_unit_test_setup(empty_values, clear),
        cmocka_unit_test_setup(choices, clear),
        cmocka_unit_test_setup(paths, clear),
        cmocka_unit_test_setup(memory, clear),
        cmocka_unit_test_setup(devices, clear),
        cmocka_unit_test_setup(bad_values, clear),
        cmocka_unit_test_setup(what_does_not_fit, clear),
        cmocka_unit_test_setup(nothing_is_read_when_off, clear),
        cmocka_unit_test_setup(secure, clear),
        cmocka_unit_test_setup(excluded_programs, clear),
        cmocka_unit_test_setup(real_sources, clear),
        cmocka_unit_test_setup(precedence, clear),
        cmocka_unit_test_setup(forms, clear),
        cmocka_unit_test_setup(bad_lines, clear),
        cmocka_unit_test_setup(bad_files, clear),
        cmocka_unit_test_setup(damaged_files, clear),
        cmocka_unit_test_setup_teardown(routines, clear, clear),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
