/*
 * accel: the command-line tool for users. Each command reads its own options.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/shared_file.h"
#include "base/output/output.h"
#include "base/host/version.h"
#include "commands.h"
#include "gpu/device/gpu.h"
#include "gpu/device/own.h"
#include "tool/util/complain.h"
#include "tool/util/stream.h"

static const char doc[] = "The tool that goes with libaccel.so.\v"
                          "`accel help COMMAND` and `accel COMMAND --help` print a "
                          "command's options.";

/* Puts the list of commands before the last paragraph of --help. */
static char *list_commands(int key, const char *text, void *input)
{
    char *list = NULL;
    size_t size = 0;
    FILE *stream = key == ARGP_KEY_HELP_POST_DOC ? open_memstream(&list, &size) : NULL;
    (void)input;
    if (!stream)
        return (char *)text;
    fputs("Commands:\n", stream);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-10s  %s\n", commands[i]->name, commands[i]->does);
    fprintf(stream, "\n%s", text);
    return fclose(stream) == 0 ? list : (char *)text;
}

static _Noreturn void refuse_command(const char *what, const char *wrong)
{
    fprintf(stderr, "accel: %s%s; allowed:", what, wrong);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(stderr, " %s", commands[i]->name);
    fputc('\n', stderr);
    exit(2);
}

struct command_choice {
    const struct command *command;
    int at;     /* its index in argv */
    bool helps; /* accel help COMMAND */
};

static const struct command *command_named(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    refuse_command(name, ": no such command");
}

/* accel help, alone or of a command. */
static void choose_help(struct command_choice *choice, struct argp_state *state)
{
    const int words = state->argc - state->next;
    if (words == 0 || (words == 1 && strcmp(state->argv[state->next], "help") == 0))
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* ends the process */
    if (words > 1)
        exit(complain(2, "accel help: %s: allowed: one command\n", state->argv[state->next + 1]));
    choice->command = command_named(state->argv[state->next]);
    choice->helps = true;
}

static error_t parse_command(int key, char *arg, struct argp_state *state)
{
    struct command_choice *choice = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (strcmp(arg, "help") == 0)
            choose_help(choice, state);
        else
            choice->command = command_named(arg);
        choice->at = state->next - 1;
        state->next = state->argc; /* the command reads the rest */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_state_help(state, stderr,
                        ARGP_HELP_STD_HELP & ~(ARGP_HELP_EXIT_ERR | ARGP_HELP_EXIT_OK));
        exit(argp_err_exit_status);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "accel %s\n", accel_version());
    if (*accel_commit())
        fprintf(stream, "commit %s\n", accel_commit());
    else
        fputs("built without git: no commit is known\n", stream);
    fprintf(stream, "for CUDA %s, without headers of CUDA\n", gpu_interface);
    fputs(gpu_own_is_built() ? "with kernels of its own\n"
                             : "without kernels of its own: built without nvcc\n",
          stream);
}

/* Of closed standard files: what opens a file next would have their numbers, and get what is
 * printed. For programs that are started they stay closed. */
static void fill_standard_files(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    const struct argp argp = {.parser = parse_command,
                              .args_doc = "COMMAND [OPTION...]",
                              .doc = doc,
                              .help_filter = list_commands};
    struct command_choice choice = {NULL, 0, false};
    char name[64];
    fill_standard_files();
    stream_check_at_exit();
    output_start(); /* for what the library's parts say on stderr */
    shared_file_prepare();
    argp_err_exit_status = 2;
    argp_program_version_hook = print_version;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice) != 0 || !choice.command)
        return 2;
    snprintf(name, sizeof name, "accel %s", choice.command->name);
    if (choice.helps) {
        char option[] = "--help", *words[] = {name, option, NULL};
        return choice.command->run(choice.command, 2, words);
    }
    argv[choice.at] = name;
    return choice.command->run(choice.command, argc - choice.at, argv + choice.at);
}
