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
    struct effective_config *in_force = context;
    struct effective_config_value *value = &in_force->value[setting_named(found->name)];
    value->text = strdup(found->value);
    value->understood = found->understood;
    if (found->file)
        snprintf(value->from, sizeof value->from, "%s:%d", found->file, found->line);
    else
        snprintf(value->from, sizeof value->from, "environment");
}

static void take_file(void *context, const char *path, const char *fault, int error)
{
    struct effective_config *in_force = context;
    struct effective_config_file *file = &in_force->file[in_force->files];
    if (in_force->files == sizeof in_force->file / sizeof *in_force->file)
        return;
    in_force->files++;
    snprintf(file->path, sizeof file->path, "%s", path);
    if (fault)
        setting_fault(fault, error, file->fault, sizeof file->fault);
    file->absent = fault && (error == ENOENT || error == ENOTDIR);
}

void effective_config_read(struct effective_config *in_force)
{
    *in_force = (struct effective_config){.files = 0};
    settings_read_whole(&in_force->settings,
                        &(struct settings_watch){take_value, take_file, in_force});
    settings_check_routines(&in_force->settings, accel_routines, accel_routine_count);
}

void effective_config_free(struct effective_config *in_force)
{
    for (int i = 0; i < SETTINGS; i++)
        free(in_force->value[i].text);
}

const char *effective_config_shown(const struct effective_config *in_force, int i)
{
    const struct effective_config_value *value = &in_force->value[i];
    struct accel_ranks ranks;
    if (value->text && *value->text && value->understood)
        return value->text;
    if (i == setting_named("ACCEL_MODEL") && in_force->settings.model)
        return in_force->settings.model;
    ranks_read(&ranks);
    if (i == setting_named("ACCEL_START") && settings_wait(&in_force->settings, ranks.mpi))
        return "wait";
    return setting_table[i].usual;
}
