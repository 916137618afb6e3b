#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/util/complain.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/cost/loaded_calibration.h"
#include "effective_config.h"
#include "tool/util/stream.h"
#include "tool/util/terminal.h"

static const char *origin(const struct effective_config_value *value)
{
    if (!value->text)
        return "default";
    return !*value->text        ? "default: empty in "
           : !value->understood ? "default: not understood in "
                                : "";
}

static void print_setting(const struct effective_config *config, int i)
{
    const struct effective_config_value *value = &config->value[i];
    char shown[1000];
    if (setting_table[i].scope == INTERNAL && !value->text)
        return;
    snprintf(shown, sizeof shown, "%s", effective_config_shown(config, i));
    printf("%-19s  %-28s  %s%s\n", setting_table[i].name,
           terminal_plain(shown), /* a damaged file may have control characters */
           origin(value), value->from);
}

static void print_file(const struct effective_config_file *file)
{
    printf("%s:%s\n", file->path,
           file->absent   ? " not there"
           : *file->fault ? file->fault
                          : " read");
}

static int config(const struct command *command, int argc, char **argv)
{
    struct effective_config config;
    options_read(command, argc, argv, NULL);
    effective_config_read(&config);
    const bool wrong = complaints_wait(), missed = loaded_calibration_is_missed(&config.settings);
    for (int i = 0; i < SETTINGS; i++)
        print_setting(&config, i);
    putchar('\n');
    for (int i = 0; i < config.files; i++)
        print_file(&config.file[i]);
    effective_config_free(&config);
    if ((errno = stream_flush(stdout)))
        return complain(2, "accel config: the list cannot be written: %s\n", strerror(errno));
    complaints_say();
    if (missed)
        loaded_calibration_say_missed(&config.settings);
    return wrong || missed;
}

/* Returns 1 if a setting is wrong, 2 for wrong options or a full disk. */
const struct command config_command = {
    .name = "config",
    .does = "print the settings in force, and where each comes from",
    .doc = "Prints each setting in force in this environment, and where it comes from.\v"
           "accel config reads the environment, the file that ACCEL_CONFIG names, the user's "
           "accel.conf and /etc/accel.conf, as libaccel does. If a setting is wrong, or names a "
           "calibration, folder or library that is not there, a line on stderr says why, and the "
           "exit status is 1.",
    .run = config};
