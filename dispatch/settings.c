#define _GNU_SOURCE
#include "settings.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "say.h"

/* Copies of the strings: a program may overwrite its environment (setproctitle). */
static char arena[16384];
static size_t arena_used;

struct complaint {
    const char *name, *value, *allowed;
};
static struct complaint complaints[16];
static int complaint_count;
static atomic_bool complained;

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

static void complain(const char *name, const char *value, const char *allowed)
{
    char start[100] = "";
    strncat(start, value, sizeof start - 1);
    const char *copy = keep(start);
    if (complaint_count < (int)(sizeof complaints / sizeof *complaints))
        complaints[complaint_count++] = (struct complaint){name, copy ? copy : "…", allowed};
}

/* The place of the value in a list of words separated by commas, `unset` where the variable is not
 * set or empty, or names none of them. */
static int read_choice(const char *name, const char *words, int unset)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return unset;
    size_t length = strlen(value);
    int place = 0;
    for (const char *word = words;; place++) {
        size_t n = strcspn(word, ",");
        if (n == length && strncmp(word, value, n) == 0)
            return place;
        if (!word[n])
            break;
        word += n + 1;
    }
    complain(name, value, words);
    return unset;
}

static const char *read_string(const char *name, const char *allowed)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return NULL;
    const char *copy = keep(value);
    if (!copy)
        complain(name, value, allowed);
    return copy;
}

/* A path that stays the same when the program changes its folder. A percent sign in the folder's own name is
 * doubled: the path is a pattern. */
static const char *from_here(const char *path)
{
    char here[PATH_MAX], full[2 * PATH_MAX];
    size_t n = 0;
    if (!path || path[0] == '/' || !getcwd(here, sizeof here))
        return path;
    for (const char *c = here; *c; c++) {
        full[n++] = *c;
        if (*c == '%')
            full[n++] = '%';
    }
    full[n++] = '/';
    if (n + strlen(path) >= sizeof full)
        return path;
    strcpy(full + n, path);
    const char *kept = keep(full);
    return kept ? kept : path;
}

/* "80%", or bytes with an optional K, M, G or T (powers of 1024). */
static void read_memory(struct accel_settings *settings)
{
    const char *value = getenv("ACCEL_MEMORY");
    static const char units[] = "KMGT";
    if (!value || !*value)
        return;
    char *end;
    double number = strtod(value, &end);
    /* strtod knows more than we mean: signs, spaces, hexadecimal, inf, nan. */
    bool plain = strspn(value, "0123456789.") == (size_t)(end - value) && end != value;
    if (plain && strcmp(end, "%") == 0 && number > 0 && number <= 100) {
        settings->memory_share = number / 100;
        return;
    }
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit)
        for (const char *u = units; u <= unit; u++)
            number *= 1024;
    if (plain && number >= 1 && number < 9e18 && (!*end || (unit && !end[1]))) {
        settings->memory_bytes = (int64_t)number;
        return;
    }
    complain("ACCEL_MEMORY", value, "a share such as 80%, or a size such as 500M or 12G");
}

void settings_read(struct accel_settings *settings)
{
    static const enum accel_log_level levels[] = {ACCEL_LOG_OFF, ACCEL_LOG_DECISIONS,
                                                  ACCEL_LOG_MOVES, ACCEL_LOG_JSON};
    static const enum accel_policy policies[] = {ACCEL_POLICY_AUTO, ACCEL_POLICY_GPU,
                                                 ACCEL_POLICY_CPU};
    *settings = (struct accel_settings){.memory_share = 0.8};
    if (getauxval(AT_SECURE))
        return; /* somebody else's environment: off */
    settings->on = read_choice("ACCEL", "0,1", 1) == 1;
    settings->original = read_string("ACCEL_ORIGINAL", "paths separated by colons");
    if (!settings->on)
        return;
    settings->log = levels[read_choice("ACCEL_LOG", "0,1,2,json", 0)];
    settings->log_file = from_here(read_string("ACCEL_LOG_FILE", "a path"));
    settings->summary = read_choice("ACCEL_SUMMARY", "0,1", 0) == 1;
    settings->policy = policies[read_choice("ACCEL_POLICY", "auto,gpu,cpu", 0)];
    settings->cuda_dir = read_string("ACCEL_CUDA_DIR", "a folder");
    read_memory(settings);
}

void settings_complain(void)
{
    if (complaint_count == 0 || atomic_exchange(&complained, true))
        return;
    for (int i = 0; i < complaint_count; i++)
        accel_say("%s=%s is not understood; allowed: %s; the default is used", complaints[i].name,
                  complaints[i].value, complaints[i].allowed);
}
