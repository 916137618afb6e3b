#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config.h"
#include "say.h"
#include "text.h"

/* Copies of the strings: a program may overwrite its environment (setproctitle). */
static char arena[16384];
static size_t arena_used;

static const char *keep(const char *value)
{
    size_t size = strlen(value) + 1;
    if (size > sizeof arena - arena_used)
        return NULL;
    char *copy = arena + arena_used;
    memcpy(copy, value, size);
    arena_used += size;
    return copy;
}

/* ---- Complaints ---- */

#define COMPLAINTS_MAX 16
#define VALUE_SHOWN    300
#define PATH_SHOWN     400
static char complaints[COMPLAINTS_MAX][1000];
static int complaint_count; /* of all, also of those that are not kept */
static atomic_bool complained;

/* Where a value comes from. */
struct place {
    const char *file; /* NULL: the environment */
    int line;         /* 0: the whole file */
};

/* Without control characters: files may be damaged. */
static void put_shown(struct accel_text *text, const char *s, int limit)
{
    for (; *s && limit > 0; s++, limit--)
        text_char(text, (unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
    if (*s)
        text_string(text, "…");
}

/* "PLACE: NAME=VALUE" and the rest; NAME may be empty, VALUE may be NULL. */
static void complain(struct place place, const char *name, const char *value, const char *problem,
                     const char *detail, const char *outcome)
{
    struct accel_text text;
    if (complaint_count++ >= COMPLAINTS_MAX)
        return;
    char *line = complaints[complaint_count - 1];
    text_start(&text, line, sizeof complaints[0] - 1);
    if (place.file) {
        put_shown(&text, place.file, PATH_SHOWN);
        if (place.line) {
            text_char(&text, ':');
            text_integer(&text, place.line);
        }
        text_string(&text, *name || value ? ": " : "");
    }
    put_shown(&text, name, VALUE_SHOWN);
    if (value) {
        text_string(&text, *name ? "=" : "");
        put_shown(&text, value, VALUE_SHOWN);
    }
    text_string(&text, problem);
    text_string(&text, detail);
    text_string(&text, outcome);
    line[text.length] = 0;
}

void settings_complain(void)
{
    if (complaint_count == 0 || atomic_exchange(&complained, true))
        return;
    for (int i = 0; i < complaint_count && i < COMPLAINTS_MAX; i++)
        accel_say("%s", complaints[i]);
    if (complaint_count > COMPLAINTS_MAX)
        accel_say("and so on: %d more of the settings are not understood",
                  complaint_count - COMPLAINTS_MAX);
}

/* ---- How values are read ---- */

enum outcome { UNDERSTOOD, NOT_UNDERSTOOD, NO_ROOM };

struct reading {
    struct accel_settings *settings;
    const char *program;
    bool excluded;
};

/* A setting's name, and how its value is read. */
struct setting {
    const char *name;
    const char *allowed; /* for complaints; of choices: the words, separated by commas */
    enum outcome (*read)(struct reading *reading, const struct setting *setting, const char *value);
    size_t field;  /* of struct accel_settings */
    bool internal; /* in the environment alone */
};

static void *field_of(struct reading *reading, const struct setting *setting)
{
    return (char *)reading->settings + setting->field;
}

/* The value's place among the words, or -1. */
static int choice(const struct setting *setting, const char *value)
{
    size_t length = strlen(value);
    int place = 0;
    for (const char *word = setting->allowed;; place++) {
        size_t n = strcspn(word, ",");
        if (n == length && strncmp(word, value, n) == 0)
            return place;
        if (!word[n])
            return -1;
        word += n + 1;
    }
}

static enum outcome read_switch(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    int place = choice(setting, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    *(bool *)field_of(reading, setting) = place == 1;
    return UNDERSTOOD;
}

static enum outcome read_log(struct reading *reading, const struct setting *setting,
                             const char *value)
{
    static const enum accel_log_level levels[] = {ACCEL_LOG_OFF, ACCEL_LOG_DECISIONS,
                                                  ACCEL_LOG_MOVES, ACCEL_LOG_JSON};
    int place = choice(setting, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->log = levels[place];
    return UNDERSTOOD;
}

static enum outcome read_policy(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    static const enum accel_policy policies[] = {ACCEL_POLICY_AUTO, ACCEL_POLICY_GPU,
                                                 ACCEL_POLICY_CPU};
    int place = choice(setting, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->policy = policies[place];
    return UNDERSTOOD;
}

static enum outcome read_start(struct reading *reading, const struct setting *setting,
                               const char *value)
{
    int place = choice(setting, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->start = place == 0 ? ACCEL_START_BACKGROUND : ACCEL_START_WAIT;
    reading->settings->start_given = true;
    return UNDERSTOOD;
}

static enum outcome read_require(struct reading *reading, const struct setting *setting,
                                 const char *value)
{
    reading->settings->require_gpu = choice(setting, value) == 0;
    return reading->settings->require_gpu ? UNDERSTOOD : NOT_UNDERSTOOD;
}

static enum outcome read_string(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    const char *copy = keep(value);
    if (!copy)
        return NO_ROOM;
    *(const char **)field_of(reading, setting) = copy;
    return UNDERSTOOD;
}

static enum outcome read_routines(struct reading *reading, const struct setting *setting,
                                  const char *value)
{
    const char *copy = keep(value);
    if (!copy)
        return NO_ROOM;
    ((struct accel_pattern *)field_of(reading, setting))->text = copy;
    return UNDERSTOOD;
}

/* A path that stays the same when the program changes its folder. Of a pattern, a percent sign in the folder's own
 * name is doubled. NULL: no room. */
static const char *from_here(const char *path, bool pattern)
{
    char here[PATH_MAX], full[2 * PATH_MAX];
    size_t n = 0;
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return keep(path);
    for (const char *c = here; *c; c++) {
        full[n++] = *c;
        if (pattern && *c == '%')
            full[n++] = '%';
    }
    full[n++] = '/';
    if (n + strlen(path) >= sizeof full)
        return keep(path);
    strcpy(full + n, path);
    return keep(full);
}

static enum outcome read_path_as(struct reading *reading, const struct setting *setting,
                                 const char *value, bool pattern)
{
    const char *path = from_here(value, pattern);
    if (!path)
        return NO_ROOM;
    *(const char **)field_of(reading, setting) = path;
    return UNDERSTOOD;
}

static enum outcome read_path(struct reading *reading, const struct setting *setting,
                              const char *value)
{
    return read_path_as(reading, setting, value, false);
}

static enum outcome read_path_pattern(struct reading *reading, const struct setting *setting,
                                      const char *value)
{
    return read_path_as(reading, setting, value, true);
}

static enum outcome read_model(struct reading *reading, const struct setting *setting,
                               const char *value)
{
    enum outcome outcome = read_path(reading, setting, value);
    reading->settings->model_given = outcome == UNDERSTOOD;
    return outcome;
}

/* "80%", or bytes with an optional K, M, G or T (powers of 1024). */
static enum outcome read_memory(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    static const char units[] = "KMGT";
    struct accel_settings *settings = reading->settings;
    char *end;
    (void)setting;
    double number = strtod(value, &end);
    /* strtod knows more than we mean: signs, spaces, hexadecimal, inf, nan. */
    bool plain = strspn(value, "0123456789.") == (size_t)(end - value) && end != value;
    if (plain && strcmp(end, "%") == 0 && number > 0 && number <= 100) {
        settings->memory_share = number / 100;
        return UNDERSTOOD;
    }
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit)
        for (const char *u = units; u <= unit; u++)
            number *= 1024;
    if (plain && number >= 1 && number < 9e18 && (!*end || (unit && !end[1]))) {
        settings->memory_bytes = (int64_t)number;
        return UNDERSTOOD;
    }
    return NOT_UNDERSTOOD;
}

static enum outcome read_devices(struct reading *reading, const struct setting *setting,
                                 const char *value)
{
    struct accel_devices devices = {.kind = ACCEL_DEVICES_LIST};
    bool seen[ACCEL_DEVICES_MAX] = {false};
    (void)setting;
    if (strcmp(value, "auto") == 0 || strcmp(value, "none") == 0) {
        reading->settings->devices =
            (struct accel_devices){.kind = *value == 'a' ? ACCEL_DEVICES_AUTO : ACCEL_DEVICES_NONE};
        return UNDERSTOOD;
    }
    for (;; value++) {
        int number = 0;
        value += strspn(value, " ");
        if (*value < '0' || *value > '9')
            return NOT_UNDERSTOOD;
        for (; *value >= '0' && *value <= '9'; value++)
            if ((number = number * 10 + (*value - '0')) >= ACCEL_DEVICES_MAX)
                return NOT_UNDERSTOOD;
        value += strspn(value, " ");
        if (seen[number] || (*value && *value != ','))
            return NOT_UNDERSTOOD;
        seen[number] = true;
        devices.number[devices.count++] = number;
        if (!*value)
            break;
    }
    reading->settings->devices = devices;
    return UNDERSTOOD;
}

/* "off", "all", "sample:N": each, or every N-th one. */
static enum outcome read_verify(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    static const char sample[] = "sample:";
    uint64_t every = strcmp(value, "all") == 0;
    (void)setting;
    if (strncmp(value, sample, sizeof sample - 1) == 0) {
        for (value += sizeof sample - 1; *value >= '0' && *value <= '9' && every < 1000000000;
             value++)
            every = every * 10 + (uint64_t)(*value - '0');
        if (*value || every == 0)
            return NOT_UNDERSTOOD;
    } else if (every == 0 && strcmp(value, "off") != 0) {
        return NOT_UNDERSTOOD;
    }
    reading->settings->verify_every = every;
    return UNDERSTOOD;
}

static enum outcome read_verify_action(struct reading *reading, const struct setting *setting,
                                       const char *value)
{
    static const enum accel_verify_action actions[] = {ACCEL_VERIFY_WARN, ACCEL_VERIFY_CPU,
                                                       ACCEL_VERIFY_ABORT};
    int place = choice(setting, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->verify_action = actions[place];
    return UNDERSTOOD;
}

/* Programs that compute nothing themselves, and start those that do. */
static const char excluded_programs[] =
    "sh,bash,rbash,dash,ash,zsh,zsh-*,ksh,ksh93,mksh,pdksh,yash,csh,tcsh,fish,busybox,"
    "login,su,sudo,doas,runuser,ssh,sshd,sshd-*,tmux,screen,script,"
    "env,nice,ionice,chrt,nohup,setsid,stdbuf,taskset,numactl,time,timeout,xargs,find,unshare,"
    "nsenter,chroot,"
    "make,gmake,ninja,git,docker,podman,apptainer,singularity,"
    "mpirun,mpirun.*,mpirun_rsh,mpispawn,mpiexec,mpiexec.*,orterun,orted,prun,prte,prted,prterun,"
    "hydra_pmi_proxy,hydra_bstrap_proxy,hydra_nameserver,"
    "srun,sbatch,salloc,slurmd,slurmstepd,aprun,palsd,jsrun,flux,flux-*";

static enum outcome read_exclude(struct reading *reading, const struct setting *setting,
                                 const char *value)
{
    (void)setting;
    reading->excluded = pattern_lists(value, excluded_programs, reading->program);
    return UNDERSTOOD;
}

/* ---- The settings there are ---- */

#define FIELD(name) offsetof(struct accel_settings, name)

static const struct setting table[] = {
    {"ACCEL", "0,1", read_switch, FIELD(on), false},
    {"ACCEL_LOG", "0,1,2,json", read_log, 0, false},
    {"ACCEL_LOG_FILE", "a path", read_path_pattern, FIELD(log_file), false},
    {"ACCEL_SUMMARY", "0,1", read_switch, FIELD(summary), false},
    {"ACCEL_POLICY", "auto,gpu,cpu", read_policy, 0, false},
    {"ACCEL_GPU", "names of routines", read_routines, FIELD(gpu_routines), false},
    {"ACCEL_CPU", "names of routines", read_routines, FIELD(cpu_routines), false},
    {"ACCEL_REQUIRE", "gpu", read_require, 0, false},
    {"ACCEL_START", "background,wait", read_start, 0, false},
    {"ACCEL_LEARN", "0,1", read_switch, FIELD(learn), false},
    {"ACCEL_DEVICES", "auto, none, or numbers of devices such as 0,2, each once", read_devices, 0,
     false},
    {"ACCEL_MEMORY", "a share such as 80%, or a size such as 500M or 12G", read_memory, 0, false},
    {"ACCEL_VERIFY", "off, all, or sample:N with N from 1 to 9999999999", read_verify, 0, false},
    {"ACCEL_VERIFY_ACTION", "warn,cpu,abort", read_verify_action, 0, false},
    {"ACCEL_MODEL", "a path", read_model, FIELD(model), false},
    {"ACCEL_EXCLUDE", "names of programs", read_exclude, 0, false},
    {"ACCEL_CUDA_DIR", "a folder", read_path, FIELD(cuda_dir), false},
    {"ACCEL_ORIGINAL", "paths separated by colons", read_string, FIELD(original), false},
    {"ACCEL_ESTIMATE", "the name of a GPU", read_string, FIELD(estimate), true},
    {"ACCEL_ESTIMATE_DIR", "a folder", read_path, FIELD(estimate_dir), true},
};
#define SETTINGS ((int)(sizeof table / sizeof *table))

/* Which settings have been found, and where. */
static bool found[SETTINGS];
static struct place places[SETTINGS];

static int setting_named(const char *name)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

/* Takes a value from the highest place that has one. An empty one is the default. */
static void take(struct reading *reading, int i, const char *value, struct place place)
{
    const struct setting *setting = &table[i];
    if (found[i])
        return;
    found[i] = true;
    places[i] = place;
    enum outcome outcome = *value ? setting->read(reading, setting, value) : UNDERSTOOD;
    if (outcome == NOT_UNDERSTOOD)
        complain(place, setting->name, value, " is not understood; allowed: ", setting->allowed,
                 "; the default is used");
    else if (outcome == NO_ROOM)
        complain(place, setting->name, value,
                 " is too long: there is room for 16 KiB in all settings", "",
                 "; the default is used");
}

/* ---- Config files ---- */

static const char *setting_names(void)
{
    static char names[512];
    struct accel_text text;
    text_start(&text, names, sizeof names - 1);
    for (int i = 0; i < SETTINGS; i++) {
        if (table[i].internal)
            continue;
        text_string(&text, text.length ? "," : "");
        text_string(&text, table[i].name);
    }
    names[text.length] = 0;
    return names;
}

enum expected { NAMED_BY_USER, USERS_OWN, SYSTEMS };

/* A file that is not there is missed only where the user has named it. The folder of another user may be
 * closed: HOME stays what it was in programs that change the user. */
static bool may_lack(enum expected expected, int error)
{
    return expected != NAMED_BY_USER &&
           (error == ENOENT || error == ENOTDIR || (error == EACCES && expected == USERS_OWN));
}

static void read_file(struct reading *reading, const char *path, enum expected expected)
{
    const char *values[SETTINGS] = {NULL};
    int numbers[SETTINGS], error;
    struct config_line line;
    struct place place = {path, 0};
    const char *fault = config_load(path, &error);
    if (fault) {
        char problem[100];
        struct accel_text text;
        if (may_lack(expected, error))
            return;
        text_start(&text, problem, sizeof problem - 1);
        text_char(&text, ' ');
        text_string(&text, fault);
        if (error) {
            const char *description = strerrordesc_np(error);
            text_string(&text, " (");
            text_string(&text, description ? description : "unknown error");
            text_char(&text, ')');
        }
        problem[text.length] = 0;
        if (expected == NAMED_BY_USER)
            complain((struct place){NULL, 0}, "ACCEL_CONFIG", path, problem, "", "; it is ignored");
        else
            complain(place, "", NULL, problem, "", "; it is ignored");
        return;
    }
    place.file = keep(path);
    if (!place.file)
        place.file = "a config file";
    while (config_next(&line)) {
        place.line = line.number;
        int i = line.name ? setting_named(line.name) : -1;
        if (!line.name) {
            complain(place, "", line.value, " is not understood; allowed: ", "NAME=value",
                     "; the line is ignored");
        } else if (i < 0 || table[i].internal) {
            complain(place, line.name, NULL, " is no setting; allowed: ", setting_names(),
                     "; the line is ignored");
        } else {
            values[i] = line.value;
            numbers[i] = line.number;
        }
    }
    for (int i = 0; i < SETTINGS; i++)
        if (values[i])
            take(reading, i, values[i], (struct place){place.file, numbers[i]});
}

/* A path within a folder that a variable names, or within `folder` of HOME. False: there is none. */
static bool user_path(const char *variable, const char *folder, const char *name, char *path,
                      size_t size)
{
    struct accel_text text;
    const char *base = getenv(variable);
    text_start(&text, path, size);
    if (base && base[0] == '/') {
        text_string(&text, base);
    } else {
        base = getenv("HOME");
        if (!base || base[0] != '/')
            return false;
        text_string(&text, base);
        text_char(&text, '/');
        text_string(&text, folder);
    }
    text_char(&text, '/');
    text_string(&text, name);
    if (text.length == size)
        return false;
    path[text.length] = 0;
    return true;
}

static void read_files(struct reading *reading, const char *system_file)
{
    char users_own[PATH_MAX];
    const char *named = getenv("ACCEL_CONFIG");
    bool has_own =
        user_path("XDG_CONFIG_HOME", ".config", "accel/accel.conf", users_own, sizeof users_own);
    if (!named)
        named = "";
    if (*named)
        read_file(reading, named, NAMED_BY_USER);
    if (has_own && strcmp(users_own, named) != 0)
        read_file(reading, users_own, USERS_OWN);
    if (system_file && strcmp(system_file, named) != 0)
        read_file(reading, system_file, SYSTEMS);
}

/* ---- All of it ---- */

static void read_all(struct accel_settings *settings, const struct settings_sources *sources)
{
    char path[PATH_MAX];
    struct reading reading = {settings, sources->program,
                              pattern_lists("default", excluded_programs, sources->program)};
    for (int i = 0; i < SETTINGS; i++) {
        const char *value = getenv(table[i].name);
        if (value)
            take(&reading, i, value, (struct place){NULL, 0});
    }
    read_files(&reading, sources->system_file);
    if (!settings->on || reading.excluded) {
        *settings = (struct accel_settings){.memory_share = 0.8, .original = settings->original};
        complaint_count = 0;
        return;
    }
    if (!settings->model && user_path("XDG_CACHE_HOME", ".cache", "accel/model", path, sizeof path))
        settings->model = keep(path);
}

void settings_read_from(struct accel_settings *settings, const struct settings_sources *sources)
{
    int saved = errno;
    arena_used = 0;
    complaint_count = 0;
    atomic_store(&complained, false);
    memset(found, 0, sizeof found);
    *settings = (struct accel_settings){.on = !sources->secure, .memory_share = 0.8};
    if (settings->on)
        read_all(settings, sources);
    errno = saved;
}

/* The name of the file that this process runs; empty where the system does not say. */
static const char *program_name(char *path, size_t size)
{
    static const char deleted[] = " (deleted)";
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name), suffix = sizeof deleted - 1;
    if (n > suffix && strcmp(name + n - suffix, deleted) == 0)
        name[n - suffix] = 0;
    return name;
}

void settings_read(struct accel_settings *settings)
{
    char path[PATH_MAX];
    int saved = errno;
    const struct settings_sources sources = {"/etc/accel.conf", program_name(path, sizeof path),
                                             getauxval(AT_SECURE) != 0};
    settings_read_from(settings, &sources);
    errno = saved;
}

void settings_check_routines(const struct accel_settings *settings,
                             const struct accel_routine *routines, uint32_t count)
{
    const struct {
        const char *name;
        const struct accel_pattern *pattern;
    } checked[] = {{"ACCEL_GPU", &settings->gpu_routines}, {"ACCEL_CPU", &settings->cpu_routines}};
    for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) {
        char item[VALUE_SHOWN];
        const char *fault = pattern_fault(checked[i].pattern, routines, count, item, sizeof item);
        if (fault)
            complain(places[setting_named(checked[i].name)], checked[i].name, item, ": ", fault,
                     "");
    }
}
