#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/util/complain.h"

/* ---- One that was handed over ---- */

enum { FIRST_GIVEN = 3 }; /* SD_LISTEN_FDS_START */

/* Whether the variables are about this process, and not about one that it comes from. */
static bool is_handed_over(void)
{
    const char *process = getenv("LISTEN_PID");
    char own[16];
    snprintf(own, sizeof own, "%d", (int)getpid());
    return process && getenv("LISTEN_FDS") && strcmp(process, own) == 0;
}

static int socket_option(int option)
{
    int value;
    socklen_t size = sizeof value;
    return getsockopt(FIRST_GIVEN, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* Returns what is wrong with the file that was handed over; NULL: nothing. */
static const char *fault_of_given(void)
{
    struct stat file;
    if (fstat(FIRST_GIVEN, &file) != 0)
        return strerror(errno);
    return !S_ISSOCK(file.st_mode)                    ? "it is no socket"
           : socket_option(SO_DOMAIN) != AF_UNIX      ? "it is no Unix socket"
           : socket_option(SO_TYPE) != SOCK_SEQPACKET ? "it is not of SOCK_SEQPACKET "
                                                        "(ListenSequentialPacket=)"
           : socket_option(SO_ACCEPTCONN) != 1        ? "it does not listen (Accept=no)"
           : fcntl(FIRST_GIVEN, F_SETFD, FD_CLOEXEC) != 0 ||
                   fcntl(FIRST_GIVEN, F_SETFL, O_NONBLOCK) != 0
               ? strerror(errno)
               : NULL;
}

static void read_given_path(struct listener *listener)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    const bool named = getsockname(FIRST_GIVEN, (struct sockaddr *)&address, &size) == 0 &&
                       size > offsetof(struct sockaddr_un, sun_path);
    snprintf(listener->path, sizeof listener->path, "%.*s",
             named ? (int)(size - offsetof(struct sockaddr_un, sun_path)) : 0, address.sun_path);
}

static enum listener_claim take_given(struct listener *listener, const char *wanted)
{
    const bool one = strcmp(getenv("LISTEN_FDS"), "1") == 0;
    const char *fault = NULL;
    if (wanted)
        fault = "--socket is not for a socket that systemd hands over (LISTEN_FDS)";
    else if (!one)
        fault = "systemd hands over other than one socket (LISTEN_FDS)";
    if (fault) {
        complain(0, "accel serve: %s\n", fault);
        return LISTENER_FAILED;
    }
    fault = fault_of_given();
    if (fault) {
        complain(0, "accel serve: the socket that systemd hands over: %s\n", fault);
        return LISTENER_FAILED;
    }
    read_given_path(listener);
    listener->socket = FIRST_GIVEN;
    listener->given = true;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return LISTENER_CLAIMED;
}

/* ---- One of its own ---- */

/* Returns what is wrong with a folder whose sockets other users are to use; NULL: nothing. */
static const char *fault_of_folder(const char *folder)
{
    struct stat file;
    return stat(folder, &file) != 0                            ? strerror(errno)
           : file.st_uid != 0 && file.st_uid != geteuid()      ? "its folder is another user's"
           : (file.st_mode & 022) && !(file.st_mode & S_ISVTX) ? "others can write to its folder"
           : !(file.st_mode & S_IXOTH) ? "others cannot reach it: its folder needs mode 755"
                                       : NULL;
}

/* Makes the folder of the path; unless others may connect, only its user can use what is in it. */
static bool make_folder(const char *path, const struct listener_access *access)
{
    char folder[REMOTE_PATH_BYTES];
    strcpy(folder, path);
    char *const slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = '\0';
    const mode_t before = umask(access->others ? 022 : 077);
    const bool there = mkdir(folder, 0777) == 0 || errno == EEXIST;
    umask(before);
    if (!there)
        return complain(false, "accel serve: %s: its folder cannot be made: %s\n", path,
                        strerror(errno));
    const char *fault = access->others ? fault_of_folder(folder) : NULL;
    return !fault || complain(false, "accel serve: %s: %s\n", path, fault);
}

/* Writes a path that is right also when the process changes its folder. */
static bool set_path(char path[REMOTE_PATH_BYTES], const char *wanted)
{
    char here[REMOTE_PATH_BYTES] = "";
    if (wanted[0] != '/' && !getcwd(here, sizeof here))
        return false;
    return snprintf(path, REMOTE_PATH_BYTES, "%s%s%s", here, *here ? "/" : "", wanted) <
           REMOTE_PATH_BYTES;
}

static bool choose_path(struct listener *listener, const char *wanted)
{
    if (!wanted) {
        remote_path(listener->path, geteuid() != 0);
        if (!listener->path[0])
            return complain(false, "accel serve: XDG_RUNTIME_DIR is not set; --socket=PATH says "
                                   "where clients find it\n");
    } else if (!set_path(listener->path, wanted)) {
        return complain(false,
                        "accel serve: %s: from the root on, a socket's path has %d "
                        "characters at most\n",
                        wanted, REMOTE_PATH_BYTES - 1);
    }
    return make_folder(listener->path, &listener->access);
}

/* Whether somebody listens there who has no lock, as systemd does. */
static bool is_listened_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int asking = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, path);
    const bool connected =
        asking >= 0 && (connect(asking, (const struct sockaddr *)&address, sizeof address) == 0 ||
                        errno == EAGAIN);
    if (asking >= 0)
        close(asking);
    return connected;
}

/* One server at a time has the lock, so a socket that is there, and at which nobody listens, is
 * nobody's. */
static enum listener_claim hold_path(struct listener *listener)
{
    char lock[REMOTE_PATH_BYTES + 8];
    snprintf(lock, sizeof lock, "%s.lock", listener->path);
    listener->held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool locked = listener->held >= 0 && flock(listener->held, LOCK_EX | LOCK_NB) == 0;
    bool taken = !locked && listener->held >= 0 && errno == EWOULDBLOCK;
    if (locked && !is_listened_at(listener->path))
        return LISTENER_CLAIMED;
    taken = taken || locked;
    if (!taken)
        complain(0, "accel serve: %s: %s\n", lock, strerror(errno));
    if (listener->held >= 0)
        close(listener->held);
    listener->held = -1;
    return taken ? LISTENER_TAKEN : LISTENER_FAILED;
}

enum listener_claim listener_claim(struct listener *listener, const char *wanted,
                                   const struct listener_access *access)
{
    *listener = (struct listener){.socket = -1, .held = -1, .access = *access};
    if (is_handed_over())
        return take_given(listener, wanted);
    return choose_path(listener, wanted) ? hold_path(listener) : LISTENER_FAILED;
}

/* Whether what is at the path may make way: nothing, or the socket of a server that has ended. */
static bool clear_path(const char *path)
{
    struct stat file;
    if (lstat(path, &file) != 0)
        return true;
    if (!S_ISSOCK(file.st_mode))
        return complain(false, "accel serve: %s: it is there, and no socket\n", path);
    unlink(path);
    return true;
}

/* A socket without a file has no mode: whoever is on the machine could connect. */
bool listener_is_for_others(const struct listener *listener)
{
    return listener->given ? listener->path[0] == '/' : listener->access.others;
}

/* Lets others connect, as far as the user says so; nobody can before it listens. */
static bool open_to_others(const struct listener *listener)
{
    const struct listener_access *access = &listener->access;
    return !access->others || (chown(listener->path, (uid_t)-1,
                                     access->gid < 0 ? (gid_t)-1 : (gid_t)access->gid) == 0 &&
                               chmod(listener->path, (mode_t)access->mode) == 0);
}

bool listener_open(struct listener *listener)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (listener->given)
        return true;
    if (!clear_path(listener->path))
        return false;
    strcpy(address.sun_path, listener->path);
    const mode_t before = umask(077);
    listener->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool bound =
        listener->socket >= 0 &&
        bind(listener->socket, (const struct sockaddr *)&address, sizeof address) == 0;
    umask(before);
    return (bound && open_to_others(listener) && listen(listener->socket, SOMAXCONN) == 0) ||
           complain(false, "accel serve: %s: %s\n", listener->path, strerror(errno));
}

void listener_close(struct listener *listener)
{
    if (!listener->given)
        unlink(listener->path);
    close(listener->socket);
}
