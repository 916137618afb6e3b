/*
 * The slow path of every entry, and the library's start and end.
 *
 * Of shim/, which stands between the program and dispatch/: arch/ has the entries, elf/ finds the
 * originals. It includes dispatch/, ops/, base/ and the headers of gpu/.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/memory/hash.h"
#include "base/thread/forks.h"
#include "dispatch/dispatch.h"
#include "ops/blas/parse.h"
#include "ops/convention.h"
#include "ops/rules/lapack_rules.h"
#include "gpu/device/exit_guard.h"
#include "base/thread/linker.h"
#include "shim/elf/bindings.h"
#include "shim/elf/keep.h"
#include "shim/elf/library.h"
#include "shim/elf/objects.h"
#include "shim/elf/outer.h"
#include "shim/elf/real_linker.h"
#include "shim/elf/resolve.h"
#include "shim/elf/slots.h"
#include "shim/nesting.h"

/* State of the program's thread: put aside while libaccel works, put back while the program's own
 * code runs. BLAS is no cancellation point, but a log's write() is: a thread that ended there would
 * keep our locks. Our arithmetic, and CUDA's, must set no floating-point flag of the program and
 * meet none of its traps (feenableexcept(3)). */
struct program_state {
    int cancel_state, cancel_type;
    struct accel_arithmetic arithmetic;
};

static void put_flags_aside(struct program_state *state)
{
    state->arithmetic = accel_arithmetic_put_aside();
}

static void put_flags_back(const struct program_state *state)
{
    accel_arithmetic_put_back(state->arithmetic);
}

/* Waits for the signal of a pthread_cancel() that has begun, in a thread that could be cancelled at
 * any time and holds nothing of ours yet. The signal may come late, and glibc's handler looks
 * neither at the state again, nor at the type within a cancellation point (glibc 2.36,
 * nptl/pthread_cancel.c). A cancellation point such as fsync() waits for that signal before it
 * returns. */
static void await_cancellation(void)
{
    fsync(-1);
}

static void put_aside(struct program_state *state)
{
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &state->cancel_type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state->cancel_state);
    if (state->cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS &&
        state->cancel_state == PTHREAD_CANCEL_ENABLE)
        await_cancellation();
    put_flags_aside(state);
}

static void put_back(const struct program_state *state)
{
    int ours;
    put_flags_back(state);
    pthread_setcancelstate(state->cancel_state, &ours);
    if (state->cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &ours);
}

/* One call on its way: the context of dispatch's callbacks. */
struct entered_call {
    const struct accel_original *original;
    const struct accel_routine *routine;
    const struct accel_convention *convention;
    struct accel_passed passed;
    struct accel_frame *frame;
    struct program_state *program;
    int depth;                  /* inside how many calls this one is made */
    bool decides_inner;         /* the original's own calls are decided for themselves */
    struct accel_result result; /* the frame gets it at the end: until then it has the arguments */
};

/* The frame of the call that this thread is deciding or running. A call that comes in deeper on the
 * stack belongs to it (a CBLAS that calls the Fortran name), or comes from a signal handler,
 * perhaps while we hold a lock: it is not decided. The program may leave a frame by longjmp: such a
 * frame does not lie above the new one. */
static _Thread_local const struct accel_frame *volatile current
    __attribute__((tls_model("initial-exec")));

static bool is_inner(const struct accel_frame *frame)
{
    const struct accel_frame *under_way = current;
    return under_way && nesting_is_below(frame, under_way);
}

/* Enclose what may call BLAS in the program's own name. */
static void begin_inner(const struct entered_call *p)
{
    if (!p->decides_inner)
        return;
    nesting_open(p->frame, p->depth);
    current = NULL;
}

static void end_inner(const struct entered_call *p)
{
    current = p->frame;
    if (p->decides_inner)
        nesting_close(p->depth);
}

static void run_original(struct entered_call *p, const struct accel_passed *passed,
                         void (*to_program)(const struct program_state *),
                         void (*from_program)(struct program_state *))
{
    begin_inner(p);
    to_program(p->program);
    p->result = accel_invoke(p->original->function, passed);
    from_program(p->program);
    end_inner(p);
}

/* We hold nothing meanwhile: the thread may be cancelled, if the program allows that. */
static void forward(void *context, const struct accel_call *part)
{
    struct entered_call *p = context;
    struct accel_words words;
    const struct accel_passed passed = part ? p->convention->pass(&words, part, &p->passed)
                                            : p->convention->repeat(&words, p->routine, &p->passed);
    run_original(p, &passed, put_back, put_aside);
}

/* Has the original answer the call's question, in *words: what it leaves in WORK(1) is its own
 * knowledge. The program has made no such call: what the original calls meanwhile is inner and not
 * decided, the thread is not cancelled, and floating-point flags and traps stay put aside. */
static bool ask_original(const struct entered_call *p, struct accel_words *words)
{
    struct accel_passed question;
    if (!p->convention->question ||
        !p->convention->question(words, &question, p->routine, &p->passed))
        return false;
    accel_invoke(p->original->function, &question);
    return true;
}

static void succeed(void *context, const struct accel_call *call)
{
    struct entered_call *p = context;
    struct accel_words words;
    const struct accel_words *answers = ask_original(p, &words) ? &words : NULL;
    begin_inner(p); /* it may call the program's functions, which may leave by longjmp */
    put_flags_back(p->program);
    p->convention->complete(call, &p->passed, answers, &p->result);
    put_flags_aside(p->program);
    end_inner(p);
}

/* Runs a part of the call while we hold memory and a stream for the rest: the thread is not
 * cancelled before its end. */
static void call_original(void *context, const struct accel_call *call)
{
    struct entered_call *p = context;
    struct accel_words words;
    const struct accel_passed passed = p->convention->pass(&words, call, &p->passed);
    run_original(p, &passed, put_flags_back, put_flags_aside);
}

/* The thread may be cancelled meanwhile, if the program allows that. */
static void pause_call(void *context, void (*wait)(void *argument), void *argument)
{
    const struct entered_call *p = context;
    begin_inner(p);
    put_back(p->program);
    wait(argument);
    put_aside(p->program);
    end_inner(p);
}

static const struct dispatch_library *library(void *context)
{
    const struct entered_call *p = context;
    return accel_library_of(p->original);
}

static void tell_not_known(const struct accel_routine *routine,
                           const struct accel_original *original, const char *symbol, int depth)
{
    struct entered_call passage = {.original = original};
    const struct dispatch_caller caller = {
        .symbol = symbol, .depth = depth, .library = library, .context = &passage};
    dispatch_not_known(routine, &caller);
}

/* Returns dispatch_caller.kind. */
static uint64_t kind_of(const struct accel_convention *convention,
                        const struct accel_routine *routine, const struct accel_passed *passed,
                        uint32_t entry, uintptr_t site)
{
    uint64_t word[2 + ACCEL_ARGS_MAX + 1];
    word[0] = entry, word[1] = site;
    const int count = convention->shape ? convention->shape(word + 2, routine, passed) : 0;
    return count > 0 ? hash_bytes(word, (2 + (size_t)count) * sizeof *word) : 0;
}

static void *enter(uint32_t entry, struct accel_frame *frame, struct program_state *program,
                   bool inner)
{
    const struct accel_original *original = accel_slots_original(entry, frame->ret);
    const struct accel_provider provider = accel_resolve_provider(original->function);
    uint32_t exported = accel_slots_exported(entry);
    const struct accel_routine *routine = accel_name_routine(exported);
    struct accel_passed passed = {.gpr = frame->gpr,
                                  .fpr = (const double(*)[2])frame->fpr,
                                  .stack = frame->stack,
                                  .x8 = accel_frame_x8(frame),
                                  .abi = accel_name_mangling(exported)->abi,
                                  .provider = &provider};
    if (original->wide && blas_is_wide(routine, &passed))
        original = original->wide;
    passed.width = original->width;
    passed.layout = original->layout;
    if (inner)
        return original->function;
    accel_slots_follow();
    if (!dispatch_is_on() || dispatch_is_borrowed())
        return original->function;
    const int depth = nesting_depth(frame);
    if (!original->ours) {
        if (original->layout >= 0 && entry == exported)
            tell_not_known(routine, original, accel_names[exported].symbol, depth);
        return original->function;
    }
    if (dispatch_passes_over(routine, &passed))
        return original->function;
    const struct accel_convention *const convention = accel_convention_of(routine);
    const uint64_t kind = kind_of(convention, routine, &passed, entry, frame->ret);
    if (kind && dispatch_is_decided(kind, accel_objects_loads))
        return original->function;
    const struct accel_routine *const outer = accel_outer_of(routine, &provider, frame->ret);
    const char *const symbol = outer == routine ? accel_names[exported].symbol : outer->name;

    struct entered_call passage = {.original = original,
                                   .routine = outer,
                                   .convention = convention,
                                   .passed = passed,
                                   .frame = frame,
                                   .program = program,
                                   .depth = depth};
    struct dispatch_caller caller = {.symbol = symbol,
                                     .site = frame->ret,
                                     .kind = kind,
                                     .depth = depth,
                                     .arithmetic = accel_arithmetic_unlike_gpu(program->arithmetic),
                                     .library = library,
                                     .loads = accel_objects_loads,
                                     .loaded = accel_objects_any,
                                     .forward = forward,
                                     .original = call_original,
                                     .succeed = succeed,
                                     .pause = pause_call,
                                     .passed = &passed,
                                     .result = &passage.result,
                                     .context = &passage};
    struct accel_call call;
    bool done = false;
    if (passage.convention->parse(&call, outer, &passed)) {
        /* A LAPACK driver calls BLAS; its question for workspace calls nothing. */
        passage.decides_inner = accel_is_blas(routine)
                                    ? accel_is_lapack(routine) && !lapack_is_query(&call)
                                    : accel_op_of(routine)->foreign->nests;
        done = dispatch_call(&call, &caller);
    } else {
        tell_not_known(outer, original, symbol, depth);
    }
    if (done)
        accel_frame_return(frame, &passage.result);
    accel_slots_follow();
    return done ? NULL : original->function;
}

void *accel_enter(uint32_t entry, struct accel_frame *frame)
{
    int saved = errno; /* BLAS does not change it */
    struct program_state program;
    put_aside(&program);
    bool inner = is_inner(frame);
    if (!inner)
        current = frame;
    void *target = enter(entry, frame, &program, inner);
    if (!inner)
        current = NULL;
    put_back(&program);
    errno = saved;
    return target;
}

static void before_fork(void)
{
    linker_before_fork(accel_real_maps);
}

/* Reads variables and the config files and looks for the driver's devices, no more: most processes
 * that inherit the preload never call BLAS. Other libraries' constructors may have called BLAS
 * before. */
__attribute__((constructor)) static void start_shim(void)
{
    dispatch_start();
    accel_objects_start();
    accel_bindings_start();
    pthread_atfork(before_fork, linker_after_fork, forks_child);
}

__attribute__((destructor)) static void end_shim(void)
{
    dispatch_end();
}
