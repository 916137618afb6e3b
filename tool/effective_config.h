/*
 * The settings in force in this environment, and where each comes from, as libaccel reads them.
 */
#ifndef ACCEL_TOOL_IN_FORCE_H
#define ACCEL_TOOL_IN_FORCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "dispatch/settings/setting.h"

struct effective_config_value {
    char *text;               /* as it was found; NULL: the setting is set nowhere */
    bool understood;          /* false: the default counts */
    char from[PATH_MAX + 20]; /* "environment", "FILE:LINE" */
};

struct effective_config_file {
    char path[PATH_MAX], fault[200]; /* fault: why it does not count; empty: it is read */
    bool absent;
};

struct effective_config {
    struct accel_settings settings;
    struct effective_config_value value[SETTINGS]; /* as in setting_table */
    struct effective_config_file file[3];
    int files;
};

/* Reads them; the complaints wait then (dispatch/settings/complaints.h). Not thread-safe. */
void effective_config_read(struct effective_config *config);
void effective_config_free(struct effective_config *config);

/* Returns what counts of a setting, for people: the value that was found, or the default. */
const char *effective_config_shown(const struct effective_config *config, int i);

#endif
