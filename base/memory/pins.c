#define _GNU_SOURCE
#include "pins.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/file.h"
#include "mappings.h"

static _Atomic int64_t pinned_at_first;

/* Returns the pinned memory (mm->pinned_vm) in kB, -1 if the kernel does not say. The line is among
 * the first thousand bytes or two. */
static int64_t pinned_kb(void)
{
    char text[4096];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : file_read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (length < 0)
        return -1;
    text[length] = 0;
    const char *line = strstr(text, "\nVmPin:");
    return line ? strtoll(line + strlen("\nVmPin:"), NULL, 10) : -1;
}

void pins_begin(void)
{
    atomic_store(&pinned_at_first, pinned_kb());
}

/* Files whose owners may hold pages, by how their paths begin; of devices all but those that hold
 * none for certain. NULL: these. The first one that fits counts. A driver may hold pages without a
 * count in VmPin: that of HPE's Slingshot (/dev/cxi) does. AMD's GPUs (kfd, dri) ask for pages anew
 * when they are protected, as kernels do (mmu_notifier); what NVIDIA's have pinned, the driver
 * tells of operands. */
static const struct {
    const char *path, *what;
} holders[] = {{"anon_inode:[io_uring]", "the program uses io_uring"},
               {"anon_inode:[userfaultfd]", "the program has a userfaultfd of its own"},
               {"/dev/infiniband/", "an RDMA device is open"},
               {"/dev/vfio/", "a VFIO device is open"},
               {"/dev/xpmem", "XPMEM is open"},
               {"/dev/knem", "KNEM is open"},
               {"/dev/null", NULL},
               {"/dev/zero", NULL},
               {"/dev/full", NULL},
               {"/dev/random", NULL},
               {"/dev/urandom", NULL},
               {"/dev/hwrng", NULL},
               {"/dev/tty", NULL},
               {"/dev/pts/", NULL},
               {"/dev/ptmx", NULL},
               {"/dev/console", NULL},
               {"/dev/kmsg", NULL},
               {"/dev/rtc", NULL},
               {"/dev/cpu_dma_latency", NULL},
               {"/dev/hvc", NULL},
               {"/dev/shm", NULL},
               {"/dev/mqueue", NULL},
               {"/dev/hugepages", NULL},
               {"/dev/cpu/", NULL},
               {"/dev/loop", NULL},
               {"/dev/snd/", NULL},
               {"/dev/fuse", NULL},
               {"/dev/input/", NULL},
               {"/dev/nvidia-fs", "GPUDirect Storage is in use"},
               {"/dev/nvidia", NULL},
               {"/dev/nvmap", NULL}, /* these are of Tegra's driver */
               {"/dev/nvhost", NULL},
               {"/dev/nvgpu", NULL},
               {"/dev/dxg", NULL},
               {"/dev/dri/", NULL},
               {"/dev/kfd", NULL},
               {"/dev/", "a device that may hold memory is open"}};

const char *pins_holder(const char *path)
{
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++)
        if (strncmp(path, holders[i].path, strlen(holders[i].path)) == 0)
            return holders[i].what;
    return NULL;
}

static const char *holder_at(int folder, const char *number)
{
    char path[64] = "";
    if (readlinkat(folder, number, path, sizeof path - 1) < 0)
        return NULL; /* it has been closed */
    return pins_holder(path);
}

/* Looks at some entries of the folder. Returns their bytes, 0 behind the last one, less on an
 * error. */
static ssize_t look_at_some(int folder, int own, const char **found)
{
    _Alignas(struct dirent) char entries[4096];
    const ssize_t bytes = syscall(SYS_getdents64, folder, entries, sizeof entries);
    for (ssize_t at = 0; !*found && at < bytes;) {
        const struct dirent *entry = (const void *)(entries + at);
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != own)
            *found = holder_at(folder, entry->d_name);
        at += entry->d_reclen;
    }
    return bytes;
}

/* Without opendir(3): its memory may lie behind a matrix, in the last page of that, whose watch
 * would see malloc(3) write there. */
static const char *open_holder(int own)
{
    const char *found = NULL;
    const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t bytes = folder < 0 ? -1 : 1;
    while (!found && bytes > 0)
        bytes = look_at_some(folder, own, &found);
    if (folder >= 0)
        close(folder);
    return bytes < 0 ? "/proc/self/fd cannot be read" : found;
}

/* The ring of io_setup(2). */
static bool is_not_aio(void *found, const struct mapping *mapping)
{
    *(bool *)found = strncmp(mapping->name, "/[aio]", strlen("/[aio]")) == 0;
    return !*(bool *)found;
}

const char *pins_found(int own)
{
    const int64_t pinned = pinned_kb();
    bool aio = false;
    if (pinned < 0)
        return "/proc/self/status does not tell VmPin";
    if (pinned > atomic_load(&pinned_at_first))
        return "memory is pinned (VmPin)";
    if (!mappings_read(is_not_aio, &aio))
        return "/proc/self/maps cannot be read";
    return aio ? "the program uses asynchronous input" : open_holder(own);
}
