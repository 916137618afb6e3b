#define _GNU_SOURCE
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/host/version.h"
#include "base/text/text.h"

void wire_hello(struct wire_hello *hello)
{
    struct accel_text text;
    memset(hello, 0, sizeof *hello);
    hello->magic = WIRE_MAGIC;
    hello->layout = sizeof(struct wire_lane);
    text_start(&text, hello->build, sizeof hello->build);
    text_string(&text, accel_version());
    text_string(&text, " ");
    text_string(&text, accel_commit());
    text_end(&text);
}

bool wire_is_other(const struct wire_hello *hello)
{
    struct wire_hello own;
    wire_hello(&own);
    return memcmp(&own, hello, sizeof own) != 0;
}

bool wire_is_of_kind(const struct gpu_info *one, const struct gpu_info *other)
{
    const int64_t more = one->memory_bytes - other->memory_bytes;
    return strcmp(one->name, other->name) == 0 &&
           (more < 0 ? -more : more) <= one->memory_bytes / 100;
}

#define WAIT_SECONDS 2

void wire_limit(int socket)
{
    const struct timeval most = {.tv_sec = WAIT_SECONDS};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/* By this number, in a user namespace, the kernel means all users that have none there
 * (user_namespaces(7)). */
#define UNMAPPED 65534

/* Whether each user has a number of its own here. */
static bool maps_all_users(void)
{
    char text[64], *at = text; /* first number here, first outside, how many */
    const int file = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? -1 : file_read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
    const bool identical = strtoull(at, &at, 10) == 0 && strtoull(at, &at, 10) == 0;
    return identical && strtoull(at, &at, 10) == UINT32_MAX;
}

bool wire_peer(int socket, uint32_t *uid, int *pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid == UNMAPPED && !maps_all_users()))
        return false;
    *uid = peer.uid;
    *pid = peer.pid;
    return true;
}

bool wire_trusts(int socket)
{
    uint32_t uid;
    int pid;
    return wire_peer(socket, &uid, &pid) && (uid == 0 || uid == geteuid());
}

bool wire_is_closed(int socket)
{
    struct pollfd end = {.fd = socket, .events = POLLIN};
    return poll(&end, 1, 0) > 0; /* a sandbox may forbid it */
}

bool wire_may_ask(const struct accel_call *call, const struct accel_span *x)
{
    const struct accel_traits *traits = &call->op->traits;
    return call->batch == 1 &&
           (traits->group == ACCEL_LEVEL_3 || (traits->group == ACCEL_LAPACK && !traits->moves) ||
            (traits->group == ACCEL_LEVEL_2 && x->access == ACCEL_READ));
}

int64_t wire_bytes(const struct accel_span *x)
{
    return x->rows > 0 && x->cols > 0 ? accel_bytes(x) : 0;
}

int64_t wire_matrices(const struct accel_call *call, const struct accel_span *x)
{
    return x->array || x->stride != 0 ? call->batch : 1;
}

bool wire_is_large(const struct accel_call *call)
{
    double bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++)
        bytes += (double)wire_bytes(&call->span[i]) * (double)wire_matrices(call, &call->span[i]);
    return bytes >= (double)WIRE_LARGE_BYTES;
}

/* No server lets calls wait for longer, if nothing is said; nor has a device more places. */
#define LOAD_WAIT_MOST_MS 60000
enum { LOAD_BESIDE_MOST = 7 };

/* Calls that run at the same time take at worst as long as one after the other. */
struct gpu_load wire_load_of(struct wire_load *told, bool large)
{
    const double wait_ms =
        1e-3 * atomic_load_explicit(&told->call[large].wait_us, memory_order_relaxed);
    const uint32_t beside = atomic_load_explicit(&told->call[large].beside, memory_order_relaxed);
    const double slower = 1e-2 * atomic_load_explicit(&told->slower_percent, memory_order_relaxed);
    const double most = 1 + (beside < LOAD_BESIDE_MOST ? beside : LOAD_BESIDE_MOST);
    return (struct gpu_load){.wait_ms = wait_ms < LOAD_WAIT_MOST_MS ? wait_ms : LOAD_WAIT_MOST_MS,
                             .slower = slower < 1      ? 1
                                       : slower < most ? slower
                                                       : most};
}
