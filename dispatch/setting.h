/*
 * The settings by name: the table of them, and how the value of each is read. For settings.c, which finds the values. Not
 * thread-safe.
 */
#ifndef ACCEL_SETTING_H
#define ACCEL_SETTING_H

#include <stddef.h>

#include "complaints.h"
#include "settings.h"

enum outcome { UNDERSTOOD, NOT_UNDERSTOOD, NO_ROOM };

/* What is read so far, and from where. */
struct reading {
    struct accel_settings *settings;
    const char *program;
    bool excluded;
    const char *config;          /* ACCEL_CONFIG; NULL: none */
    struct complaint_place from; /* the value that is being read */
};

enum scope { ANYWHERE, ENVIRONMENT, INTERNAL }; /* the last two: in the environment alone */

struct setting;
typedef enum outcome setting_reader(struct reading *reading, const struct setting *setting,
                                    const char *value);

/* A setting's name, and how its value is read. */
struct setting {
    const char *name;
    /* For complaints. Of choices: the words, separated by commas, other words for one by bars. */
    const char *allowed;
    setting_reader *read;
    size_t field; /* of struct accel_settings */
    enum scope scope;
    bool promise; /* a program must not go on if the value cannot be read */
};

/* Other words for the same. */
#define NO  "0|off|no|false"
#define YES "1|on|yes|true"

/* ---- The table ---- */

enum { SETTINGS = 22 };
extern const struct setting setting_table[];

/* A setting's place in the table, or -1. */
int setting_named(const char *name);

/* The setting that a wrong name is most like. */
const char *setting_nearest(const char *name);

/* ---- How values are read ---- */

/* Into the setting's field. A choice is an enumeration whose values the words stand for, from 0 on. */
setting_reader setting_read_switch, setting_read_choice, setting_read_string, setting_read_routines,
    setting_read_path, setting_read_path_pattern, setting_read_folder, setting_read_originals;

/* Of one setting each. */
setting_reader setting_read_start, setting_read_require, setting_read_devices, setting_read_memory,
    setting_read_verify, setting_read_model, setting_read_exclude, setting_read_config;

/* Whether a list of programs, in which `default` stands for those that start others, names this one. */
bool setting_excludes(const char *list, const char *program);

/* A copy that stays until setting_forget(): a program may overwrite its environment (setproctitle). NULL: no room. */
const char *setting_keep(const char *value);
void setting_forget(void);

/* As text for complaints: of each choice the first word. */
const char *setting_words(const char *words, char *shown, size_t size);

/* " cannot be opened (No such file or directory)" */
const char *setting_fault(const char *fault, int error, char *to, size_t size);

#endif
