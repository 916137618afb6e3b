#define _GNU_SOURCE
#include "commands.h"

#include <string.h>

#include "tool/util/complain.h"
#include "doctor_program.h"
#include "effective_config.h"
#include "machine.h"
#include "checks.h"

static const struct option_row option_rows[] = {
    {"json", 0, NULL, "print the rows as JSON", .read = option_flag}, {0}};

static int doctor(const struct command *command, int argc, char **argv)
{
    bool json = false;
    struct effective_config config;
    struct checks checks = {.count = 0};
    char **const program = options_read(command, argc, argv, &json).word;
    effective_config_read(&config);
    machine_examine(&checks, &config);
    if (program)
        doctor_program(&checks, program, &config);
    const bool good = checks_lack(&checks, CHECK_FAIL);
    const int error = json ? checks_print_json(&checks) : checks_print(&checks);
    checks_free(&checks);
    effective_config_free(&config);
    if (error)
        return complain(2, "accel doctor: the rows cannot be written: %s\n", strerror(error));
    return good ? 0 : 1;
}

/* Returns 0 if calls can go to a GPU, 1 if not, 2 for wrong options or a full disk. */
const struct command doctor_command = {
    .name = "doctor",
    .does = "say what keeps calls from the GPU, and what mends it",
    .options = option_rows,
    .arguments = "[-- PROGRAM [ARGUMENT...]]",
    .in_order = true,
    .doc =
        "Looks at all that a call needs on its way to the GPU, and says what is wrong and what "
        "mends it.\v"
        "OK: it is as it should be. WARN: calls can go to the GPU, but something is missing. FAIL: "
        "none can go there. A small product is run on the GPU. With a program: runs it to its end "
        "on the CPU, with its stdout on stderr, and says which BLAS it and its children call, and "
        "whether libaccel reaches them. Set-uid programs among them run without their rights "
        "meanwhile. The exit status is 0 if calls can go to a GPU, else 1.",
    .run = doctor};
