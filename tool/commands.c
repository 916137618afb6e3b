#include "commands.h"

const struct command commands[] = {
    {"calibrate", "measure this machine's libraries and GPU, so that libaccel decides by them",
     &calibrate_argp, calibrate_command},
    {"config", "print the settings in force, and where each comes from", &config_argp,
     config_command},
    {"diff", "run a program with and without libaccel, and compare what it writes", &diff_argp,
     diff_command},
    {"doctor", "say what keeps calls from the GPU, and what mends it", &doctor_argp,
     doctor_command},
    {"estimate", "run a program on the CPU, and say which calls a GPU would have run",
     &estimate_argp, estimate_command},
    {"explain", "say where the time of a log's calls went, where it was lost, and what to change",
     &explain_argp, explain_command},
    {"jupyter", "give Jupyter a kernel that runs Python with libaccel", &jupyter_argp,
     jupyter_command},
    {"replay", "run the calls of a log again, on the CPU and on the GPU, and compare", &replay_argp,
     replay_command},
    {"report", "make a page of charts and tables from logs", &report_argp, report_command},
    {"run", "run a program with libaccel", &run_argp, run_command},
};
_Static_assert(sizeof commands / sizeof *commands == COMMANDS, "COMMANDS counts the table");
