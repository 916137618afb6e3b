/*
 * Where a call comes in: the slow path of every entry, and the library's start and end.
 */
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
};

static void forward(void *context)
{
    const struct passage *p = context;
    accel_adapter_forward(p->original->function, p->routine, p->abi, p->frame);
}

static void call_original(void *context, const struct accel_call *call)
{
    const struct passage *p = context;
    accel_adapter_call(p->original->function, p->abi, p->original->width, call);
}

/* The frame of the call that this thread is deciding or running. A call that comes in deeper on the
 * stack is part of it (a CBLAS that calls the Fortran name) and is not decided again. A frame that
 * the program left by longjmp is recognised by its place: it is not above the new one. */
static _Thread_local const struct accel_frame *current __attribute__((tls_model("initial-exec")));

static void *enter(uint32_t entry, struct accel_frame *frame)
{
    const struct accel_original *original = accel_slots_original(entry, frame->ret);
    uint32_t exported = accel_slots_exported(entry);
    const struct accel_routine *routine = accel_name_routine(exported);
    enum accel_abi abi = accel_name_mangling(exported)->abi;
    if (original->wide && accel_adapter_is_wide(routine, abi, frame))
        original = original->wide;
    if (current && frame < current)
        return original->function;
    accel_slots_follow(dispatch_attention());
    if (!dispatch_is_on() || !original->width)
        return original->function;

    struct passage passage = {original, routine, abi, frame};
    struct accel_call call;
    accel_adapter_read(&call, routine, abi, original->width, frame);
    const struct dispatch_caller caller = {accel_names[exported].symbol, forward, call_original,
                                           &passage};
    current = frame;
    bool done = dispatch_call(&call, &caller);
    current = NULL;
    accel_slots_follow(dispatch_attention());
    return done ? NULL : original->function;
}

void *accel_enter(uint32_t entry, struct accel_frame *frame)
{
    int saved = errno; /* BLAS leaves it alone */
    void *target = enter(entry, frame);
    errno = saved;
    return target;
}

static void fork_prepare(void)
{
    accel_slots_fork_prepare();
    dispatch_fork_prepare();
}

static void fork_parent(void)
{
    dispatch_fork_parent();
    accel_slots_fork_done();
}

static void fork_child(void)
{
    dispatch_fork_child();
    accel_slots_fork_done();
}

/* Reads variables, and no more: most processes that inherit the preload never call BLAS. */
__attribute__((constructor)) static void start(void)
{
    accel_resolve_init();
    dispatch_start();
    accel_resolve_set_extra(dispatch_original_libraries());
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

__attribute__((destructor)) static void end(void)
{
    dispatch_end();
}
