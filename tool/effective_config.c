#define _GNU_SOURCE
#include "effective_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/ranks.h"
#include "ops/op.h"

static void take_value(void *context, const struct setting_found *found)
{
    struct effective_config *config = context;
    struct effective_config_value *value = &config->value[setting_named(found->name)];
    value->text = strdup(found->value);
    value->understood = found->understood;
    if (found->file)
        snprintf(value->from, sizeof value->from, "%s:%d", found->file, found->line);
    else
        snprintf(value->from, sizeof value->from, "environment");
}

static void take_file(void *context, const char *path, const char *fault, int error)
{
    struct effective_config *config = context;
    struct effective_config_file *file = &config->file[config->files];
    if (config->files == sizeof config->file / sizeof *config->file)
        return;
    config->files++;
    snprintf(file->path, sizeof file->path, "%s", path);
    if (fault)
        setting_fault(fault, error, file->fault, sizeof file->fault);
    file->absent = fault && (error == ENOENT || error == ENOTDIR);
}

void effective_config_read(struct effective_config *config)
{
    *config = (struct effective_config){.files = 0};
    settings_read_whole(&config->settings, &(struct settings_watch){take_value, take_file, config});
    settings_check_routines(&config->settings, accel_routines, accel_routine_count);
}

void effective_config_free(struct effective_config *config)
{
    for (int i = 0; i < SETTINGS; i++)
        free(config->value[i].text);
}

const char *effective_config_shown(const struct effective_config *config, int i)
{
    const struct effective_config_value *value = &config->value[i];
    struct accel_ranks ranks;
    if (value->text && *value->text && value->understood)
        return value->text;
    if (i == setting_named("ACCEL_MODEL") && config->settings.model)
        return config->settings.model;
    ranks_read(&ranks);
    if (i == setting_named("ACCEL_START") && settings_wait(&config->settings, ranks.mpi))
        return "wait";
    return setting_table[i].usual;
}
