#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config.h"
#include "setting.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "ops/op.h"

/* Which settings have been found, and where. */
static bool found[SETTINGS];
static struct complaint_place places[SETTINGS];

static void complain_of_name(struct complaint_place place, const char *name, const char *outcome)
{
    complaints_add(&(struct complaint){place, name, NULL,
                                       " is no setting of this version; the nearest is ",
                                       setting_nearest(name), outcome, false});
}

/* Reads a value, unless a place of higher rank has had one. An empty value stands for the
 * default. */
static void take_setting(struct settings_reading *reading, int i, const char *value,
                         struct complaint_place place)
{
    const struct setting *setting = &setting_table[i];
    const char *problem = " is not understood; allowed: ";
    char words[200];
    if (found[i])
        return;
    found[i] = true;
    places[i] = reading->from = place;
    enum outcome outcome = *value ? setting->read(reading, setting, value) : UNDERSTOOD;
    if (reading->watch)
        reading->watch->value(reading->watch->context,
                              &(struct setting_found){setting->name, value, place.file, place.line,
                                                      outcome == UNDERSTOOD});
    if (outcome == UNDERSTOOD)
        return;
    if (outcome == NO_ROOM)
        problem = " is too long: there is room for 16 KiB in all settings";
    reading->settings->broken_promise |= setting->promise;
    complaints_add(&(struct complaint){
        place, setting->name, value, problem,
        outcome == NO_ROOM ? "" : setting_words(setting->allowed, words, sizeof words),
        setting->promise ? "; the program ends at its first call of BLAS" : "; the default is used",
        setting->promise});
}

/* ---- The environment ---- */

static void read_environment(struct settings_reading *reading)
{
    static const char prefix[] = "ACCEL_";
    const struct complaint_place here = {NULL, 0};
    char name[100];
    for (int i = 0; i < SETTINGS; i++) {
        const char *value = getenv(setting_table[i].name);
        if (value)
            take_setting(reading, i, value, here);
    }
    for (char **variable = environ; variable && *variable; variable++) {
        size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, prefix, sizeof prefix - 1) != 0)
            continue;
        if (length >= sizeof name) /* longer than any setting's name */
            length = sizeof name - 1;
        memcpy(name, *variable, length);
        name[length] = 0;
        if (setting_named(name) < 0)
            complain_of_name(here, name, "; it is ignored");
    }
}

/* ---- Config files ---- */

enum expected { NAMED_BY_USER, USERS_OWN, SYSTEMS };

/* Only a file that the user has named is missed. The user's own may be closed: HOME stays another
 * user's in programs that change the user. */
static bool may_lack(enum expected expected, int error)
{
    return expected != NAMED_BY_USER &&
           (error == ENOENT || error == ENOTDIR || (error == EACCES && expected == USERS_OWN));
}

/* Whether a config file may still set this promise: no place of higher rank has named it. */
static bool may_promise(int i)
{
    return setting_table[i].promise && !found[i];
}

/* Returns a promise that a refused file may hold: the first that it names, or the first of all if
 * it could not be read. NULL: none. */
static const char *promise_lost(void)
{
    struct config_line line;
    for (int i = 0; !config_is_known() && i < SETTINGS; i++)
        if (may_promise(i))
            return setting_table[i].name;
    while (config_next(&line)) {
        int i = line.name && *line.value ? setting_named(line.name) : -1;
        if (i >= 0 && may_promise(i))
            return setting_table[i].name;
    }
    return NULL;
}

/* Ignores a file, and remembers why. If the user has named it (ACCEL_CONFIG), it may hold a
 * promise, and the program must not go on without that. No other file ends a program, or whoever
 * can write such a file could end the programs of other users. */
static void refuse_file(struct settings_reading *reading, const char *path, enum expected expected,
                        const char *fault, int error)
{
    char problem[200];
    const bool is_named = expected == NAMED_BY_USER;
    const char *promise = is_named ? promise_lost() : NULL;
    const char *may = !promise ? "" : config_is_known() ? ", and names " : ", and may hold ";
    setting_fault(fault, error, problem, sizeof problem - 50);
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

static void read_file(struct settings_reading *reading, const char *path, enum expected expected)
{
    const char *values[SETTINGS] = {NULL};
    int numbers[SETTINGS], error;
    struct config_line line;
    struct complaint_place place = {path, 0};
    const char *fault = config_load(path, &error);
    if (reading->watch)
        reading->watch->file(reading->watch->context, path, fault, error);
    if (fault) {
        if (!may_lack(expected, error))
            refuse_file(reading, path, expected, fault, error);
        return;
    }
    place.file = setting_keep(path);
    if (!place.file)
        place.file = "a config file";
    while (config_next(&line)) {
        place.line = line.number;
        int i = line.name ? setting_named(line.name) : -1;
        if (!line.name) {
            complaints_add(&(struct complaint){place, NULL, line.value,
                                               " is not understood; allowed: ", "NAME=value",
                                               "; the line is ignored", false});
        } else if (i >= 0 && setting_table[i].scope == ENVIRONMENT) {
            complaints_add(&(struct complaint){place, line.name, NULL,
                                               " counts in the environment alone", "",
                                               "; the line is ignored", false});
        } else if (i < 0 || setting_table[i].scope == INTERNAL) {
            complain_of_name(place, line.name, "; the line is ignored");
        } else {
            values[i] = line.value;
            numbers[i] = line.number;
        }
    }
    for (int i = 0; i < SETTINGS; i++)
        if (values[i])
            take_setting(reading, i, values[i], (struct complaint_place){place.file, numbers[i]});
}

/* Makes the path of `name` in the folder that `variable` names, or else in $HOME/`folder`. False:
 * neither variable is usable. */
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
    return text_end(&text);
}

static void read_files(struct settings_reading *reading, const char *system_file)
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

/* Whether ACCEL=0 comes from a place of lower rank than the user's wish for the GPU: a fallback
 * that the user has not chosen. Of the user's own files, both are. */
static bool is_against_wish(const struct settings_sources *sources)
{
    const char *const off = places[setting_named("ACCEL")].file,
                      *const wish = places[setting_named("ACCEL_REQUIRE")].file,
                      *const system = sources->system_file ? sources->system_file : "";
    return off && (!wish || (strcmp(off, system) == 0 && strcmp(wish, system) != 0));
}

/* Leaves nothing but what a process needs whose calls libaccel leaves alone: or which has to
 * end. */
static void switch_off(struct accel_settings *settings, const struct settings_sources *sources,
                       bool broken)
{
    complaints_clear();
    settings->broken_promise = false;
    if (!sources->whole)
        *settings = (struct accel_settings){
            .memory_share = 0.8, .server = "", .original = settings->original};
    if (!broken)
        return;
    settings->on = !sources->whole; /* its first call comes here, and ends it */
    settings->broken_promise = true;
    complaints_add(&(struct complaint){
        places[setting_named("ACCEL")], "ACCEL", NULL,
        " switches libaccel off, and ACCEL_REQUIRE=gpu is set", "",
        "; the program ends at its first call of BLAS, unless ACCEL=1 is set, too", true});
}

static void read_all(struct accel_settings *settings, const struct settings_sources *sources,
                     const struct settings_watch *watch)
{
    char path[PATH_MAX];
    struct settings_reading reading = {.settings = settings,
                                       .program = sources->program,
                                       .watch = watch,
                                       .excluded = setting_excludes("default", sources->program)};
    read_environment(&reading);
    read_files(&reading, sources->system_file);
    if (!settings->on || reading.excluded) {
        switch_off(settings, sources,
                   !reading.excluded && settings->require_gpu && is_against_wish(sources));
        if (!sources->whole)
            return;
    }
    if (!settings->model && user_path("XDG_CACHE_HOME", ".cache", "accel/model", path, sizeof path))
        settings->model = setting_keep(path);
}

static void read_from(struct accel_settings *settings, const struct settings_sources *sources,
                      const struct settings_watch *watch)
{
    int saved = errno;
    setting_forget();
    complaints_clear();
    memset(found, 0, sizeof found);
    *settings = (struct accel_settings){
        .on = !sources->secure, .memory_share = 0.8, .server = "", .ml = ACCEL_ML_SAME};
    if (settings->on)
        read_all(settings, sources, watch);
    errno = saved;
}

void settings_read_from(struct accel_settings *settings, const struct settings_sources *sources)
{
    read_from(settings, sources, NULL);
}

/* Returns the name of the file that this process runs; empty if the system does not say. */
static const char *program_name(char path[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    file_program(path);
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name), suffix = sizeof deleted - 1;
    if (n > suffix && strcmp(name + n - suffix, deleted) == 0)
        name[n - suffix] = 0;
    return name;
}

static void read_here(struct accel_settings *settings, const struct settings_watch *watch,
                      bool whole)
{
    char path[PATH_MAX];
    int saved = errno;
    const struct settings_sources sources = {"/etc/accel.conf", program_name(path),
                                             getauxval(AT_SECURE) != 0, whole};
    read_from(settings, &sources, watch);
    errno = saved;
}

void settings_read(struct accel_settings *settings)
{
    read_here(settings, NULL, false);
}

void settings_read_whole(struct accel_settings *settings, const struct settings_watch *watch)
{
    read_here(settings, watch, true);
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
                                               checked[i].name, item, ": ", fault,
                                               "; this name is ignored", false});
    }
}
