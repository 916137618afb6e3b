/*
 * The settings by name: their table, and the functions that read their values. For settings.c,
 * which finds the values. Not thread-safe.
 */
#ifndef ACCEL_SETTING_H
#define ACCEL_SETTING_H

#include <stddef.h>

#include "complaints.h"
#include "settings.h"

enum outcome { UNDERSTOOD, NOT_UNDERSTOOD, NO_ROOM };

/* The settings while they are read. */
struct settings_reading {
    struct accel_settings *settings;
    const char *program;
    bool excluded;
    const char *config;                 /* ACCEL_CONFIG; NULL: none */
    const struct settings_watch *watch; /* NULL: none */
    struct complaint_place from;        /* of the value that is being read */
};

enum scope { ANYWHERE, ENVIRONMENT, INTERNAL }; /* the last two: in the environment alone */

struct setting;
typedef enum outcome setting_reader(struct settings_reading *reading, const struct setting *setting,
                                    const char *value);

/* Short texts are in place: a pointer is a relocation at each start. */
struct setting {
    char name[24];
    /* For complaints. Of a choice: its words, separated by commas; words for the same by bars. */
    const char *allowed;
    /* What counts where nothing is set, for people; empty: nothing. */
    char usual[48];
    setting_reader *read;
    size_t field; /* of struct accel_settings */
    enum scope scope;
    bool promise; /* the program must not go on if the value cannot be read */
};

#define NO  "0|off|no|false"
#define YES "1|on|yes|true"

/* ---- The table ---- */

enum { SETTINGS = 31 };
extern const struct setting setting_table[];

/* Returns a setting's place in the table, or -1. */
int setting_named(const char *name);

/* Returns the setting whose name is the nearest to a wrong one. */
const char *setting_nearest(const char *name);

/* ---- Reading values ---- */

/* Set the setting's field. The words of a choice stand for the values 0, 1, 2 … of its
 * enumeration. */
setting_reader setting_read_switch, setting_read_choice, setting_read_string, setting_read_path,
    setting_read_path_pattern, setting_read_folder, setting_read_originals, setting_read_ms;

/* Set the fields of one setting. */
setting_reader setting_read_start, setting_read_require, setting_read_ml, setting_read_devices,
    setting_read_memory, setting_read_verify, setting_read_model, setting_read_exclude,
    setting_read_config, setting_read_precision, setting_read_server;

/* Whether a list names this program. In it, `default` stands for the programs that start others. */
bool setting_excludes(const char *list, const char *program);

/* Returns a copy that stays until setting_forget(): a program may overwrite its environment
 * (setproctitle). NULL: no room. */
const char *setting_keep(const char *value);
void setting_forget(void);

/* Writes the choices for a complaint: the first word of each. Returns `shown`. */
const char *setting_words(const char *words, char *shown, size_t size);

/* Writes " cannot be opened (No such file or directory)"; error 0: without the parentheses. Returns
 * `to`. */
const char *setting_fault(const char *fault, int error, char *to, size_t size);

#endif
