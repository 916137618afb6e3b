/*
 * What the stand-in libraries share. libcuda.so.1 holds all state; libcublas, libcusolver and
 * libcufft enter calls, put kernels on streams and reach device bytes through these names.
 *
 * A new routine needs: an exported function whose first line is TESTGPU_ENTER, its parameter
 * checks, and testgpu_enqueue() with what it costs and a closure that calls
 * testgpu_reach_elements() for each operand and computes.
 */
#ifndef TESTGPU_H
#define TESTGPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cuda.h>

/* What of a library may not come together: its load, calls of it, and its exit handler, which the
 * real ones register while they load, and after which what they had is gone. */
struct testgpu_life {
    const char *name;
    atomic_int inside; /* threads */
    atomic_bool loading, ended;
    pthread_t loader;
    pid_t process;
};

/* From a library's constructor: registers its handler, and waits as long as loading it should take.
 * The handler reports a load or a call that another thread is in, and calls of the other libraries
 * after it are reported, too; the driver's own are only refused. */
void testgpu_load(struct testgpu_life *life);

/* How a library spells the refusals that any of its functions may give. */
struct testgpu_library {
    int not_initialised;
    int deinitialised;
    int no_context;
    int context_failed; /* TESTGPU_CONTEXT_ERROR: the error that broke the context */
    int capturing;
    int unknown;
    int out_of_memory;
    struct testgpu_life *life;
};

#define TESTGPU_CONTEXT_ERROR (-1)

enum {
    TESTGPU_ANYTIME = 1 << 0,     /* works before cuInit */
    TESTGPU_CONTEXT = 1 << 1,     /* needs a current context */
    TESTGPU_ANY_CONTEXT = 1 << 2, /* reports a failed context where one is current, needs none */
    TESTGPU_UNSAFE = 1 << 3,      /* breaks a stream capture */
    TESTGPU_ALLOCATES = 1 << 4,   /* a planted failure means: out of memory */
    TESTGPU_TEXT = 1 << 5,        /* returns text, so no failure can be planted */
};

struct testgpu_function {
    const char *name;
    const struct testgpu_library *library;
    struct testgpu_function *next;
    unsigned long calls;
    unsigned long failed;
    bool listed;
    bool loaded; /* its kernels */
};

struct testgpu_call {
    struct testgpu_function *function;
    char arguments[256];
};

/* 0: go on; otherwise the code the call is refused with. */
int testgpu_enter(struct testgpu_call *call, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int testgpu_leave(struct testgpu_call *call, int code);

#define TESTGPU_ENTER(LIBRARY, FLAGS, ...)                                                         \
    static struct testgpu_function function_ = {.name = __func__, .library = &(LIBRARY)};          \
    struct testgpu_call call_ = {.function = &function_};                                          \
    do {                                                                                           \
        int refused_ = testgpu_enter(&call_, (FLAGS), __VA_ARGS__);                                \
        if (refused_ != 0)                                                                         \
            return refused_;                                                                       \
    } while (0)

#define TESTGPU_RETURN(CODE) return testgpu_leave(&call_, (CODE))

/* One lock over all state of the test GPU; never held while an operation computes. */
void testgpu_lock(void);
/* Waits for the kernels that are being run; no more is begun. */
void testgpu_end_kernels(void);
void testgpu_unlock(void);

/* Records a misuse, under the name of the call or operation this thread is in. Any time. */
void testgpu_fault(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Handles. Their memory is never reused, so that a handle used after its end is told from a live
 * one and from a stray pointer. All with the lock held.
 */
struct testgpu_object {
    bool alive;
    CUcontext context;
};

enum { TESTGPU_POOL_CHUNK = 128, TESTGPU_POOL_CHUNKS = 16384 };

struct testgpu_pool {
    const char *name; /* the key in the report's line of leaks */
    size_t size;
    char *chunks[TESTGPU_POOL_CHUNKS];
    size_t used;
    struct testgpu_pool *next;
    bool listed;
};

enum testgpu_state { TESTGPU_STRAY, TESTGPU_ENDED, TESTGPU_ALIVE };

void *testgpu_object_new(struct testgpu_pool *pool, CUcontext context);
void *testgpu_object_at(struct testgpu_pool *pool, size_t index);
enum testgpu_state testgpu_object_state(const struct testgpu_pool *pool, const void *object);
/* Returns whether an object of this kind ("event") is alive; if not, notes the fault. With the
 * lock. */
bool testgpu_object_is_alive(const struct testgpu_pool *pool, const void *object, const char *kind);

/* The calling thread's context, alive or not; NULL when there is none. */
CUcontext testgpu_current(void);

/* Device memory that belongs to a library's handle: counted, not addressable. With the lock held.
 */
bool testgpu_take_memory(CUcontext context, size_t bytes);
void testgpu_return_memory(CUcontext context, size_t bytes);

/* Whether the address lies where device memory is handed out. */
bool testgpu_is_device_address(const void *address);

/* CUDA_SUCCESS, or why this stream cannot be used with the current context. With the lock held. */
CUresult testgpu_check_stream(CUstream stream);

/* An operation while it runs, on its stream's thread. */
struct testgpu_run;
typedef CUresult testgpu_run_function(struct testgpu_run *run, void *argument);

/* What a kernel asks of the device: for how long, only the settings say. */
struct testgpu_cost {
    double operations; /* on real numbers */
    double bytes;      /* moved in device memory */
    int64_t dimension; /* the smallest of its sizes, which says how well it fills the device; 0: all
                          of it */
    double launches;   /* kernels that it is made of, one after the other; 0: one */
    bool single;       /* precision */
};

/* Puts a kernel on the stream; the argument is copied. */
CUresult testgpu_enqueue(CUstream stream, const char *kernel, const struct testgpu_cost *cost,
                         testgpu_run_function *function, const void *argument, size_t bytes);

/* The compute capability of the current context's device, such as 90. */
int testgpu_capability(void);

/* Whether kernels compute; without it they still check their operands and report success. */
bool testgpu_computes(void);

/* Whether products with a factor or a k of 0 scale their result, as in BLAS; without it they leave
 * it as it is. */
bool testgpu_scales(void);
/* Which routines say something else of pivots that fail: see TESTGPU_LAST_PIVOT. */
unsigned testgpu_last_pivot(void);
/* The minor version that cuBLAS says it has, or its own. */
int testgpu_cublas_minor(int otherwise);

/*
 * The bytes behind a device address, which stay until the operation ends. NULL when the range is
 * not wholly inside one live allocation of the stream's context; the fault is then recorded, and
 * the operation returns CUDA_ERROR_ILLEGAL_ADDRESS.
 */
void *testgpu_reach(struct testgpu_run *run, CUdeviceptr address, size_t bytes);

/* The same for a kernel, whose elements are at multiples of their size. CUDA_SUCCESS, or what the
 * operation returns: the fault is recorded. */
CUresult testgpu_reach_elements(struct testgpu_run *run, CUdeviceptr address, size_t bytes,
                                size_t element, void **reached);

/* What an operation reads or writes: columns of so many bytes, which begin `pitch` bytes apart; or
 * of a triangle in them, of elements of so many bytes. */
enum { TESTGPU_WHOLE, TESTGPU_LOWER, TESTGPU_UPPER };
struct testgpu_place {
    CUdeviceptr address;
    uint64_t pitch, bytes, columns;
    int part;
    uint64_t element;
};

/* By elements, not by extents: two blocks of one larger matrix are apart. */
bool testgpu_overlap(const struct testgpu_place *one, const struct testgpu_place *other);

/* Faults are places that operations of two streams use in no order: see order.c. */
void testgpu_touch(struct testgpu_run *run, const struct testgpu_place *place, bool writes);

/* Waits for what is on the stream. */
CUresult testgpu_await(CUstream stream);
/* Whether the host has waited for all that is on the stream. */
bool testgpu_is_settled(CUstream stream);

/* Waits for all work of the context. */
CUresult testgpu_synchronise(CUcontext context);

/* Whether TESTGPU_WRONG asks for the result of this kernel, of that routine, to be wrong. */
bool testgpu_spoils_kernel(const char *routine);

/* A pause inside a call, so that two threads in one handle meet. */
void testgpu_linger(void);

#endif
