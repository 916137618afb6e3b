#define _GNU_SOURCE
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/error_text.h"
#include "base/text/text.h"
#include "base/thread/clock.h"

static bool refuse(char *why, const char *what, int error)
{
    struct accel_text text;
    text_start(&text, why, GPU_FAILURE_BYTES);
    text_string(&text, what);
    if (error) {
        text_string(&text, ": ");
        text_string(&text, error_text(error));
    }
    text_end(&text);
    return false;
}

/* Gets the welcome and the memory's descriptor; -1: there is none. */
static bool receive(int socket, struct wire_welcome *welcome, int *memory)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {welcome, sizeof *welcome};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *memory = -1;
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *right = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (right && right->cmsg_level == SOL_SOCKET && right->cmsg_type == SCM_RIGHTS &&
        right->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(memory, CMSG_DATA(right), sizeof *memory);
    if (got == (ssize_t)sizeof *welcome)
        return true;
    errno = got >= 0 ? EPROTO : errno;
    return false;
}

static bool map_memory(struct lane *lane, int memory, int64_t area_bytes)
{
    struct stat file;
    const size_t bytes = (size_t)(WIRE_AREA + area_bytes);
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(memory, F_GET_SEALS);
    if (area_bytes < 0 || fstat(memory, &file) != 0 || file.st_size != (off_t)bytes || seals < 0 ||
        (seals & wanted) != wanted)
        return false;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, bytes, MADV_DONTFORK);
    lane->shared = at;
    lane->area = (char *)at + WIRE_AREA;
    lane->area_bytes = area_bytes;
    return true;
}

/* Makes a socket that is connected, or says why not. Returns -1 then. */
static int connect_to(const char *path, char *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int there = file_move_high(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (there < 0)
        return refuse(why, "no socket can be made", errno), -1;
    wire_limit(there);
    if (strlen(path) >= sizeof address.sun_path) {
        refuse(why, "the socket's path is too long", 0);
    } else {
        strcpy(address.sun_path, path);
        if (connect(there, (const struct sockaddr *)&address, sizeof address) != 0)
            refuse(why, "no server answers", errno);
        else if (!wire_trusts(there))
            refuse(why, "the server is another user's", 0);
        else
            return there;
    }
    close(there);
    return -1;
}

static bool greet(struct lane *lane, struct wire_welcome *welcome, char *why)
{
    struct wire_hello hello;
    int memory;
    wire_hello(&hello);
    if (send(lane->socket, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello ||
        !receive(lane->socket, welcome, &memory))
        return refuse(why, "the server does not answer", errno);
    welcome->why[sizeof welcome->why - 1] = '\0';
    if (!wire_is_other(&welcome->server) && welcome->starting) {
        if (memory >= 0)
            close(memory);
        return refuse(why, "the server's GPU is starting", 0);
    }
    welcome->starting = false;
    const bool other = wire_is_other(&welcome->server), refused = welcome->why[0] != '\0';
    lane->chunked_from = welcome->chunked_from;
    const bool mapped =
        !other && !refused && memory >= 0 && map_memory(lane, memory, welcome->area_bytes);
    if (memory >= 0)
        close(memory);
    return other     ? refuse(why, "the server is of another version", 0)
           : refused ? refuse(why, welcome->why, 0)
           : mapped  ? true
                     : refuse(why, "the server's memory cannot be used", 0);
}

bool lane_ask(struct wire_state *state, const char *path, char why[GPU_FAILURE_BYTES])
{
    struct wire_hello hello;
    const int there = connect_to(path, why);
    if (there < 0)
        return false;
    wire_hello(&hello);
    hello.magic = WIRE_ASKS;
    const ssize_t sent = send(there, &hello, sizeof hello, MSG_NOSIGNAL);
    const ssize_t got = sent < 0 ? -1 : recv(there, state, sizeof *state, 0);
    const int error = errno;
    close(there);
    if (got < 0)
        return refuse(why, "the server does not answer", error);
    if (got != (ssize_t)sizeof *state || wire_is_other(&state->server) || state->clients < 0 ||
        state->clients > WIRE_CLIENTS_MOST || state->devices < 0 ||
        state->devices > WIRE_DEVICES_MOST)
        return refuse(why, "the server is of another version", 0);
    state->gpu[sizeof state->gpu - 1] = '\0';
    return true;
}

bool lane_open(struct lane *lane, const char *path, struct wire_welcome *welcome,
               char why[GPU_FAILURE_BYTES])
{
    *lane = (struct lane){.socket = connect_to(path, why)};
    if (lane->socket < 0)
        return false;
    file_identify(lane->socket, &lane->file);
    if (greet(lane, welcome, why))
        return true;
    lane_close(lane);
    return false;
}

bool lane_answers(const char *path, char why[GPU_FAILURE_BYTES])
{
    struct wire_welcome welcome;
    struct lane lane;
    const bool answers = lane_open(&lane, path, &welcome, why);
    if (answers)
        lane_close(&lane);
    return answers;
}

/* A program may close descriptors of ours, and use their numbers again. A sandbox that forbids to
 * ask takes nothing away. */
static bool has_socket(const struct lane *lane)
{
    struct file_identity now;
    if (!file_identify(lane->socket, &now))
        return errno != EBADF;
    return file_is(lane->socket, &lane->file);
}

void lane_forget(struct lane *lane)
{
    if (lane->socket >= 0 && has_socket(lane))
        close(lane->socket);
    *lane = (struct lane){.socket = -1};
}

void lane_close(struct lane *lane)
{
    if (lane->shared)
        munmap(lane->shared, (size_t)(WIRE_AREA + lane->area_bytes));
    lane_forget(lane);
}

bool lane_is_closed(const struct lane *lane)
{
    return !has_socket(lane) || wire_is_closed(lane->socket);
}
