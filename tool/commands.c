#include "commands.h"

#include <argp.h>
#include <stdlib.h>

const struct command *const commands[COMMANDS] = {
    &calibrate_command, &config_command,  &diff_command,    &doctor_command,
    &estimate_command,  &explain_command, &jupyter_command, &replay_command,
    &report_command,    &run_command,     &serve_command,   &top_command,
};

enum { ROWS_MAX = 32, NAMED_KEY = 0x100 };

struct parsing {
    const struct command *command;
    void *options;
    struct words words;
};

bool option_flag(void *member, const char *text, const struct option_row *row)
{
    (void)text, (void)row;
    return *(bool *)member = true;
}

bool option_text(void *member, const char *text, const struct option_row *row)
{
    (void)row;
    *(const char **)member = text;
    return true;
}

static int key_of_option(const struct command *command, const struct option_row *row)
{
    return row->letter ? row->letter : NAMED_KEY + (int)(row - command->options);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    const struct command *command = parsing->command;
    const int words = state->argc - state->next;
    if (key == ARGP_KEY_ARGS && command->arguments &&
        (!command->words_most || words <= command->words_most)) {
        parsing->words = (struct words){state->argv + state->next, words, false};
        return 0;
    }
    if (key == ARGP_KEY_END)
        parsing->words.quoted = state->quoted;
    for (const struct option_row *row = command->options; row && row->name; row++)
        if (key == key_of_option(command, row)) {
            if (!row->read((char *)parsing->options + row->at, arg, row))
                exit(argp_err_exit_status);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

struct words options_read(const struct command *command, int argc, char **argv, void *options)
{
    struct argp_option rows[ROWS_MAX] = {{0}};
    struct parsing parsing = {.command = command, .options = options};
    const struct argp argp = {.options = rows,
                              .parser = parse_option,
                              .args_doc = command->arguments,
                              .doc = command->doc};
    for (const struct option_row *row = command->options; row && row->name; row++)
        rows[row - command->options] =
            (struct argp_option){row->name,     key_of_option(command, row),
                                 row->argument, row->optional ? OPTION_ARG_OPTIONAL : 0,
                                 row->help,     row->group};
    if (argp_parse(&argp, argc, argv, command->in_order ? ARGP_IN_ORDER : 0, NULL, &parsing) != 0)
        exit(argp_err_exit_status);
    return parsing.words;
}
