#define _GNU_SOURCE
#include "commands.h"

#include <argp.h>
#include <string.h>

#include "complain.h"
#include "doctor_program.h"
#include "in_force.h"
#include "machine.h"
#include "rows.h"

enum { JSON_KEY = 0x100 };

static const struct argp_option options_of_doctor[] = {
    {"json", JSON_KEY, NULL, 0, "print the rows as JSON", 0}, {0}};

struct options {
    bool json;
    char **program;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    struct options *options = state->input;
    switch (key) {
    case JSON_KEY:
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        options->program = command_program(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp doctor_argp = {
    .options = options_of_doctor,
    .parser = parse,
    .args_doc = "[-- PROGRAM [ARGUMENT...]]",
    .doc =
        "Looks at all that a call needs on its way to the GPU, and says what is wrong and what "
        "mends "
        "it.\v"
        "OK: it is as it should be. WARN: calls can go to the GPU, but something is missing. FAIL: "
        "none can go there. A small product is run on the GPU. With a program: runs it to its end "
        "on the CPU, with its stdout on stderr, and says which BLAS it and its children call, and "
        "whether libaccel reaches them. Set-uid programs among them run without their rights "
        "meanwhile. The exit status is 0 if calls can go to a GPU, else 1."};

int doctor_command(int argc, char **argv)
{
    struct options options = {false, NULL};
    struct in_force in_force;
    struct rows rows = {.count = 0};
    if (argp_parse(&doctor_argp, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0)
        return 2;
    in_force_read(&in_force);
    machine_examine(&rows, &in_force);
    if (options.program)
        doctor_program(&rows, options.program, &in_force);
    const bool good = rows_lack(&rows, ROW_FAIL);
    const int error = options.json ? rows_print_json(&rows) : rows_print(&rows);
    rows_free(&rows);
    in_force_free(&in_force);
    if (error)
        return complain(2, "accel doctor: the rows cannot be written: %s\n", strerror(error));
    return good ? 0 : 1;
}
