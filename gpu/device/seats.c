#define _GNU_SOURCE
#include "seats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file/shared_file.h"
#include "base/memory/hash.h"

/* One file for all devices. It stays empty: byte 0 is locked by who chooses, and a device's bytes
 * begin at a place that follows from its name. The locks are those of an open file (F_OFD_SETLK),
 * which fork(2) and close(2) of another descriptor leave alone. */
#define FILE_NAME "seats"

static off_t first_byte(const char *name)
{
    const uint64_t device = hash_text(0, name) & (((uint64_t)1 << 48) - 1);
    return (off_t)(device * SEATS_MOST + SEATS_MOST);
}

static struct flock lock_of(short type, off_t byte, off_t count)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = count, .l_pid = 0};
}

static bool set_lock(int fd, short type, off_t byte)
{
    struct flock lock = lock_of(type, byte, 1);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Counts the locked bytes from one byte to the other: the kernel tells any one of them. -1: it does
 * not say. */
static int count_locks(int fd, off_t from, off_t to)
{
    if (from >= to)
        return 0;
    struct flock lock = lock_of(F_WRLCK, from, to - from);
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return -1;
    if (lock.l_type == F_UNLCK)
        return 0;
    const off_t at = lock.l_start > from ? lock.l_start : from;
    const int before = count_locks(fd, from, at), behind = count_locks(fd, at + 1, to);
    return before < 0 || behind < 0 ? -1 : before + 1 + behind;
}

static bool is_held(int error)
{
    return error == EAGAIN || error == EACCES;
}

static bool lock_free_byte(int fd, const char *name)
{
    const off_t first = first_byte(name);
    for (off_t i = 0; i < SEATS_MOST; i++) {
        if (set_lock(fd, F_WRLCK, first + i))
            return true;
        if (!is_held(errno))
            return false;
    }
    return false;
}

/* The lock lives as long as the open file, which the mapping keeps open. A program may close all
 * descriptors; children of a fork do not get the mapping. Nobody reads or writes it. */
static bool keep_open(struct seat *seat, int fd)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return false;
    if (madvise(page, bytes, MADV_DONTFORK) != 0) {
        munmap(page, bytes);
        return false;
    }
    seat->page = page;
    return true;
}

/* Without it two that choose at once may take the same device: not worth a longer wait. */
static void await_turn(int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < SEATS_WAIT_MS && !set_lock(fd, F_WRLCK, 0) && is_held(errno); ms++)
        nanosleep(&pause, NULL);
}

static bool count_others(int fd, struct seat_device *devices, int count)
{
    for (int i = 0; i < count; i++) {
        const off_t first = first_byte(devices[i].name);
        devices[i].others = count_locks(fd, first, first + SEATS_MOST);
        if (devices[i].others < 0)
            return false;
    }
    return true;
}

static void sort_by_others(struct seat_device *devices, int count)
{
    for (int i = 1; i < count; i++) {
        const struct seat_device moved = devices[i];
        int to = i;
        for (; to > 0 && devices[to - 1].others > moved.others; to--)
            devices[to] = devices[to - 1];
        devices[to] = moved;
    }
}

bool seat_choose(struct seat *seat, struct seat_device *devices, int count)
{
    const int saved = errno, fd = count > 0 ? shared_file_open(FILE_NAME) : -1;
    bool taken = false;
    if (fd >= 0) {
        await_turn(fd);
        if (count_others(fd, devices, count)) {
            sort_by_others(devices, count);
            taken = lock_free_byte(fd, devices[0].name) && keep_open(seat, fd);
        }
        set_lock(fd, F_UNLCK, 0);
        close(fd);
    }
    errno = saved;
    return taken;
}

bool seat_take(struct seat *seat, const char *name)
{
    const int saved = errno, fd = shared_file_open(FILE_NAME);
    const bool taken = fd >= 0 && lock_free_byte(fd, name) && keep_open(seat, fd);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return taken;
}

void seat_leave(struct seat *seat)
{
    if (seat->page)
        munmap(seat->page, (size_t)sysconf(_SC_PAGESIZE));
    seat->page = NULL;
}
