#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "gpu/device/gpu.h"
#include "tool/serve/account.h"
#include "tool/serve/detach.h"
#include "tool/serve/listener.h"
#include "tool/serve/served_clients.h"
#include "tool/serve/served_copies.h"
#include "tool/serve/served_devices.h"
#include "tool/serve/served_users.h"
#include "tool/util/complain.h"
#include "tool/util/stream.h"

struct serve_options {
    const char *socket, *account;
    int idle_s, room_mib, chunked_kib, memory_mib, wait_s;
    struct listener_access access;
    struct served_rules rules;
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

/* Access for a group is for its members to read and to write, if no mode is given. */
enum { MODE_OF_GROUP = 0660 };

static bool read_mode(void *member, const char *text, const struct option_row *row)
{
    struct listener_access *const access = member;
    char *end;
    const unsigned long mode = strtoul(text, &end, 8);
    if (*text < '0' || *text > '7' || *end || mode > 0777)
        return complain(false, "accel serve: --%s=%s: a mode from 0 to 777 is expected\n",
                        row->name, text);
    access->mode = (int32_t)mode;
    access->others = true;
    return true;
}

static bool read_group(void *member, const char *text, const struct option_row *row)
{
    struct listener_access *const access = member;
    access->gid = account_group(text);
    if (access->gid < 0)
        return complain(false, "accel serve: --%s=%s: there is no such group\n", row->name, text);
    access->others = true;
    return true;
}

enum { WEIGHT_MOST = 1000 };

/* Adds one user's: USER=N. */
static bool add_weight(struct served_rules *rules, char *word)
{
    char *const equals = strchr(word, '='), *end = NULL;
    if (!equals || rules->weights == SERVED_WEIGHTS)
        return false;
    *equals = '\0';
    const int64_t uid = account_user(word);
    const long weight = strtol(equals + 1, &end, 10);
    *equals = '=';
    if (uid < 0 || *end || end == equals + 1 || weight < 1 || weight > WEIGHT_MOST)
        return false;
    rules->weight[rules->weights++] = (struct served_weight){(uint32_t)uid, (int)weight};
    return true;
}

static bool read_weights(void *member, const char *text, const struct option_row *row)
{
    char words[4096], *rest = words, *word;
    if (strlen(text) >= sizeof words)
        return complain(false, "accel serve: --%s: it is too long\n", row->name);
    strcpy(words, text);
    while ((word = strsep(&rest, ",")))
        if (!add_weight(member, word))
            return complain(false,
                            "accel serve: --%s=%s: %s is not a user and a number from 1 to %d\n",
                            row->name, text, *word ? word : "nothing", WEIGHT_MOST);
    return true;
}

static bool read_account(void *member, const char *text, const struct option_row *row)
{
    *(const char **)member = text;
    return (geteuid() == 0 && account_user(text) >= 0) ||
           complain(false, "accel serve: --%s=%s: %s\n", row->name, text,
                    geteuid() == 0 ? "there is no such user" : "only root can give it away");
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
    {"group", 'g', "GROUP", "its members may connect, too: the socket's group",
     SETS(serve_options, read_group, access)},
    {"mode", 'm', "MODE",
     "of the socket: who may connect, such as 666 (default: 700, with --group 660)",
     SETS(serve_options, read_mode, access)},
    {"account", 'a', "USER", "of root: listen as root, and be this user's from then on",
     SETS(serve_options, read_account, account)},
    {"memory", 'M', "MIB",
     "the calls of a user have so much of the device's memory at a time (default: twice --room)",
     SETS(serve_options, read_least, memory_mib), .least = 1},
    {"weight", 'w', "USER=N,...",
     "shares of the device's time, where users wait for it (default: 1 for each)",
     SETS(serve_options, read_weights, rules)},
    {"wait", 'W', "SECONDS",
     "a call that has not begun after so long is left to its program's CPU (default: 60)",
     SETS(serve_options, read_least, wait_s)},
    {"detach", 'd', NULL,
     "go into the background, and return when it answers; do nothing if one is there",
     SETS(serve_options, option_flag, detach)},
    {0}};

struct serving {
    struct listener listener;
    int signals;
    int parent;           /* of --detach, that waits for the server; -1: none */
    atomic_bool has_none; /* no device that could be started */
    pthread_t starter;
    bool has_starter;
};

/* ---- The devices ---- */

static void say_ready(const struct serving *serving)
{
    const char *path = serving->listener.path;
    const int count = served_devices_count();
    printf("accel serve: ");
    if (count > 1)
        printf("%d x ", count);
    printf("%s, at %s\n", gpu_info(served_devices_first())->name,
           path[0] ? path : "a socket without a path");
    stream_flush(stdout);
    if (serving->parent >= 0)
        detach_done(serving->parent);
}

static void *run_start_thread(void *argument)
{
    struct serving *const serving = argument;
    if (served_devices_start())
        say_ready(serving);
    else
        atomic_store(&serving->has_none, true);
    return NULL;
}

/* Starts them while clients are told so: they can connect already. */
static bool start_devices_beside(struct serving *serving)
{
    const int error = pthread_create(&serving->starter, NULL, run_start_thread, serving);
    if (error)
        return complain(false, "accel serve: no thread can start the GPU: %s\n", strerror(error));
    serving->has_starter = true;
    return true;
}

/* Nobody may leave a process that is in the middle of CUDA's start. */
static void await_start(struct serving *serving)
{
    if (serving->has_starter)
        pthread_join(serving->starter, NULL);
    serving->has_starter = false;
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

static int64_t memory_most(const struct serve_options *options)
{
    return options->memory_mib > 0 ? (int64_t)options->memory_mib << 20 : 2 * area_bytes(options);
}

static void accept_clients(struct serving *serving, int64_t bytes)
{
    int client;
    while ((client = accept4(serving->listener.socket, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        served_client_begin(client, bytes);
}

static bool has_failed(struct serving *serving)
{
    return served_devices_have_failed() || atomic_load(&serving->has_none);
}

static void serve_until_end(struct serving *serving, const struct serve_options *options)
{
    const int64_t bytes = area_bytes(options);
    double busy_ms = accel_now_ms();
    struct pollfd event[] = {{.fd = serving->listener.socket, .events = POLLIN},
                             {.fd = serving->signals, .events = POLLIN}};
    do {
        poll(event, 2, BEAT_MS);
        accept_clients(serving, bytes);
        served_clients_beat();
        if (served_clients() > 0 || served_devices_count() == 0)
            busy_ms = accel_now_ms();
    } while (!(event[1].revents & POLLIN) && !has_failed(serving) &&
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

/* Of a socket at which root listens, programs know that it is root's (wire_trusts()): so that comes
 * first, where the server is to have another account. Programs that have connected to systemd's
 * socket are there already. */
static bool start_serving(struct serving *serving, struct serve_options *options)
{
    options->rules.everyone = listener_is_for_others(&serving->listener);
    options->rules.memory_most = memory_most(options);
    options->rules.wait_most_ms = 1e3 * options->wait_s;
    served_users_prepare(&options->rules);
    if (!options->account && !serving->listener.given) {
        const bool started = served_devices_start() && listener_open(&serving->listener);
        if (started)
            say_ready(serving);
        return started;
    }
    return listener_open(&serving->listener) &&
           (!options->account || account_become(options->account)) && start_devices_beside(serving);
}

static int serve(const struct command *command, int argc, char **argv)
{
    struct serve_options options = {.idle_s = 600,
                                    .wait_s = 60,
                                    .chunked_kib = 64,
                                    .access = {.mode = MODE_OF_GROUP, .gid = -1}};
    static struct serving serving = {.signals = -1, .parent = -1};
    struct listener *const listener = &serving.listener;
    options_read(command, argc, argv, &options);
    serving.parent = options.detach ? detach_begin() : -1;
    if (options.detach && serving.parent < 0)
        return 1;
    const enum listener_claim claim =
        options.detach ? detach_claim(listener, options.socket, &options.access)
                       : listener_claim(listener, options.socket, &options.access);
    served_copies_set_least((int64_t)options.chunked_kib << 10);
    if (claim == LISTENER_TAKEN)
        return options.detach
                   ? 0
                   : complain(1, "accel serve: another server is at %s\n", listener->path);
    if (claim == LISTENER_FAILED || !watch_signals(&serving) || !start_serving(&serving, &options))
        return 1;
    serve_until_end(&serving, &options);
    await_start(&serving);
    listener_close(listener);
    served_clients_end();
    /* Another one can start with a device that works again. */
    if (served_devices_have_failed())
        return complain(1, "accel serve: the GPU has failed: %s\n",
                        gpu_failure(served_devices_first()));
    served_devices_stop();
    return atomic_load(&serving.has_none);
}

const struct command serve_command = {
    .name = "serve",
    .does = "own the GPUs for many processes",
    .options = rows,
    .doc =
        "Starts CUDA once, on all GPUs of a kind, and runs the calls of all processes of this user "
        "that libaccel is loaded into; of others, too, where --group or --mode says so.\v"
        "Programs find it by themselves (ACCEL_SERVER=auto): they load nothing of CUDA's, need not "
        "wait for its start, and their forked children use the GPU, too. It ends by SIGTERM, and "
        "when nobody has needed it for a while. systemd may hand over the socket (LISTEN_FDS). The "
        "exit status is 1 if it cannot serve, 2 for wrong options.",
    .run = serve};
