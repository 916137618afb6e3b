#define _GNU_SOURCE
#include "forks.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_KNOWN = 0, IS_TOLD = -1 };

static _Atomic pid_t process;

void forks_begin(void)
{
    atomic_store(&process, getpid());
}

/* Else this is a child that forks_child() does not know of: of vfork(2), _Fork(3), clone(2). */
static bool is_noted(pid_t known)
{
    return known == NOT_KNOWN || known == getpid();
}

/* The process whose memory a vfork's child has waits for it, and so is there. */
bool forks_memory_is_shared(void)
{
    const pid_t known = atomic_load_explicit(&process, memory_order_relaxed);
    if (is_noted(known))
        return false;
    const int saved = errno;
    const long other = syscall(SYS_kcmp, getpid(), known, KCMP_VM, 0, 0);
    const bool shared = other == 0 || (other < 0 && errno != ESRCH);
    errno = saved;
    return shared;
}

/* The linker's names for the array. Weak: a program without entries has no array. */
extern const struct forks_part __start_accel_forks[] __attribute__((weak, visibility("hidden")));
extern const struct forks_part __stop_accel_forks[] __attribute__((weak, visibility("hidden")));

bool forks_is_same(const void *a, const void *b, size_t size)
{
    const unsigned char *const ones = a, *const others = b;
    for (size_t i = 0; i < size; i++)
        if (ones[i] != others[i])
            return false;
    return true;
}

/* Locks are made by an ordinary mutex's initializer, here and in what FORKS_CHILD() names, as
 * pthread_mutex_init() without attributes would make them: each page of the C library's that a
 * child needs costs it a page fault. So does each page that it writes to: what is right already is
 * left alone, here and there. */
void forks_child(void)
{
    /* Not static: that would be one page more. */
    const pthread_mutex_t made = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (const struct forks_part *part = __start_accel_forks; part < __stop_accel_forks; part++)
        if (part->lock && !forks_is_same(part->lock, &made, sizeof made))
            *part->lock = made;
    for (const struct forks_part *part = __start_accel_forks; part < __stop_accel_forks; part++)
        if (part->child)
            part->child();
    forks_begin();
}

void forks_late_child(void)
{
    pid_t known = atomic_load(&process);
    if (known != IS_TOLD && !is_noted(known) &&
        atomic_compare_exchange_strong(&process, &known, IS_TOLD))
        forks_child();
    while (atomic_load(&process) == IS_TOLD)
        sched_yield();
}
