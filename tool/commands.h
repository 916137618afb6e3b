/*
 * tool/ is build/accel, for users: a file for each command, and the files that they use. It may
 * include all other folders.
 */
#ifndef ACCEL_TOOL_COMMANDS_H
#define ACCEL_TOOL_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

struct option_row;

/* Sets a member of a command's options. text: the option's argument, or NULL. False if it has said
 * what is wrong with the text. */
typedef bool option_reader(void *member, const char *text, const struct option_row *row);

/* An option: what it sets, and what --help, the manual page and the completion say of it. */
struct option_row {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: none. Words separated by bars are the values that it may have. */
    const char *help;
    option_reader *read;
    size_t at;     /* the member's offset in the options */
    int group;     /* of --help's lines */
    bool optional; /* the argument may be left out, and follows a `=' if it is there */
    /* What some readers ask for. */
    int least;                   /* the least count */
    const char *setting, *value; /* a setting's name, and its value if there is no argument */
};

/* Of a row: the member of the command's struct `options` that it sets, and how. */
#define SETS(options, reader, member) .read = reader, .at = offsetof(struct options, member)

/* Read a bool, which becomes true, and a text. */
option_reader option_flag, option_text;

struct command {
    const char *name, *does;
    const struct option_row *options; /* ends with a row without a name; NULL: none */
    const char *arguments; /* the words behind the options, as --help has them; NULL: none */
    int words_most;        /* 0: any number */
    bool in_order;         /* the first word ends the options: it is a program, with its own */
    const char *doc;       /* of --help: in front of the options, \v, behind them */
    /* Gets the command's own name as argv[0]. Returns the exit status. */
    int (*run)(const struct command *command, int argc, char **argv);
};

enum { COMMANDS = 12 };
extern const struct command *const commands[COMMANDS];
extern const struct command calibrate_command, config_command, diff_command, doctor_command,
    estimate_command, explain_command, jupyter_command, replay_command, report_command, run_command,
    serve_command, top_command;

/* The words behind a command's options: a program and its arguments, or logs. */
struct words {
    char **word; /* NULL: there is none */
    int count;
    bool quoted; /* there was a -- */
};

/* Reads a command line into the command's options, which have their defaults. If it is wrong, or
 * asks for help, ends the process. */
struct words options_read(const struct command *command, int argc, char **argv, void *options);

#endif
