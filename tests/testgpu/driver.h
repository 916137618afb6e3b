/* Inside the stand-in for libcuda.so.1. "With the lock": testgpu_lock() is held by the caller. */
#ifndef TESTGPU_DRIVER_H
#define TESTGPU_DRIVER_H

#include <pthread.h>
#include <stdarg.h>
#include <time.h>
#include "testgpu.h"

extern const struct testgpu_library driver_library;

#define DRIVER_ENTER(FLAGS, ...) TESTGPU_ENTER(driver_library, FLAGS, __VA_ARGS__)

enum { DEVICES_MAX = 16 };

/* CUDA 13.0, as its cuBLAS is, whichever release has the headers that it is compiled with. */
enum { DRIVER_VERSION = 13000 };

struct driver {
    pthread_mutex_t lock;
    /* An operation ended, a pin was dropped; where speeds are set, work arrived */
    pthread_cond_t progress;
    _Atomic unsigned long news; /* how often there was such progress */
    bool initialised;
    bool forked;
    bool exiting;
    bool has_started; /* a context has been made */
    bool no_kernels;  /* an OpenBLAS is gone: none is begun any more */
    size_t kernels;   /* being run */
};
extern struct driver driver;

enum { ATTRIBUTES_MAX = 16 };

enum device_mode {
    MODE_DEFAULT,
    MODE_EXCLUSIVE,
    MODE_TAKEN,
    MODE_PROHIBITED,
    MODE_FAILING,
    MODE_FULL,
    MODES
};

struct settings {
    int cublas_minor; /* 0: its own */
    bool peers;       /* devices reach each other */
    double peer_gbps;
    int devices;
    struct attribute_setting {
        int which, values, value[DEVICES_MAX];
    } attribute[ATTRIBUTES_MAX + 1];
    int attributes;
    /* By physical number: */
    struct card {
        char name[64];
        size_t memory, taken;
        double up_gbps, down_gbps, gflops;
        enum device_mode mode;
    } card[DEVICES_MAX];
    unsigned delay_us, wake_us;
    uint64_t seed;
    double launch_us;
    double memory_us, pin_ms, info_us;
    unsigned half;
    unsigned busy;
    unsigned threads;
    unsigned start_ms, load_ms, first_ms;
    const char *start_file;
    const char *helper;
    bool data;
    enum pageable { PAGEABLE_MISUSED, PAGEABLE_ALLOWED, PAGEABLE_UNTOLD } pageable;
    bool scales;
    unsigned last_pivot;
    bool order;
    bool early_end;
    const char *report;
    const char *trace;
};
extern struct settings settings;
void settings_read(void);
void end_at_exit(void);
extern struct testgpu_life driver_life;
/* A call begins and ends. False: the library has ended. */
bool life_enter(struct testgpu_life *life);
void life_leave(struct testgpu_life *life);
/* The path with %p replaced by the process id. */
void settings_path(const char *pattern, char *path, size_t size);

/* A small generator, so that a run can be repeated with TESTGPU_SEED. */
uint64_t random_next(uint64_t *state);
/* Waits up to so long; without the lock. */
void random_pause(uint64_t *state, unsigned longest_us);
/* The same of the calling thread's own, as long as an operation may be late. Without the lock. */
void random_delay(void);
/* Waits as long as TESTGPU_WAKE_US says; with the lock, which others may take meanwhile. */
void wake_up_late(void);

/* entry.c */
/* Waits as long as the first call of the function that this thread is in should take, if this is
 * it. Without the lock. */
void entry_load_kernels(void);

/* fault.c */
void injections_read(void);
bool injection_for_call(const struct testgpu_function *function, bool allocates, int *code);
bool injection_for_operation(CUresult *code);
/* Whether TESTGPU_WRONG asks for the result of this kernel of gpu/own/ to be wrong. */
bool spoils_own_kernel(const char *name);
bool error_is_sticky(int code);
void set_where(const char *where);
void faults_forget(void);
unsigned long faults_count(void);
void faults_print(int file);
void injections_print(int file);
void fault_locks(bool take);

/* names.c */
bool error_by_name(const char *name, int *code);

/* report.c */
void report_function(struct testgpu_function *function);
void report_kernel(const char *name);
void report_forget(void);
void report_write(void);
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void append_line(int file, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct copied {
    uint64_t host_to_device, device_to_host, device_to_device, host_to_host, migrated;
    uint64_t between_devices; /* of those from device to device */
};
extern struct copied copied;

/* speed.c */
void pause_ms(unsigned ms);
/* What a call of the host takes by the settings, without the lock: one that takes memory or gives
 * it back, one that pins so many bytes besides, one that asks how much there is. */
enum call_cost { COST_MEMORY, COST_PINNING, COST_INFO, COSTS };
extern _Atomic uint64_t call_costs[COSTS]; /* nanoseconds, of all calls */
void cost_of_memory(size_t pinned_bytes);
void cost_of_info(void);
/* With the lock, which is let go meanwhile. Where speeds are set the waiting thread watches for a
 * while before it sleeps, as CUDA's own do: a thread that sleeps is woken later than a call
 * lasts. */
void progress_made(void);
void progress_await(void);
enum engine { ENGINE_NONE, ENGINE_KERNELS, ENGINE_UP, ENGINE_DOWN, ENGINES };
extern uint64_t lasted[ENGINES]; /* nanoseconds, of what has ended */
struct operation;
/* On this device. */
void speed_of_copy(CUdevice device, struct operation *operation, enum engine engine, size_t bytes);
void speed_of_kernel(CUdevice device, struct operation *operation, const struct testgpu_cost *cost);
/* From another device; straight: not by way of the host, which takes the time of a copy up and one
 * down. */
void speed_of_peer_copy(CUdevice device, struct operation *operation, size_t bytes, bool straight);
/* With the lock, which is let go meanwhile: wait until the engine is there, which gives the
 * operation's start, and until the operation has lasted as long as it should. */
int64_t speed_begin(CUstream stream, const struct operation *operation);
void speed_end(CUstream stream, const struct operation *operation, int64_t start);
bool speed_is_set(void);
/* With the lock, which is let go meanwhile: so many tenths of the process's start, once. False: the
 * driver has gone. */
bool speed_start(bool *started, unsigned tenths);
/* The same: waits for the file of TESTGPU_START_FILE. */
void speed_await_file(void);

/* context.c */
struct CUctx_st {
    struct testgpu_object object;
    int device;
    unsigned flags;
    bool primary;
    CUresult error; /* sticky: every later call in the context gives it */
    CUstream legacy;
    size_t taken; /* memory of library handles */
    int running;  /* copies and kernels at this moment */
    /* Contexts whose memory this one may use: */
    CUcontext peer[DEVICES_MAX];
    int peers;
};
extern struct testgpu_pool contexts;
void context_fail(CUcontext context, CUresult code);
/* The context's error; once it has been told, nothing of the context runs any more. */
CUresult context_error(CUcontext context);
CUresult context_new(CUcontext *context, int device, unsigned flags);
void context_end(CUcontext context);
bool context_is(CUcontext context, enum testgpu_state state);

/* device.c */
struct device {
    int physical;
    size_t used;
    uintptr_t base, end, cursor;
    CUcontext primary;
    unsigned primary_uses;
    unsigned primary_flags;
    int64_t engine_free[ENGINES]; /* when, in nanoseconds of CLOCK_MONOTONIC */
};
extern struct device devices[DEVICES_MAX];
extern int device_count;
bool device_is(CUdevice device);
/* What the settings say of a device. */
const struct card *card_of(CUdevice device);
int device_attribute(CUdevice_attribute which, CUdevice device);

/* order.c */
enum { ORDER_STREAMS = 128 }; /* those that are made first are watched */
struct touches;
/* With the lock. Of a clock: it is behind all that the other one is behind. */
void order_join(uint32_t *clock, const uint32_t *other);
/* The host has waited for the operation, or knows that it is done. */
void order_host_waited(const struct operation *operation);
/* It is put on the stream, behind all that the stream and the host have waited for. */
void order_put(CUstream stream, struct operation *operation);
void order_forget(struct touches *touches);

/* memory.c */
enum memory_kind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_PINNED, MEMORY_REGISTERED };

struct allocation {
    enum memory_kind kind;
    uintptr_t address;
    size_t bytes;
    char *backing; /* where the bytes really are */
    size_t mapped;
    CUcontext context;
    CUmemoryPool pool;   /* NULL: of none */
    bool is_there, ends; /* of a pool: its allocation has run; its end is on a stream */
    bool viewed;         /* a kernel has used it at its own address */
    bool is_portable;    /* registered: it is pinned for other contexts, too */
    unsigned pins;       /* running operations that touch it */
    bool ending;
    struct touches *touches; /* of operations: see order.c */
    unsigned long long id;
    struct allocation *next;
};
extern struct allocation *allocations;
struct allocation *allocation_at(uintptr_t address);
/* With the lock. Memory of a device, and of a pool unless that is NULL; NULL: there is none. Its
 * end, which waits for what runs. */
struct allocation *memory_allocate(int device, size_t bytes, CUmemoryPool pool);
void memory_end(struct allocation *a);
/* The device that an address of device memory is of; -1: it is of none. */
int memory_device_of(uintptr_t address);
/* Whether kernels reach the host's memory there by the host's page tables alone. Without the
 * lock. */
struct testgpu_run;
bool memory_is_hosts(const struct testgpu_run *run, uintptr_t address);
void memory_reserve(struct device *device, size_t memory);
void memory_end_of_context(CUcontext context);

/* mempool.c */
struct CUmemPoolHandle_st {
    struct testgpu_object object;
    int device;
    bool open_to[DEVICES_MAX];
    size_t unused; /* bytes of the device that its freed memory still has */
};
extern struct testgpu_pool mempools;
/* With the lock. */
void mempools_release(void);
void mempools_end_of_context(CUcontext context);

/* peer.c */
bool peers_reach(CUdevice device, CUdevice peer);

/* stream.c */
struct operation {
    struct operation *next; /* in its stream */
    const char *name;
    bool counted; /* a copy or a kernel, not a mark in the stream */
    bool kernel;
    enum engine engine; /* that it takes, if any */
    int64_t lasts;      /* nanoseconds */
    unsigned references;
    bool finished;
    struct timespec finished_at;
    int stream;                    /* its number; -1: that is not watched */
    uint32_t number;               /* on its stream */
    uint32_t clock[ORDER_STREAMS]; /* see order.c */
    struct operation **awaited;
    size_t awaited_count;
    uintptr_t host[2], host_end[2]; /* host ranges a copy reads and writes */
    testgpu_run_function *run;
    void *argument;
};

struct testgpu_run {
    CUcontext context;
    const struct operation *operation;
    struct allocation **pinned;
    size_t pins, room;
    double moved; /* bytes, if only the run shows how many */
};

struct CUstream_st {
    struct testgpu_object object;
    unsigned flags;
    int priority;
    bool legacy;
    bool working; /* its thread runs */
    /* Work for its thread, or the end; all zero at first, as the initialiser is */
    pthread_cond_t arrived;
    struct operation *first, *last;
    struct operation *latest; /* the newest operation, finished or not */
    bool settled;             /* the host has waited for the newest one */
    uint64_t random;
    size_t number;
    uint32_t put; /* operations so far */
    uint32_t clock[ORDER_STREAMS];
    CUstreamCaptureStatus capture;
    CUstreamCaptureMode capture_mode;
    pthread_t capture_thread;
    size_t captured;
};
extern struct testgpu_pool streams;

struct operation *operation_new(const char *name, testgpu_run_function *run, const void *argument,
                                size_t bytes);
void operation_await(struct operation *operation, struct operation *awaited);
void operation_release(struct operation *operation);
/* With the lock; takes the operation over. Keeps a reference in *kept for the caller if asked. */
CUresult stream_put(CUstream stream, struct operation *operation, struct operation **kept);
CUresult operation_wait(struct operation *operation, CUcontext context);
/* The stream a handle means for the current context; NULL when it means none (*code says why). */
CUstream stream_of(CUstream handle, CUresult *code);
CUstream stream_new(CUcontext context, unsigned flags, int priority, bool legacy);
void stream_end(CUstream stream);
bool stream_idle(const struct CUstream_st *stream);
size_t streams_pending(void);
void streams_await(CUcontext context);
/* Every stream's thread looks again; and in a child, which has none of these threads. */
void streams_wake(void);
void streams_forked(void);
bool streams_await_host(uintptr_t address, uintptr_t end);
/* Whether there are such copies. */
bool streams_use_host(uintptr_t address, uintptr_t end);

/* event.c */
extern struct testgpu_pool events;
void events_end_of_context(CUcontext context);

/* capture.c */
extern struct testgpu_pool graphs;
/* Whether a potentially unsafe call is forbidden now; spoils the captures that forbid it. */
bool capture_forbids(void);
/* Whether the stream captures; work put on it is then recorded and never runs. */
bool capture_active(const struct CUstream_st *stream);
void capture_spoil(CUstream stream);
bool capture_spoil_blocking(CUcontext context);
void capture_dropped(CUstream stream);
void capture_abandon(CUstream stream);

#endif
