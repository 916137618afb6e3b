/*
 * tool/ is build/accel, for users: a file for each command, and the files that they use. It may include all other folders.
 *
 * A command gets its own name as argv[0], and returns the exit status.
 */
#ifndef ACCEL_TOOL_COMMANDS_H
#define ACCEL_TOOL_COMMANDS_H

#include <argp.h>

/* In an option's argument, words separated by bars are the values that it may have. */
struct command {
    const char *name, *does;
    const struct argp *argp;
    int (*run)(int argc, char **argv);
};

extern const struct command commands[];
enum { COMMANDS = 10 };

/* Returns the program and its arguments, the first of which argp gives now. argp reads no further. */
static inline char **command_program(struct argp_state *state)
{
    char **program = state->argv + state->next - 1;
    state->next = state->argc;
    return program;
}

/* Measures this machine's libraries and its GPU, and writes the calibration. */
extern const struct argp calibrate_argp;
int calibrate_command(int argc, char **argv);

/* Runs a program with and without libaccel, and says whether it writes the same numbers. Returns 0 if all differences are allowed
 * and every expectation is met, 1 if not, 2 if that cannot be told: wrong options, a program that fails without libaccel,
 * unreadable files. If a signal that ends programs came, ends this process by it. */
extern const struct argp diff_argp;
int diff_command(int argc, char **argv);

/* Writes a kernelspec of Jupyter that starts Python with libaccel, or removes one. Returns 1 if that cannot be done, 2 for wrong options. */
extern const struct argp jupyter_argp;
int jupyter_command(int argc, char **argv);

/* Runs a program on the CPU, and says what a GPU that is not there would have run. Returns the program's exit status; 128 and the
 * number of the signal that ended it; 127 if it cannot be started; 126 if its counts have no place; 2 for wrong options. */
extern const struct argp estimate_argp;
int estimate_command(int argc, char **argv);

/* Runs the calls of a log again, on the CPU and on the GPU. Returns 0 if all results are right, 1 if one is not, or no call could be run
 * again, 2 for wrong options. */
extern const struct argp replay_argp;
int replay_command(int argc, char **argv);

/* Makes this process a program with libaccel preloaded; with a summary, stands by one, and ends by the signal that has ended it.
 * Returns the program's exit status, or if that fails: 127 if there is no such program, 126 if it
 * cannot be run, 2 for wrong options. */
extern const struct argp run_argp;
int run_command(int argc, char **argv);

/* Says what logs mean. Returns 0; 1 if a log cannot be read, or none has a call; 2 for wrong options, or if stdout cannot be written. */
extern const struct argp explain_argp;
int explain_command(int argc, char **argv);

/* Makes a page from logs. Returns 0; 1 if a log cannot be read, or none has a call; 2 for wrong options, or if the page cannot be
 * written. */
extern const struct argp report_argp;
int report_command(int argc, char **argv);

/* Prints the settings in force and their origins. Returns 1 if one is wrong, 2 for wrong options or a full disk. */
extern const struct argp config_argp;
int config_command(int argc, char **argv);

/* Says what keeps calls from the GPU, and what mends it. Returns 0 if calls can go to a GPU, 1 if not, 2 for wrong options or a full
 * disk. */
extern const struct argp doctor_argp;
int doctor_command(int argc, char **argv);

#endif
