/* What every call passes on its way in and out. */
#include <dlfcn.h>
#include <fenv.h>
#include <stdatomic.h>
#include <stdio.h>
#include "driver.h"

const struct testgpu_library driver_library = {
    .not_initialised = CUDA_ERROR_NOT_INITIALIZED,
    .deinitialised = CUDA_ERROR_DEINITIALIZED,
    .no_context = CUDA_ERROR_INVALID_CONTEXT,
    .context_failed = TESTGPU_CONTEXT_ERROR,
    .capturing = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    .unknown = CUDA_ERROR_UNKNOWN,
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .life = &driver_life,
};

/* With the lock. */
static int check_context(const struct testgpu_library *library, bool needed)
{
    CUcontext context = testgpu_current();
    if (context == NULL) {
        if (!needed)
            return 0;
        testgpu_fault("no_context", "the thread has no current context");
        return library->no_context;
    }
    if (!context->object.alive) {
        testgpu_fault("destroyed_context", "the current context has been destroyed");
        return library->context_failed == TESTGPU_CONTEXT_ERROR ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                : library->context_failed;
    }
    CUresult error = context_error(context);
    if (error == CUDA_SUCCESS || library->context_failed == TESTGPU_CONTEXT_ERROR)
        return (int)error;
    return library->context_failed;
}

/* With the lock. */
static int refusal(struct testgpu_function *function, unsigned flags)
{
    const struct testgpu_library *library = function->library;
    if (driver.exiting)
        return library->deinitialised;
    if (driver.forked) {
        testgpu_fault("forked", "called in the child of a process that had initialised");
        return library->not_initialised;
    }
    int code;
    if (!(flags & TESTGPU_TEXT) &&
        injection_for_call(function, (flags & TESTGPU_ALLOCATES) != 0, &code)) {
        CUcontext context = testgpu_current();
        if (library == &driver_library && error_is_sticky(code) && context != NULL)
            context_fail(context, (CUresult)code);
        if (context != NULL)
            context_error(context);
        return code;
    }
    if (!(flags & TESTGPU_ANYTIME) && !driver.initialised)
        return library->not_initialised;
    if (flags & (TESTGPU_CONTEXT | TESTGPU_ANY_CONTEXT)) {
        code = check_context(library, (flags & TESTGPU_CONTEXT) != 0);
        if (code != 0)
            return code;
    }
    if ((flags & TESTGPU_UNSAFE) && capture_forbids()) {
        testgpu_fault("unsafe_in_capture", "not allowed while a stream is captured");
        return library->capturing;
    }
    return 0;
}

static _Thread_local struct testgpu_function *current; /* what this thread is in */

/* Real libraries have others that come and go (nvJitLink, compilers of kernels). */
static void use_helper(void)
{
    void *helper = dlopen(settings.helper, RTLD_NOW | RTLD_LOCAL);
    if (helper == NULL || dlclose(helper) != 0 || dlopen(settings.helper, RTLD_NOLOAD | RTLD_LAZY))
        testgpu_fault("helper", "%s does not come or go", settings.helper);
}

void entry_load_kernels(void)
{
    struct testgpu_function *function = current;
    if (settings.helper != NULL && function != NULL && function->library != &driver_library)
        use_helper();
    if (settings.first_ms == 0 || function == NULL || function->library == &driver_library)
        return;
    testgpu_lock();
    bool first = !function->loaded;
    function->loaded = true;
    testgpu_unlock();
    if (first)
        pause_ms(settings.first_ms);
}

static bool has_own_arithmetic(void)
{
#ifdef __x86_64__
    const unsigned start = 0x1f80,
                   flags = 0x3f; /* the functions below look at the x87 unit alone */
    unsigned short x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    if ((__builtin_ia32_stmxcsr() & ~flags) != start || x87 != 0x37f)
        return true;
#endif
    return fegetround() != FE_TONEAREST || fegetexcept() != 0;
}

/* CUDA's libraries also compute on the host, in the arithmetic of the thread that calls them: not
 * a rule of theirs, but of who calls for others. Said once. */
static void check_arithmetic(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (has_own_arithmetic() && !atomic_flag_test_and_set(&said))
        testgpu_fault("arithmetic", "the thread's is not that of a program's start");
}

int testgpu_enter(struct testgpu_call *call, unsigned flags, const char *format, ...)
{
    struct testgpu_function *function = call->function;
    call->arguments[0] = '\0';
    if (settings.trace != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(call->arguments, sizeof call->arguments, format, arguments);
        va_end(arguments);
    }
    set_where(function->name);
    check_arithmetic();
    current = function;
    if (!life_enter(function->library->life) && function->library != &driver_library)
        testgpu_fault("called_after_exit", "its exit handler has run");
    testgpu_lock();
    report_function(function);
    function->calls++;
    int code = refusal(function, flags);
    testgpu_unlock();
    if (code == 0 && (flags & TESTGPU_ALLOCATES))
        entry_load_kernels();
    return code == 0 || (flags & TESTGPU_TEXT) ? 0 : testgpu_leave(call, code);
}

int testgpu_leave(struct testgpu_call *call, int code)
{
    if (code != 0 &&
        !(call->function->library == &driver_library && code == CUDA_ERROR_NOT_READY)) {
        testgpu_lock();
        call->function->failed++;
        testgpu_unlock();
    }
    if (settings.trace != NULL)
        trace_line("%s(%s) = %d", call->function->name, call->arguments, code);
    life_leave(call->function->library->life);
    return code;
}
