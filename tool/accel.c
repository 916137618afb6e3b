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

#include "base/output/output.h"
#include "base/host/version.h"
#include "commands.h"
#include "gpu/device/gpu.h"
#include "gpu/device/own.h"
#include "tool/util/stream.h"

static const char doc[] = "The tool that goes with libaccel.so.\v"
                          "`accel COMMAND --help` prints a command's options.";

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
    int at; /* its index in argv */
};

static error_t parse_command(int key, char *arg, struct argp_state *state)
{
    struct command_choice *choice = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        for (int i = 0; i < COMMANDS; i++)
            if (strcmp(arg, commands[i]->name) == 0)
                choice->command = commands[i];
        if (!choice->command)
            refuse_command(arg, ": no such command");
        choice->at = state->next - 1;
        state->next = state->argc; /* the command reads the rest */
        return 0;
    case ARGP_KEY_NO_ARGS:
        refuse_command("", "no command is given");
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
    struct command_choice choice = {NULL, 0};
    char name[64];
    fill_standard_files();
    stream_check_at_exit();
    output_start(); /* for what the library's parts say on stderr */
    argp_err_exit_status = 2;
    argp_program_version_hook = print_version;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice) != 0 || !choice.command)
        return 2;
    snprintf(name, sizeof name, "accel %s", choice.command->name);
    argv[choice.at] = name;
    return choice.command->run(choice.command, argc - choice.at, argv + choice.at);
}
