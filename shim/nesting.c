#define _GNU_SOURCE
#include "nesting.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* LAPACKE, a driver, a factorisation, a product: four. A call that is deeper than all these counts
 * as the deepest. */
enum { LEVELS = 8 };

struct level {
    const struct accel_frame *frame;
    uintptr_t ret; /* what the frame holds while the call is under way */
};

static _Thread_local struct level levels[LEVELS] __attribute__((tls_model("initial-exec")));
static _Thread_local volatile int open_levels __attribute__((tls_model("initial-exec")));

/* Whether this thread runs a signal handler on an alternate stack, anywhere in memory, and `frame`
 * lies outside that stack. */
static bool interrupts(const struct accel_frame *frame)
{
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_ONSTACK))
        return false;
    return (uintptr_t)frame - (uintptr_t)stack.ss_sp >= stack.ss_size;
}

bool nesting_is_below(const struct accel_frame *frame, const struct accel_frame *other)
{
    return frame < other || interrupts(other);
}

/* A stack that the program has left may be gone. The kernel reads the signal set before it refuses
 * the first argument. */
static bool is_readable(const void *address)
{
    return syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) == 0 || errno != EFAULT;
}

/* Whether the frame is still there. Of one that the program has left, other functions reuse the
 * memory. */
__attribute__((no_sanitize("address"))) static bool is_kept(const struct level *level)
{
    return is_readable(&level->frame->ret) && level->frame->ret == level->ret;
}

int nesting_depth(const struct accel_frame *frame)
{
    while (open_levels > 0) {
        const struct level *last = &levels[open_levels - 1];
        if (nesting_is_below(frame, last->frame) && is_kept(last))
            break;
        open_levels--;
    }
    return open_levels;
}

void nesting_open(const struct accel_frame *frame, int depth)
{
    if (depth >= LEVELS)
        return;
    levels[depth] = (struct level){frame, frame->ret};
    open_levels = depth + 1;
}

void nesting_close(int depth)
{
    open_levels = depth;
}
