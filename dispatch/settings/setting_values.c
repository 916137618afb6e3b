#define _GNU_SOURCE
#include "setting.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/error_text.h"
#include "base/text/text.h"
#include "gpu/plan/precision.h"
#include "ops/op.h"

/* The copies of setting_keep(). */
static char arena[16384];
static size_t arena_used;

const char *setting_keep(const char *value)
{
    size_t size = strlen(value) + 1;
    if (size > sizeof arena - arena_used)
        return NULL;
    char *copy = arena + arena_used;
    memcpy(copy, value, size);
    arena_used += size;
    return copy;
}

void setting_forget(void)
{
    arena_used = 0;
}

static void *field_of(struct settings_reading *reading, const struct setting *setting)
{
    return (char *)reading->settings + setting->field;
}

/* Whether the first n characters are the same, in upper or lower case. */
static bool begins_with(const char *value, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_lower(value[i]) != text_lower(word[i]))
            return false;
    return true;
}

/* Returns the value's place among the words, or -1. */
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

const char *setting_words(const char *words, char *shown, size_t size)
{
    struct accel_text text;
    text_start(&text, shown, size);
    for (bool other = false; *words; words++) {
        other = *words == '|' || (other && *words != ',');
        if (!other)
            text_char(&text, *words);
    }
    text_end(&text);
    return shown;
}

const char *setting_fault(const char *fault, int error, char *to, size_t size)
{
    struct accel_text text;
    text_start(&text, to, size);
    text_char(&text, ' ');
    text_string(&text, fault);
    if (error) {
        text_string(&text, " (");
        text_string(&text, error_text(error));
        text_char(&text, ')');
    }
    text_end(&text);
    return to;
}

/* Remembers that the file or folder that a setting names cannot be used. */
static void miss(const struct settings_reading *reading, const struct setting *setting,
                 const char *path, int error)
{
    char problem[100];
    complaints_add(
        &(struct complaint){reading->from, setting->name, path,
                            setting_fault("cannot be opened", error, problem, sizeof problem), "",
                            "; it is ignored", false});
}

enum outcome setting_read_switch(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    int place = choice(setting->allowed, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    *(bool *)field_of(reading, setting) = place == 1;
    return UNDERSTOOD;
}

enum outcome setting_read_choice(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    int place = choice(setting->allowed, value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    *(unsigned *)field_of(reading, setting) = (unsigned)place;
    return UNDERSTOOD;
}

enum outcome setting_read_start(struct settings_reading *reading, const struct setting *setting,
                                const char *value)
{
    enum outcome outcome = setting_read_choice(reading, setting, value);
    reading->settings->start_given |= outcome == UNDERSTOOD;
    return outcome;
}

enum outcome setting_read_require(struct settings_reading *reading, const struct setting *setting,
                                  const char *value)
{
    int place = choice(setting->allowed, value);
    reading->settings->require_gpu = place == 0;
    return place < 0 ? NOT_UNDERSTOOD : UNDERSTOOD;
}

/* Sets the field to a copy of setting_keep(). */
static enum outcome keep_string(struct settings_reading *reading, const struct setting *setting,
                                const char *copy)
{
    if (copy)
        *(const char **)field_of(reading, setting) = copy;
    return copy ? UNDERSTOOD : NO_ROOM;
}

enum outcome setting_read_string(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    return keep_string(reading, setting, setting_keep(value));
}

/* Returns a copy of the path that is right also when the program changes its folder. In a pattern,
 * percent signs of the folder's own name are doubled. NULL: no room. */
static const char *from_here(const char *path, bool pattern)
{
    char here[PATH_MAX], full[2 * PATH_MAX];
    size_t n = 0;
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return setting_keep(path);
    for (const char *c = here; *c; c++) {
        full[n++] = *c;
        if (pattern && *c == '%')
            full[n++] = '%';
    }
    full[n++] = '/';
    if (n + strlen(path) >= sizeof full)
        return setting_keep(path);
    strcpy(full + n, path);
    return setting_keep(full);
}

enum outcome setting_read_path(struct settings_reading *reading, const struct setting *setting,
                               const char *value)
{
    return keep_string(reading, setting, from_here(value, false));
}

enum outcome setting_read_path_pattern(struct settings_reading *reading,
                                       const struct setting *setting, const char *value)
{
    return keep_string(reading, setting, from_here(value, true));
}

enum outcome setting_read_server(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    if (strchr(value, '/'))
        return setting_read_path(reading, setting, value);
    const int place = choice("auto,off|0|no|false", value);
    if (place < 0)
        return NOT_UNDERSTOOD;
    reading->settings->server = place == 0 ? "" : NULL;
    return UNDERSTOOD;
}

/* Complains at once of a folder that is not there: nothing else would. */
enum outcome setting_read_folder(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    struct stat st;
    enum outcome outcome = setting_read_path(reading, setting, value);
    if (stat(value, &st) != 0)
        miss(reading, setting, value, errno);
    else if (!S_ISDIR(st.st_mode))
        miss(reading, setting, value, ENOTDIR);
    return outcome;
}

/* Reads paths separated by colons. The dynamic linker finds a name without a slash, when that is
 * needed. */
enum outcome setting_read_originals(struct settings_reading *reading, const struct setting *setting,
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
    return setting_read_string(reading, setting, value);
}

/* Keeps no copy: the file is read at once. */
enum outcome setting_read_config(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    (void)setting;
    reading->config = value;
    return UNDERSTOOD;
}

enum outcome setting_read_model(struct settings_reading *reading, const struct setting *setting,
                                const char *value)
{
    enum outcome outcome = setting_read_path(reading, setting, value);
    reading->settings->model_given = outcome == UNDERSTOOD;
    return outcome;
}

/* Returns the factor of a unit: K, M, G, T, with or without "B" or "iB", are powers of 1024. 0: it
 * is no unit. */
static double unit_of(const char *unit)
{
    static const char letters[] = "kmgt";
    const char *letter = *unit ? strchr(letters, text_lower(*unit)) : NULL;
    double factor = 1;
    if (letter && choice("|b|ib", unit + 1) < 0)
        return 0;
    for (const char *l = letters; letter && l <= letter; l++)
        factor *= 1024;
    return letter ? factor : !*unit;
}

/* Reads an unsigned decimal number; *end is what follows. NaN: there is none. strtod() also takes
 * signs, spaces, hexadecimal, inf. */
static double number_in(const char *value, char **end)
{
    const double number = strtod(value, end);
    const bool plain = *end > value && strspn(value, "0123456789.") == (size_t)(*end - value);
    return plain ? number : __builtin_nan("");
}

enum outcome setting_read_ms(struct settings_reading *reading, const struct setting *setting,
                             const char *value)
{
    char *end;
    const double number = number_in(value, &end);
    if (!(number >= 0) || *end)
        return NOT_UNDERSTOOD;
    *(double *)field_of(reading, setting) = number;
    return UNDERSTOOD;
}

/* Reads "80%", or a size. A small number without a unit is refused: it hardly means bytes. */
enum outcome setting_read_memory(struct settings_reading *reading, const struct setting *setting,
                                 const char *value)
{
    struct accel_settings *settings = reading->settings;
    char *end;
    (void)setting;
    double number = number_in(value, &end);
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

/* Reads a list of libraries. In it, a switch stands for none, or for those that are accelerated by
 * default. */
enum outcome setting_read_ml(struct settings_reading *reading, const struct setting *setting,
                             const char *value)
{
    static const unsigned libraries[] = {0,
                                         ACCEL_ML_SAME,
                                         1u << ACCEL_LIBSVM,
                                         1u << ACCEL_LIBLINEAR,
                                         1u << ACCEL_XGBOOST,
                                         1u << ACCEL_LIGHTGBM};
    unsigned ml = 0;
    (void)setting;
    for (;; value++) {
        char name[32] = "";
        value += strspn(value, " ");
        const size_t length = strcspn(value, " ,");
        if (length < sizeof name)
            memcpy(name, value, length);
        const int place = choice(NO "," YES ",libsvm,liblinear,xgboost,lightgbm", name);
        if (place < 0)
            return NOT_UNDERSTOOD;
        ml |= libraries[place];
        value += length + strspn(value + length, " ");
        if (!*value)
            break;
        if (*value != ',')
            return NOT_UNDERSTOOD;
    }
    reading->settings->ml = ml;
    return UNDERSTOOD;
}

/* Sets the precision of the routine, or, without a name, of all of its type, also of those that no
 * device computes in it: they are told of as native. Returns false if it suits none. */
static bool set_precision(unsigned char precision[ACCEL_ROUTINES_MOST], const char *routine,
                          size_t length, enum gpu_precision asked)
{
    bool any = false;
    if (length > 1 && routine[length - 1] == '_') /* by its Fortran name */
        length--;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *one = &accel_routines[i];
        const bool named = length == strlen(one->name) && begins_with(routine, one->name, length);
        if (!accel_is_blas(one) || !gpu_precision_suits(asked, accel_is_double(one->dtype)) ||
            (length > 0 &&
             (!named || !gpu_precision_exists(asked, accel_op_of(one)->traits.products))))
            continue;
        precision[i] = (unsigned char)asked;
        any = true;
    }
    return any;
}

/* Reads names of precisions, each for all routines of its type, or for the one before its colon. */
enum outcome setting_read_precision(struct settings_reading *reading, const struct setting *setting,
                                    const char *value)
{
    struct accel_settings *settings = reading->settings;
    unsigned char precision[ACCEL_ROUTINES_MOST] = {GPU_NATIVE};
    (void)setting;
    for (;; value++) {
        char name[32] = "";
        value += strspn(value, " ");
        const size_t length = strcspn(value, " ,"), colon = strcspn(value, ":,");
        const size_t routine = colon < length ? colon : 0, from = routine ? colon + 1 : 0;
        if (length - from < sizeof name)
            memcpy(name, value + from, length - from);
        const int place = choice("native,emulated,tf32,bf16x9", name);
        if (place < 0 || !set_precision(precision, value, routine, (enum gpu_precision)place))
            return NOT_UNDERSTOOD;
        value += length + strspn(value + length, " ");
        if (!*value)
            break;
        if (*value != ',')
            return NOT_UNDERSTOOD;
    }
    memcpy(settings->precision, precision, sizeof precision);
    return UNDERSTOOD;
}

enum outcome setting_read_devices(struct settings_reading *reading, const struct setting *setting,
                                  const char *value)
{
    struct accel_devices devices = {.kind = ACCEL_DEVICES_LIST};
    bool seen[ACCEL_DEVICES_MAX] = {false};
    (void)setting;
    /* In the order of enum accel_devices_kind. */
    int word = choice("auto,none,all", value);
    if (word >= 0) {
        reading->settings->devices = (struct accel_devices){.kind = (enum accel_devices_kind)word};
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

/* Reads "off", "all", or "sample:N". */
enum outcome setting_read_verify(struct settings_reading *reading, const struct setting *setting,
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

/* Programs that compute nothing, and start those that do. */
static const char excluded_programs[] =
    "sh,bash,rbash,dash,ash,zsh,zsh-*,ksh,ksh93,mksh,pdksh,yash,csh,tcsh,fish,busybox,"
    "login,su,sudo,doas,runuser,ssh,sshd,sshd-*,tmux,screen,script,"
    "env,nice,ionice,chrt,nohup,setsid,stdbuf,taskset,numactl,time,timeout,xargs,find,unshare,"
    "nsenter,chroot,"
    "make,gmake,ninja,git,docker,podman,apptainer,singularity,"
    "mpirun,mpirun.*,mpirun_rsh,mpispawn,mpiexec,mpiexec.*,orterun,orted,prun,prte,prted,prterun,"
    "hydra_pmi_proxy,hydra_bstrap_proxy,hydra_nameserver,"
    "srun,sbatch,salloc,slurmd,slurmstepd,aprun,palsd,jsrun,flux,flux-*";

bool setting_excludes(const char *list, const char *program)
{
    return pattern_lists(list, excluded_programs, program);
}

enum outcome setting_read_exclude(struct settings_reading *reading, const struct setting *setting,
                                  const char *value)
{
    (void)setting;
    reading->excluded = setting_excludes(value, reading->program);
    return UNDERSTOOD;
}
