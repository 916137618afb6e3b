/*
 * Where a call comes in: the slow path of every entry, and the library's start and end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "adapter.h"
#include "dispatch/dispatch.h"
#include "slots.h"

/* One call on its way: what dispatch's callbacks need. */
struct passage {
    const struct accel_original *original;
    const struct accel_routine *routine;
    enum accel_abi abi;
    const struct accel_frame *frame;
    int cancel_state; /* the program's */
};

static void forward(void *context)
{
    const struct passage *p = context;
    pthread_setcancelstate(p->cancel_state, NULL);
    accel_adapter_forward(p->original->function, p->routine, p->abi, p->frame);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static void call_original(void *context, const struct accel_call *call)
{
    const struct passage *p = context;
    pthread_setcancelstate(p->cancel_state, NULL);
    accel_adapter_call(p->original->function, p->abi, p->original->width, call);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* The frame of the call that this thread is deciding or running. A call that comes in deeper on the
 * stack is part of it (a CBLAS that calls the Fortran name) and is not decided again. A frame that the
 * program left by longjmp is recognised by its place: it is not above the new one. */
static _Thread_local const struct accel_frame *current __attribute__((tls_model("initial-exec")));

static void *enter(uint32_t entry, struct accel_frame *frame, int cancel_state)
{
    const struct accel_original *original = accel_slots_original(entry, frame->ret);
    uint32_t exported = accel_slots_exported(entry);
    const struct accel_routine *routine = accel_name_routine(exported);
    enum accel_abi abi = accel_name_mangling(exported)->abi;
    if (original->wide && accel_adapter_is_wide(routine, abi, frame))
        original = original->wide;
    if (current && frame < current)
        return original->function;
    accel_slots_follow();
    if (!dispatch_is_on())
        return original->function;
    if (!original->width) {
        dispatch_not_blas(accel_names[exported].symbol);
        return original->function;
    }

    struct passage passage = {original, routine, abi, frame, cancel_state};
    struct accel_call call;
    accel_adapter_read(&call, routine, abi, original->width, frame);
    const struct dispatch_caller caller = {.symbol = accel_names[exported].symbol,
                                           .loads = accel_slots_count_loads(),
                                           .forward = forward,
                                           .original = call_original,
                                           .context = &passage};
    current = frame;
    bool done = dispatch_call(&call, &caller);
    current = NULL;
    accel_slots_follow();
    return done ? NULL : original->function;
}

void *accel_enter(uint32_t entry, struct accel_frame *frame)
{
    int saved = errno; /* BLAS leaves it alone */
    int cancel_state;
    /* BLAS is no cancellation point, but a log's write() is: a thread that ended there would keep our locks. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    void *target = enter(entry, frame, cancel_state);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved;
    return target;
}

static void fork_child(void)
{
    accel_slots_fork_child();
    dispatch_fork_child();
}

/* Reads variables, and no more: most processes that inherit the preload never call BLAS. Other libraries'
 * constructors may have called BLAS before. */
__attribute__((constructor)) static void start(void)
{
    dispatch_start();
    pthread_atfork(NULL, NULL, fork_child);
}

__attribute__((destructor)) static void end(void)
{
    dispatch_end();
}
