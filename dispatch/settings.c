#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complaints.h"
#include "config.h"
#include "base/spelling.h"
#include "base/text.h"

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

/* ---- How values are read ---- */

enum outcome { UNDERSTOOD, NOT_UNDERSTOOD, NO_ROOM };

struct reading {
    struct accel_settings *settings;
    const char *program;
    bool excluded;
    const char *config;          /* ACCEL_CONFIG; NULL: none */
    struct complaint_place from; /* the value that is being read */
};

enum scope { ANYWHERE, ENVIRONMENT, INTERNAL }; /* the last two: in the environment alone */

/* A setting's name, and how its value is read. */
struct setting {
    const char *name;
    const char *
        allowed; /* for complaints; of choices: the words, separated by commas, other words for one by bars */
    enum outcome (*read)(struct reading *reading, const struct setting *setting, const char *value);
    size_t field; /* of struct accel_settings */
    enum scope scope;
    bool promise; /* a program must not go on if the value cannot be read */
};

/* Other words for the same. */
#define NO  "0|off|no|false"
#define YES "1|on|yes|true"

static void *field_of(struct reading *reading, const struct setting *setting)
{
    return (char *)reading->settings + setting->field;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether the first n characters are the same, in upper or lower case. */
static bool begins_with(const char *value, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(value[i]) != lower(word[i]))
            return false;
    return true;
}

/* The value's place among the words, or -1. */
static int choice(const char *words, const char *value)
{
    size_t length = strlen(value);
    for (int place = 0;;) {
        size_t n = strcspn(words, ",|");
        if (n == length && begins_with(value, words, n))
            return place;
        if (!words[n])
            return -1;
        place += words[n] == ',';
        words += n + 1;
    }
}

/* As text for complaints: of each choice the first word. */
static const char *first_words(const char *words, char *shown, size_t size)
{
    struct accel_text text;
    text_start(&text, shown, size - 1);
    for (bool other = false; *words; words++) {
        other = *words == '|' || (other && *words != ',');
        if (!other)
            text_char(&text, *words);
    }
    shown[text.length] = 0;
    return shown;
}

/* " cannot be opened (No such file or directory)" */
static const char *fault_text(const char *fault, int error, char *to, size_t size)
{
    struct accel_text text;
    text_start(&text, to, size - 1);
    text_char(&text, ' ');
    text_string(&text, fault);
    if (error) {
        const char *description = strerrordesc_np(error);
        text_string(&text, " (");
        text_string(&text, description ? description : "unknown error");
        text_char(&text, ')');
    }
    to[text.length] = 0;
    return to;
}

/* Remembers that what a setting names cannot be used. */
static void miss(const struct reading *reading, const struct setting *setting, const char *path,
                 int error)
{
    char problem[100];
    complaints_add(
        &(struct complaint){reading->from, setting->name, path,
                            fault_text("cannot be opened", error, problem, sizeof problem), "",
                            "; it is ignored", false});
}

static enum outcome read_switch(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    int place = choice(setting->allowed, value);
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
    int place = choice(setting->allowed, value);
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
    int place = choice(setting->allowed, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->policy = policies[place];
    return UNDERSTOOD;
}

static enum outcome read_start(struct reading *reading, const struct setting *setting,
                               const char *value)
{
    static const enum accel_start starts[] = {ACCEL_START_BACKGROUND, ACCEL_START_WAIT,
                                              ACCEL_START_PROGRAM};
    int place = choice(setting->allowed, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->start = starts[place];
    reading->settings->start_given = true;
    return UNDERSTOOD;
}

static enum outcome read_require(struct reading *reading, const struct setting *setting,
                                 const char *value)
{
    int place = choice(setting->allowed, value);
    reading->settings->require_gpu = place == 0;
    return place < 0 ? NOT_UNDERSTOOD : UNDERSTOOD;
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

/* A folder that is not there is missed at once: nothing else tells that it was meant. */
static enum outcome read_folder(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    struct stat st;
    enum outcome outcome = read_path(reading, setting, value);
    if (stat(value, &st) != 0)
        miss(reading, setting, value, errno);
    else if (!S_ISDIR(st.st_mode))
        miss(reading, setting, value, ENOTDIR);
    return outcome;
}

/* Paths separated by colons. A name without a slash is the dynamic linker's to find, when it is needed. */
static enum outcome read_originals(struct reading *reading, const struct setting *setting,
                                   const char *value)
{
    char path[PATH_MAX];
    for (const char *at = value; *at;) {
        size_t length = strcspn(at, ":");
        if (length < sizeof path && memchr(at, '/', length)) {
            memcpy(path, at, length);
            path[length] = 0;
            if (access(path, R_OK) != 0)
                miss(reading, setting, path, errno);
        }
        at += length + (at[length] == ':');
    }
    return read_string(reading, setting, value);
}

/* It is read at once. */
static enum outcome read_config(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    (void)setting;
    reading->config = value;
    return UNDERSTOOD;
}

static enum outcome read_model(struct reading *reading, const struct setting *setting,
                               const char *value)
{
    enum outcome outcome = read_path(reading, setting, value);
    reading->settings->model_given = outcome == UNDERSTOOD;
    return outcome;
}

/* What a unit's letter stands for, with or without "B" or "iB": K, M, G, T are powers of 1024. 0: it is none. */
static double unit_of(const char *unit)
{
    static const char letters[] = "kmgt";
    const char *letter = *unit ? strchr(letters, lower(*unit)) : NULL;
    double factor = 1;
    if (letter && choice("|b|ib", unit + 1) < 0)
        return 0;
    for (const char *l = letters; letter && l <= letter; l++)
        factor *= 1024;
    return letter ? factor : !*unit;
}

/* "80%", or a size. A small number of bytes is meant as something else. */
static enum outcome read_memory(struct reading *reading, const struct setting *setting,
                                const char *value)
{
    struct accel_settings *settings = reading->settings;
    char *end;
    (void)setting;
    double number = strtod(value, &end);
    /* strtod knows more than we mean: signs, spaces, hexadecimal, inf, nan. */
    if (end == value || strspn(value, "0123456789.") != (size_t)(end - value))
        return NOT_UNDERSTOOD;
    end += strspn(end, " ");
    if (strcmp(end, "%") == 0 && number > 0 && number <= 100) {
        settings->memory_share = number / 100;
        return UNDERSTOOD;
    }
    number *= unit_of(end);
    if (!(number >= (*end ? 1024 : 1 << 20) && number < 9e18))
        return NOT_UNDERSTOOD;
    settings->memory_bytes = (int64_t)number;
    return UNDERSTOOD;
}

static enum outcome read_devices(struct reading *reading, const struct setting *setting,
                                 const char *value)
{
    struct accel_devices devices = {.kind = ACCEL_DEVICES_LIST};
    bool seen[ACCEL_DEVICES_MAX] = {false};
    (void)setting;
    int word = choice("auto,none", value);
    if (word >= 0) {
        reading->settings->devices =
            (struct accel_devices){.kind = word == 0 ? ACCEL_DEVICES_AUTO : ACCEL_DEVICES_NONE};
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
    int word = choice(NO ",all", value);
    uint64_t every = word == 1;
    (void)setting;
    if (begins_with(value, sample, sizeof sample - 1)) {
        for (value += sizeof sample - 1; *value >= '0' && *value <= '9' && every < 1000000000;
             value++)
            every = every * 10 + (uint64_t)(*value - '0');
        if (*value || every == 0)
            return NOT_UNDERSTOOD;
    } else if (word < 0) {
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
    int place = choice(setting->allowed, value);
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
    {"ACCEL", NO "," YES, read_switch, FIELD(on), ANYWHERE, false},
    {"ACCEL_LOG", NO "," YES ",2,json", read_log, 0, ANYWHERE, false},
    {"ACCEL_LOG_FILE", "a path", read_path_pattern, FIELD(log_file), ANYWHERE, false},
    {"ACCEL_SUMMARY", NO "," YES, read_switch, FIELD(summary), ANYWHERE, false},
    {"ACCEL_POLICY", "auto,gpu,cpu", read_policy, 0, ANYWHERE, false},
    {"ACCEL_GPU", "names of routines", read_routines, FIELD(gpu_routines), ANYWHERE, false},
    {"ACCEL_CPU", "names of routines", read_routines, FIELD(cpu_routines), ANYWHERE, false},
    {"ACCEL_REQUIRE", "gpu,off|0|no|false", read_require, 0, ANYWHERE, true},
    {"ACCEL_START", "background,wait,program", read_start, 0, ANYWHERE, false},
    {"ACCEL_LEARN", NO "," YES, read_switch, FIELD(learn), ANYWHERE, false},
    {"ACCEL_DEVICES", "auto, none, or numbers of devices such as 0,2, each once", read_devices, 0,
     ANYWHERE, false},
    {"ACCEL_MEMORY", "a share such as 80%, or a size such as 500M or 12G", read_memory, 0, ANYWHERE,
     false},
    {"ACCEL_VERIFY", "off, all, or sample:N with N from 1 to 9999999999", read_verify, 0, ANYWHERE,
     true},
    {"ACCEL_VERIFY_ACTION", "warn,cpu,abort", read_verify_action, 0, ANYWHERE, true},
    {"ACCEL_MODEL", "a path", read_model, FIELD(model), ANYWHERE, false},
    {"ACCEL_EXCLUDE", "names of programs", read_exclude, 0, ANYWHERE, false},
    {"ACCEL_CONFIG", "a path", read_config, 0, ENVIRONMENT, false},
    {"ACCEL_CUDA_DIR", "a folder", read_folder, FIELD(cuda_dir), ANYWHERE, false},
    {"ACCEL_ORIGINAL", "paths separated by colons", read_originals, FIELD(original), ANYWHERE,
     false},
    {"ACCEL_ESTIMATE", "the name of a GPU", read_string, FIELD(estimate), INTERNAL, false},
    {"ACCEL_ESTIMATE_DIR", "a folder", read_path, FIELD(estimate_dir), INTERNAL, false},
    {"ACCEL_CALLED", "a path", read_path, FIELD(called), INTERNAL, false},
};
#define SETTINGS ((int)(sizeof table / sizeof *table))

/* Which settings have been found, and where. */
static bool found[SETTINGS];
static struct complaint_place places[SETTINGS];

static int setting_named(const char *name)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

/* The setting that a wrong name is most like. */
static const char *nearest_name(const char *name)
{
    const char *nearest = NULL;
    int least = INT_MAX;
    for (int i = 0; i < SETTINGS; i++) {
        int distance = spelling_distance(name, table[i].name);
        if (table[i].scope == INTERNAL || distance >= least)
            continue;
        least = distance;
        nearest = table[i].name;
    }
    return nearest;
}

static void complain_of_name(struct complaint_place place, const char *name, const char *outcome)
{
    complaints_add(&(struct complaint){place, name, NULL,
                                       " is no setting of this version; the nearest is ",
                                       nearest_name(name), outcome, false});
}

/* Takes a value from the highest place that has one. An empty one is the default. */
static void take(struct reading *reading, int i, const char *value, struct complaint_place place)
{
    const struct setting *setting = &table[i];
    const char *problem = " is not understood; allowed: ";
    char words[100];
    if (found[i])
        return;
    found[i] = true;
    places[i] = reading->from = place;
    enum outcome outcome = *value ? setting->read(reading, setting, value) : UNDERSTOOD;
    if (outcome == UNDERSTOOD)
        return;
    if (outcome == NO_ROOM)
        problem = " is too long: there is room for 16 KiB in all settings";
    reading->settings->broken_promise |= setting->promise;
    complaints_add(&(struct complaint){
        place, setting->name, value, problem,
        outcome == NO_ROOM ? "" : first_words(setting->allowed, words, sizeof words),
        setting->promise ? "; the program ends at its first call of BLAS" : "; the default is used",
        setting->promise});
}

/* ---- The environment ---- */

static void read_environment(struct reading *reading)
{
    static const char prefix[] = "ACCEL_";
    const struct complaint_place here = {NULL, 0};
    char name[100];
    for (int i = 0; i < SETTINGS; i++) {
        const char *value = getenv(table[i].name);
        if (value)
            take(reading, i, value, here);
    }
    for (char **variable = environ; variable && *variable; variable++) {
        size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, prefix, sizeof prefix - 1) != 0)
            continue;
        if (length >= sizeof name) /* of which no setting's name has as much */
            length = sizeof name - 1;
        memcpy(name, *variable, length);
        name[length] = 0;
        if (setting_named(name) < 0)
            complain_of_name(here, name, "; it is ignored");
    }
}

/* ---- Config files ---- */

enum expected { NAMED_BY_USER, USERS_OWN, SYSTEMS };

/* A file that is not there is missed only where the user has named it. The folder of another user may be
 * closed: HOME stays what it was in programs that change the user. */
static bool may_lack(enum expected expected, int error)
{
    return expected != NAMED_BY_USER &&
           (error == ENOENT || error == ENOTDIR || (error == EACCES && expected == USERS_OWN));
}

/* Whether a setting that promises something may still come from a config file: none that goes before has named it. */
static bool may_promise(int i)
{
    return table[i].promise && !found[i];
}

/* A promise that a file without effect may hold: the first that it names, or, of one that could not be read, the first there is. NULL for
 * none. */
static const char *promise_lost(void)
{
    struct config_line line;
    for (int i = 0; !config_is_known() && i < SETTINGS; i++)
        if (may_promise(i))
            return table[i].name;
    while (config_next(&line)) {
        int i = line.name && *line.value ? setting_named(line.name) : -1;
        if (i >= 0 && may_promise(i))
            return table[i].name;
    }
    return NULL;
}

/* A file has no effect. Where the user has named it, a promise of his may be lost with it, and the program must not go on. No other file
 * ends a program: who may write a system's or another user's file shall not be able to end what other users run. */
static void refuse_file(struct reading *reading, const char *path, enum expected expected,
                        const char *fault, int error)
{
    char problem[200];
    const bool is_named = expected == NAMED_BY_USER;
    const char *promise = is_named ? promise_lost() : NULL;
    const char *may = !promise ? "" : config_is_known() ? ", and names " : ", and may hold ";
    fault_text(fault, error, problem, sizeof problem - 50);
    strcat(strcat(problem, may), promise ? promise : "");
    reading->settings->broken_promise |= promise != NULL;
    complaints_add(&(struct complaint){{is_named ? NULL : path, 0},
                                       is_named ? "ACCEL_CONFIG" : NULL,
                                       is_named ? path : NULL,
                                       problem,
                                       "",
                                       promise ? "; the program ends at its first call of BLAS"
                                               : "; it is ignored",
                                       promise != NULL});
}

static void read_file(struct reading *reading, const char *path, enum expected expected)
{
    const char *values[SETTINGS] = {NULL};
    int numbers[SETTINGS], error;
    struct config_line line;
    struct complaint_place place = {path, 0};
    const char *fault = config_load(path, &error);
    if (fault) {
        if (!may_lack(expected, error))
            refuse_file(reading, path, expected, fault, error);
        return;
    }
    place.file = keep(path);
    if (!place.file)
        place.file = "a config file";
    while (config_next(&line)) {
        place.line = line.number;
        int i = line.name ? setting_named(line.name) : -1;
        if (!line.name) {
            complaints_add(&(struct complaint){place, NULL, line.value,
                                               " is not understood; allowed: ", "NAME=value",
                                               "; the line is ignored", false});
        } else if (i >= 0 && table[i].scope == ENVIRONMENT) {
            complaints_add(&(struct complaint){place, line.name, NULL,
                                               " counts in the environment alone", "",
                                               "; the line is ignored", false});
        } else if (i < 0 || table[i].scope == INTERNAL) {
            complain_of_name(place, line.name, "; the line is ignored");
        } else {
            values[i] = line.value;
            numbers[i] = line.number;
        }
    }
    for (int i = 0; i < SETTINGS; i++)
        if (values[i])
            take(reading, i, values[i], (struct complaint_place){place.file, numbers[i]});
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
    const char *named = reading->config ? reading->config : "";
    bool has_own =
        user_path("XDG_CONFIG_HOME", ".config", "accel/accel.conf", users_own, sizeof users_own);
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
    struct reading reading = {.settings = settings,
                              .program = sources->program,
                              .excluded =
                                  pattern_lists("default", excluded_programs, sources->program)};
    read_environment(&reading);
    read_files(&reading, sources->system_file);
    if (!settings->on || reading.excluded) {
        *settings = (struct accel_settings){.memory_share = 0.8, .original = settings->original};
        complaints_clear();
        return;
    }
    if (!settings->model && user_path("XDG_CACHE_HOME", ".cache", "accel/model", path, sizeof path))
        settings->model = keep(path);
}

void settings_read_from(struct accel_settings *settings, const struct settings_sources *sources)
{
    int saved = errno;
    arena_used = 0;
    complaints_clear();
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
        char item[300];
        const char *fault = pattern_fault(checked[i].pattern, routines, count, item, sizeof item);
        if (fault)
            complaints_add(&(struct complaint){places[setting_named(checked[i].name)],
                                               checked[i].name, item, ": ", fault, "", false});
    }
}

bool settings_wait_to_complain(void)
{
    return complaints_wait();
}

void settings_complain(void)
{
    complaints_say();
}
