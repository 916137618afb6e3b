#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/remote/lane.h"
#include "gpu/remote/remote.h"
#include "tool/util/complain.h"
#include "tool/util/stream.h"

struct top_options {
    const char *socket;
    bool once, metrics;
};

static const struct option_row rows[] = {
    {"socket", 's', "PATH", "the server's (default: where clients look for one)",
     SETS(top_options, option_text, socket)},
    {"once", '1', NULL, "print it once", SETS(top_options, option_flag, once)},
    {"metrics", 'm', NULL, "print it once, in the text format of Prometheus",
     SETS(top_options, option_flag, metrics)},
    {0}};

/* ---- A table ---- */

static void print_program(int pid)
{
    char path[40], name[20] = "?";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    for (const char *c = name; *c; c++)
        putchar(*c >= ' ' && *c <= '~' ? *c : '?');
    putchar('\n');
}

static void print_row(const struct wire_served *served, double up_ms)
{
    printf("%8.0f %8lld %8lld %9.1f %9.1f %6.1f ", up_ms * 1e-3, (long long)served->calls,
           (long long)served->refused, (double)served->up_bytes * 1e-6,
           (double)served->down_bytes * 1e-6, up_ms > 0 ? 100 * served->busy_ms / up_ms : 0);
}

static void print_table(const struct wire_state *state)
{
    printf("accel serve, pid %d: %s, %d lanes\n", state->pid, state->gpu, state->clients);
    printf("%8s %8s %8s %8s %9s %9s %6s  %s\n", "pid", "seconds", "calls", "refused", "up MB",
           "down MB", "busy %", "program");
    printf("%8s ", "all");
    print_row(&state->all, state->up_ms);
    putchar('\n');
    for (int i = 0; i < state->clients; i++) {
        const struct wire_client *client = &state->client[i];
        printf("%8d ", client->pid);
        print_row(&client->served, client->up_ms);
        putchar(client->computes ? '*' : ' ');
        print_program(client->pid);
    }
}

/* ---- Prometheus ---- */

static void print_metric(const char *name, const char *type, const char *help, double value)
{
    printf("# HELP accel_serve_%s %s\n# TYPE accel_serve_%s %s\naccel_serve_%s %.17g\n", name, help,
           name, type, name, value);
}

static void print_metrics(const struct wire_state *state)
{
    int computes = 0;
    for (int i = 0; i < state->clients; i++)
        computes += state->client[i].computes;
    print_metric("lanes", "gauge", "Connections of clients.", state->clients);
    print_metric("computing", "gauge", "Calls under way or waiting.", computes);
    print_metric("up_seconds", "gauge", "Since the server has come.", state->up_ms * 1e-3);
    print_metric("calls_total", "counter", "Calls done on the GPU.", (double)state->all.calls);
    print_metric("refused_total", "counter", "Calls left to their clients.",
                 (double)state->all.refused);
    print_metric("upload_bytes_total", "counter", "Bytes copied to the GPU.",
                 (double)state->all.up_bytes);
    print_metric("download_bytes_total", "counter", "Bytes copied from the GPU.",
                 (double)state->all.down_bytes);
    print_metric("call_seconds_total", "counter", "Time of calls, one beside the other.",
                 state->all.busy_ms * 1e-3);
}

/* ---- The command ---- */

/* Asks the server at `given`, or the one that programs take. */
static bool ask(struct wire_state *state, const char *given)
{
    char path[REMOTE_PATH_BYTES], why[GPU_FAILURE_BYTES];
    if (!remote_find(path, given) && !given)
        return complain(false, "accel top: no server is there (accel serve)\n");
    return lane_ask(state, given ? given : path, why) ||
           complain(false, "accel top: %s: %s\n", given ? given : path, why);
}

static int top(const struct command *command, int argc, char **argv)
{
    static struct wire_state state;
    struct top_options options = {.socket = NULL};
    options_read(command, argc, argv, &options);
    const bool again = !options.once && !options.metrics && isatty(STDOUT_FILENO);
    const struct timespec second = {.tv_sec = 1};
    do {
        if (!ask(&state, options.socket))
            return 1;
        if (again)
            printf("\033[H\033[2J");
        (options.metrics ? print_metrics : print_table)(&state);
        const int error = stream_flush(stdout);
        if (error)
            return complain(2, "accel top: the table cannot be written: %s\n", strerror(error));
    } while (again && nanosleep(&second, NULL) == 0);
    return 0;
}

const struct command top_command = {
    .name = "top",
    .does = "show what a server's clients do",
    .options = rows,
    .doc =
        "Prints a row for each lane of `accel serve`, once a second on a terminal.\v"
        "A client has a lane for each of its threads that calls. A star: a call is under way, or "
        "waits. Calls that are refused are computed by the client's own library.",
    .run = top};
