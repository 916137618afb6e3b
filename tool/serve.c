#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "gpu/device/gpu.h"
#include "tool/serve/detach.h"
#include "tool/serve/listener.h"
#include "tool/serve/served_clients.h"
#include "tool/serve/served_copies.h"
#include "tool/util/complain.h"
#include "tool/util/device_config.h"
#include "tool/util/stream.h"

struct serve_options {
    const char *socket;
    int idle_s, room_mib, chunked_kib;
    bool detach;
};

static bool read_least(void *member, const char *text, const struct option_row *row)
{
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < row->least || number > INT_MAX)
        return complain(false, "accel serve: --%s=%s: a number of %s is expected, %d at least\n",
                        row->name, text, row->argument, row->least);
    *(int *)member = (int)number;
    return true;
}

static bool read_socket(void *member, const char *text, const struct option_row *row)
{
    if (!*text || strlen(text) >= REMOTE_PATH_BYTES)
        return complain(false, "accel serve: --%s=%s: a path of 1 to %d characters is expected\n",
                        row->name, text, REMOTE_PATH_BYTES - 1);
    *(const char **)member = text;
    return true;
}

static const struct option_row rows[] = {
    {"socket", 's', "PATH",
     "where clients find it (default: $XDG_RUNTIME_DIR/accel/serve, as root /run/accel/serve)",
     SETS(serve_options, read_socket, socket)},
    {"idle", 'i', "SECONDS",
     "end when there has been no client for so long; 0: never (default: 600)",
     SETS(serve_options, read_least, idle_s)},
    {"room", 'r', "MIB",
     "the operands of a call have so much room (default: a quarter of the memory); a process with "
     "larger ones starts CUDA itself",
     SETS(serve_options, read_least, room_mib), .least = 1},
    {"chunked", 'c', "KIB",
     "matrices of so much and more are copied in chunks under way, others before the call (64)",
     SETS(serve_options, read_least, chunked_kib)},
    {"detach", 'd', NULL,
     "go into the background, and return when it answers; do nothing if one is there",
     SETS(serve_options, option_flag, detach)},
    {0}};

struct serving {
    struct listener listener;
    int signals;
    struct gpu_device *device;
};

/* ---- The device ---- */

static bool start_device(struct serving *serving)
{
    struct accel_settings settings;
    char why[GPU_FAILURE_BYTES];
    settings_read_whole(&settings, NULL);
    complaints_say();
    const struct gpu_config config = device_config(&settings);
    serving->device = gpu_start(&config, why);
    return serving->device || complain(false, "accel serve: no GPU: %s\n", why);
}

/* ---- The service ---- */

#define BEAT_MS 200

/* Only what is used of it takes memory. */
static int64_t area_bytes(const struct serve_options *options)
{
    if (options->room_mib > 0)
        return (int64_t)options->room_mib << 20;
    const int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return memory / 4 / (1 << 20) * (1 << 20);
}

static void accept_clients(const struct serving *serving, int64_t bytes)
{
    int client;
    while ((client = accept4(serving->listener.socket, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        served_client_begin(client, serving->device, bytes);
}

static void serve_until_end(const struct serving *serving, const struct serve_options *options)
{
    const int64_t bytes = area_bytes(options);
    double busy_ms = accel_now_ms();
    struct pollfd event[] = {{.fd = serving->listener.socket, .events = POLLIN},
                             {.fd = serving->signals, .events = POLLIN}};
    do {
        poll(event, 2, BEAT_MS);
        accept_clients(serving, bytes);
        served_clients_beat();
        if (served_clients() > 0)
            busy_ms = accel_now_ms();
    } while (!(event[1].revents & POLLIN) && !gpu_has_failure(serving->device) &&
             (options->idle_s == 0 || accel_now_ms() - busy_ms < 1e3 * options->idle_s));
}

/* The driver's threads, and those of clients, leave signals to this one. */
static bool watch_signals(struct serving *serving)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    serving->signals = signalfd(-1, &ends, SFD_CLOEXEC);
    return serving->signals >= 0 ||
           complain(false, "accel serve: signals cannot be watched: %s\n", strerror(errno));
}

static int serve(const struct command *command, int argc, char **argv)
{
    struct serve_options options = {.idle_s = 600, .chunked_kib = 64};
    struct serving serving = {.signals = -1};
    struct listener *const listener = &serving.listener;
    options_read(command, argc, argv, &options);
    const int parent = options.detach ? detach_begin() : -1;
    if (options.detach && parent < 0)
        return 1;
    const enum listener_claim claim = options.detach ? detach_claim(listener, options.socket)
                                                     : listener_claim(listener, options.socket);
    served_copies_set_least((int64_t)options.chunked_kib << 10);
    if (claim == LISTENER_TAKEN)
        return options.detach
                   ? 0
                   : complain(1, "accel serve: another server is at %s\n", listener->path);
    if (claim == LISTENER_FAILED || !watch_signals(&serving) || !start_device(&serving) ||
        !listener_open(listener))
        return 1;
    printf("accel serve: %s, at %s\n", gpu_info(serving.device)->name,
           listener->path[0] ? listener->path : "a socket without a path");
    stream_flush(stdout);
    if (options.detach)
        detach_done(parent);
    serve_until_end(&serving, &options);
    listener_close(listener);
    served_clients_end();
    /* Another one can start with a device that works again. */
    if (gpu_has_failure(serving.device))
        return complain(1, "accel serve: the GPU has failed: %s\n", gpu_failure(serving.device));
    gpu_stop(serving.device);
    return 0;
}

const struct command serve_command = {
    .name = "serve",
    .does = "own the GPU for many processes",
    .options = rows,
    .doc =
        "Starts CUDA once, and runs the calls of all processes of this user that libaccel is "
        "loaded into.\v"
        "Programs find it by themselves (ACCEL_SERVER=auto): they load nothing of CUDA's, need not "
        "wait for its start, and their forked children use the GPU, too. It ends by SIGTERM, and "
        "when nobody has needed it for a while. systemd may hand over the socket (LISTEN_FDS). The "
        "exit status is 1 if it cannot serve, 2 for wrong options.",
    .run = serve};
