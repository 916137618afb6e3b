#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <pwd.h>
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

static void print_user(uint32_t uid)
{
    const struct passwd *user = getpwuid(uid);
    if (user)
        printf("%-8s ", user->pw_name);
    else
        printf("%-8u ", uid);
}

static void print_row(const struct wire_served *served, double up_ms)
{
    printf("%8.0f %8lld %8lld %9.1f %9.1f %6.1f %6.1f ", up_ms * 1e-3, (long long)served->calls,
           (long long)served->refused, (double)served->up_bytes * 1e-6,
           (double)served->down_bytes * 1e-6, up_ms > 0 ? 100 * served->busy_ms / up_ms : 0,
           up_ms > 0 ? 100 * served->waited_ms / up_ms : 0);
}

/* Of a server with one, the lines above have all that there is to say. */
static void print_devices(const struct wire_state *state)
{
    for (int i = 0; i < state->devices && state->devices > 1; i++) {
        const struct wire_device *device = &state->device[i];
        printf(
            "gpu%d%s: %d calls run, of %d processes; device memory: %.1f MB, with %.1f MB of kept "
            "inputs\n",
            device->index, device->has_failed ? " has failed" : "", device->running,
            device->processes, (double)device->device_bytes * 1e-6,
            (double)device->cached_bytes * 1e-6);
    }
}

static void print_table(const struct wire_state *state)
{
    static const char marks[] = {[WIRE_NOTHING] = ' ', [WIRE_WAITS] = '.', [WIRE_RUNS] = '*'};
    char count[20] = "";
    if (state->devices > 1)
        snprintf(count, sizeof count, "%d x ", state->devices);
    printf("accel serve, pid %d: %s%s, %d lanes, %d users\n", state->pid, count, state->gpu,
           state->clients, state->users);
    printf("%d calls run, %d wait (%d small ones); device memory: %.1f MB, with %.1f MB of kept "
           "inputs\n",
           state->running, state->waiting_small + state->waiting_large, state->waiting_small,
           (double)state->device_bytes * 1e-6, (double)state->cached_bytes * 1e-6);
    print_devices(state);
    printf("%8s %-8s %8s %8s %8s %9s %9s %6s %6s  %s\n", "pid", "user", "seconds", "calls",
           "refused", "up MB", "down MB", "busy %", "wait %", "program");
    printf("%8s %-8s ", "all", "");
    print_row(&state->all, state->up_ms);
    putchar('\n');
    for (int i = 0; i < state->clients; i++) {
        const struct wire_client *client = &state->client[i];
        printf("%8d ", client->pid);
        print_user(client->uid);
        print_row(&client->served, client->up_ms);
        putchar(client->doing >= 0 && client->doing < (int)sizeof marks ? marks[client->doing]
                                                                        : '?');
        print_program(client->pid);
    }
}

/* ---- Prometheus ---- */

static void print_metric(const char *name, const char *type, const char *help, double value)
{
    printf("# HELP accel_serve_%s %s\n# TYPE accel_serve_%s %s\naccel_serve_%s %.17g\n", name, help,
           name, type, name, value);
}

static double running_of(const struct wire_device *device)
{
    return device->running;
}

static double processes_of(const struct wire_device *device)
{
    return device->processes;
}

static double bytes_of(const struct wire_device *device)
{
    return (double)device->device_bytes;
}

static double kept_bytes_of(const struct wire_device *device)
{
    return (double)device->cached_bytes;
}

static double is_up(const struct wire_device *device)
{
    return !device->has_failed;
}

/* A number of each device, by a label. */
static void print_device_metrics(const struct wire_state *state)
{
    static const struct {
        const char *name, *help;
        double (*of)(const struct wire_device *device);
    } gauges[] = {
        {"gpu_up", "Whether the GPU takes calls; 0: it has failed.", is_up},
        {"gpu_running", "Calls on the GPU.", running_of},
        {"gpu_processes", "Processes that have their calls there.", processes_of},
        {"gpu_device_bytes", "Device memory that calls have there, or have left idle.", bytes_of},
        {"gpu_kept_bytes", "Inputs kept in it for later calls.", kept_bytes_of}};
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++) {
        printf("# HELP accel_serve_%s %s\n# TYPE accel_serve_%s gauge\n", gauges[i].name,
               gauges[i].help, gauges[i].name);
        for (int k = 0; k < state->devices; k++)
            printf("accel_serve_%s{gpu=\"gpu%d\"} %.17g\n", gauges[i].name, state->device[k].index,
                   gauges[i].of(&state->device[k]));
    }
}

static void print_metrics(const struct wire_state *state)
{
    print_metric("users", "gauge", "Users with connections.", state->users);
    print_metric("lanes", "gauge", "Connections of clients.", state->clients);
    print_metric("running", "gauge", "Calls on the GPU.", state->running);
    print_metric("waiting_small", "gauge", "Calls of less than 1 MiB that wait.",
                 state->waiting_small);
    print_metric("waiting_large", "gauge", "Other calls that wait.", state->waiting_large);
    print_metric("device_bytes", "gauge", "Device memory that calls have, or have left idle.",
                 (double)state->device_bytes);
    print_metric("kept_bytes", "gauge", "Inputs kept in it for later calls.",
                 (double)state->cached_bytes);
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
    print_metric("wait_seconds_total", "counter", "Time in it that calls have waited.",
                 state->all.waited_ms * 1e-3);
    print_device_metrics(state);
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
    .doc = "Prints a row for each lane of `accel serve`, once a second on a terminal.\v"
           "A client has a lane for each of its threads that calls. A star: a call runs; a dot: it "
           "waits. busy % and wait %: the part of the time in which calls are under way, and that "
           "they "
           "have waited in it. Root and the server's account see all clients, others their own. "
           "Calls that are refused are computed by the client's own library.",
    .run = top};
