#define _GNU_SOURCE
#include "remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/shared_file.h"
#include "base/thread/clock.h"
#include "base/thread/forks.h"
#include "base/text/text.h"
#include "gpu/device/device.h"
#include "client_call.h"
#include "client_inputs.h"
#include "gpu/pack/matrix.h"

/* ---- Where the server is ---- */

static const char *only; /* the path that the user has given, or NULL */
static bool is_hidden;   /* the user wants no GPU: CUDA's variable names none */

/* Puts two texts together; an empty path: they do not fit. */
static void put_path(char path[REMOTE_PATH_BYTES], const char *folder, const char *name)
{
    struct accel_text text;
    text_start(&text, path, REMOTE_PATH_BYTES);
    text_string(&text, folder);
    text_string(&text, name);
    if (!text_end(&text))
        path[0] = '\0';
}

void remote_path(char path[REMOTE_PATH_BYTES], bool user)
{
    const char *folder = user ? shared_file_runtime() : "/run";
    put_path(path, folder, folder[0] ? "/accel/serve" : "");
}

bool remote_find(char path[REMOTE_PATH_BYTES], const char *given)
{
    const int before = errno;
    bool found = false;
    for (int i = 0; i < (given ? 1 : 2) && !found; i++) {
        if (given)
            put_path(path, given, "");
        else
            remote_path(path, i == 0);
        found = path[0] && access(path, F_OK) == 0;
    }
    errno = before;
    return found;
}

static bool find_socket(char path[REMOTE_PATH_BYTES])
{
    return !is_hidden && remote_find(path, only);
}

/* Whether one was there as the program started. A sandbox that it has entered since may kill it for
 * a look. */
static bool was_there;

const char *remote_hidden_by(void)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    const char *devices = getenv(name);
    return devices && (!devices[0] || devices[0] == '-') ? name : NULL;
}

void remote_prepare(const char *path)
{
    char there[REMOTE_PATH_BYTES];
    only = path;
    is_hidden = remote_hidden_by() != NULL;
    was_there = find_socket(there);
}

#define LOOK_AGAIN_MS 5000

static _Atomic int64_t looked_ms = INT64_MIN / 2;

bool remote_is_there(void)
{
    static atomic_bool is_there;
    if (!was_there)
        return false;
    const int64_t now_ms = (int64_t)accel_now_ms();
    if (now_ms - atomic_load(&looked_ms) < LOOK_AGAIN_MS)
        return atomic_load(&is_there);
    char path[REMOTE_PATH_BYTES];
    atomic_store(&looked_ms, now_ms);
    atomic_store(&is_there, find_socket(path));
    return atomic_load(&is_there);
}

/* ---- The lanes of this process ---- */

enum { LANES = 64 };

struct lane_place {
    bool open, busy;
    struct lane lane;
};

static struct remote_device {
    struct gpu_device common;
    _Atomic int64_t area_bytes, chunked_from;
    struct lane_place lane[LANES];
} remote;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lanes' places */
FORKS_LOCK(lock);

/* Whether there has been a lane: a child that has none touches no page for that. */
static atomic_bool has_lanes;

/* The lanes are the parent's. */
static void forget_lanes(void)
{
    if (!atomic_load(&has_lanes))
        return;
    for (int i = 0; i < LANES; i++) {
        struct lane_place *const place = &remote.lane[i];
        if (place->open)
            lane_forget(&place->lane);
        if (place->open || place->busy)
            *place = (struct lane_place){.open = false};
    }
}
FORKS_CHILD(forget_lanes);

/* Takes a place for a call: one whose lane is open and idle, or one without a lane, anew: that
 * rather; NULL: calls have all. */
static struct lane_place *take_place(bool anew)
{
    struct lane_place *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LANES; i++) {
        struct lane_place *const place = &remote.lane[i];
        if (!place->busy && (!found || (place->open != anew && found->open == anew)))
            found = place;
    }
    if (found)
        found->busy = true;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Nobody reads a lane that is not open, and nobody takes its place until it is closed. */
static void give_place(struct lane_place *place, bool open)
{
    pthread_mutex_lock(&lock);
    const bool closes = place->open && !open;
    place->open = open;
    place->busy = closes;
    pthread_mutex_unlock(&lock);
    if (!closes)
        return;
    lane_close(&place->lane);
    pthread_mutex_lock(&lock);
    place->busy = false;
    pthread_mutex_unlock(&lock);
}

/* Takes an open lane from number i on that no call uses, for the time in which it is looked at.
 * Returns NULL if there is none. */
static struct lane_place *take_idle(int i)
{
    struct lane_place *found = NULL;
    pthread_mutex_lock(&lock);
    for (; i < LANES && !found; i++)
        if (remote.lane[i].open && !remote.lane[i].busy)
            found = &remote.lane[i];
    if (found)
        found->busy = true;
    pthread_mutex_unlock(&lock);
    return found;
}

/* A lane has ended: the server has, perhaps. Closes those of it that no call uses: what it has
 * said there of its load, and of what it keeps, is not so any more. */
static void close_ended(void)
{
    struct lane_place *place;
    for (int i = 0; (place = take_idle(i)); i = (int)(place - remote.lane) + 1)
        give_place(place, !lane_is_closed(&place->lane));
}

/* Takes over what a server says of its device, if nothing is known of one. Returns whether it is
 * the one that is known, or one like it, as a server may have several, and leave one out: the cost
 * model, and decisions, are of that. */
static bool know_device(const struct gpu_info *info)
{
    struct gpu_info *const known = &remote.common.info;
    if (known->remote)
        return strcmp(known->id, info->id) == 0 || wire_is_of_kind(known, info);
    *known = *info;
    known->name[sizeof known->name - 1] = known->id[sizeof known->id - 1] = '\0';
    known->passed_over[0] = known->port[0] = '\0';
    known->chosen = "server";
    known->host_page_tables = false; /* of the server's process */
    known->remote = true;
    return true;
}

/* Whether calls of other threads have lanes. */
static bool others_have_lanes(void)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LANES && !found; i++)
        found = remote.lane[i].open;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Opens the place's lane, if it is not open. path: of the server that was asked; *starting: its
 * device starts. */
static bool open_place(struct lane_place *place, char path[REMOTE_PATH_BYTES],
                       char why[GPU_FAILURE_BYTES], bool *starting)
{
    struct wire_welcome welcome = {.starting = false};
    why[0] = '\0';
    const bool opened =
        !place->open && find_socket(path) && lane_open(&place->lane, path, &welcome, why);
    *starting = welcome.starting;
    if (!opened)
        return place->open;
    welcome.info.id[sizeof welcome.info.id - 1] = '\0';
    welcome.info.name[sizeof welcome.info.name - 1] = '\0';
    pthread_mutex_lock(&lock);
    place->open = know_device(&welcome.info);
    pthread_mutex_unlock(&lock);
    if (!place->open) {
        lane_close(&place->lane);
        strcpy(why, "the server has another GPU than the one before");
        return false;
    }
    atomic_store(&has_lanes, true);
    atomic_store(&remote.chunked_from, place->lane.chunked_from);
    atomic_store(&remote.area_bytes, place->lane.area_bytes);
    return true;
}

/* ---- Calls ---- */

bool remote_takes(const struct accel_call *call)
{
    const int64_t room = atomic_load(&remote.area_bytes); /* 0: not known yet */
    return !call->op->foreign && accel_is_on_host(call) &&
           client_call_fits(call, room > 0 ? room : INT64_MAX, atomic_load(&remote.chunked_from));
}

/* While no server answers, calls do not look for one again and again. */
#define QUIET_MS 1000
static _Atomic double quiet_until_ms;

/* Whether the log has a line of the server that is not there any more. */
static atomic_bool is_lost;

/* Says why the call has no server: once, until one has computed again. why: empty: it has not been
 * looked for. */
static void lose_server(struct gpu_host *host, const char *why)
{
    char reason[GPU_FAILURE_BYTES];
    struct accel_text text;
    text_start(&text, reason, sizeof reason);
    text_string(&text, why);
    text_end(&text);
    strcpy(host->failure, reason[0] && !atomic_exchange(&is_lost, true) ? reason : "");
    host->blame = GPU_BLAME_SERVER;
}

/* A server that has ended is looked for once more: another one may have taken its place, or this
 * one has ended the lane alone. */
static enum gpu_status run(struct gpu_device *device, const struct accel_call *call,
                           struct gpu_host *host)
{
    enum gpu_status status = GPU_ERROR;
    const char *why = "";
    if (!remote_takes(call) || host->placed || host->shared || host->peer_tiles)
        return GPU_UNSUPPORTED;
    for (int tries = 0; tries < 2 && accel_now_ms() >= atomic_load(&quiet_until_ms); tries++) {
        struct lane_place *const place = take_place(tries > 0);
        if (!place)
            return host->hurries ? GPU_BUSY : GPU_NO_MEMORY;
        char path[REMOTE_PATH_BYTES];
        bool starting;
        const bool opened = open_place(place, path, host->failure, &starting);
        const bool answers = opened && client_call_run(&place->lane, device, call, host, &status);
        if (!why[0])
            why = !opened                 ? host->failure
                  : place->lane.is_silent ? "the server has given no sign of life for 10 s"
                                          : "the server has ended";
        give_place(place, answers);
        if (answers) {
            atomic_store(&is_lost, false);
            return status;
        }
        close_ended();
        if (status != GPU_ERROR) /* the original has done the rest */
            break;
        if (!opened && others_have_lanes()) /* one cannot be made here any more: in a sandbox */
            return host->hurries ? GPU_BUSY : GPU_NO_MEMORY;
        if (!opened)
            break;
    }
    if (accel_now_ms() >= atomic_load(&quiet_until_ms))
        atomic_store(&quiet_until_ms, accel_now_ms() + QUIET_MS);
    atomic_store(&looked_ms, INT64_MIN / 2);
    lose_server(host, why);
    return status;
}

/* ---- How busy it is ---- */

/* Reads what the server has written to a lane: all of them say the same. */
static struct gpu_load load(struct gpu_device *device, const struct accel_call *call)
{
    const bool large = wire_is_large(call);
    struct gpu_load found = {.slower = 1};
    (void)device;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < LANES && !remote.lane[i].open)
        i++;
    if (i < LANES)
        found = wire_load_of(&remote.lane[i].lane.shared->load, large);
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- The device ---- */

static void locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch)
{
    (void)device;
    gpu_program_locate(spans, count, batch);
}

/* Operands are in this process's own memory. */
static bool fetch(struct gpu_device *device, void *host, const struct accel_span *x)
{
    const struct host_rectangle from = client_call_rectangle(x, 0);
    (void)device;
    if (x->place != ACCEL_HOST)
        return false;
    pack_matrix_pack(host, &from, from.rows);
    return true;
}

static bool store(struct gpu_device *device, const struct accel_span *x, const void *host)
{
    struct host_rectangle to = client_call_rectangle(x, 0);
    (void)device;
    if (x->place != ACCEL_HOST)
        return false;
    to.uplo = x->triangle;
    pack_matrix_unpack(&to, host, to.rows);
    return true;
}

static bool no_copies(struct gpu_device *device, struct gpu_copy_rates *rates)
{
    (void)device, (void)rates;
    return false;
}

static bool no_paces(struct gpu_device *device, const struct accel_call *product, double limit_ms,
                     struct block_paces *paces)
{
    (void)device, (void)product, (void)limit_ms, (void)paces;
    return false;
}

/* As far as the server has said. */
static bool has_cached(struct gpu_device *device, const struct gpu_key *key, uint64_t user)
{
    bool found = false;
    (void)device, (void)user;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LANES && !found; i++)
        found =
            remote.lane[i].open && client_inputs_are_kept(&remote.lane[i].lane.shared->kept, key);
    pthread_mutex_unlock(&lock);
    return found;
}

static void no_unpin(struct gpu_device *device, struct packer *packer)
{
    (void)device, (void)packer;
}

/* Nothing of this process is idle there. */
static void trim(struct gpu_device *device)
{
    (void)device;
}

static void stop(struct gpu_device *device)
{
    (void)device;
    for (int i = 0; i < LANES; i++)
        if (remote.lane[i].open)
            lane_close(&remote.lane[i].lane);
    memset(&remote, 0, sizeof remote);
}

static const struct gpu_device_functions functions = {.run = run,
                                                      .load = load,
                                                      .has_cached = has_cached,
                                                      .locate = locate,
                                                      .fetch = fetch,
                                                      .store = store,
                                                      .measure_copies = no_copies,
                                                      .measure_paces = no_paces,
                                                      .trim = trim,
                                                      .unpin = no_unpin,
                                                      .stop = stop};

struct gpu_device *remote_start(char path[REMOTE_PATH_BYTES], char why[GPU_FAILURE_BYTES],
                                bool *starting)
{
    struct lane_place *const place = take_place(false);
    why[0] = path[0] = '\0';
    *starting = false;
    if (!place)
        return NULL;
    const bool opened = open_place(place, path, why, starting);
    if (opened)
        remote.common.functions = &functions;
    give_place(place, opened);
    return opened ? &remote.common : NULL;
}
