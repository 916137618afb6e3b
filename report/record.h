/*
 * The record of a decision: the call, its site, the decision and its reason, where it ran, and how
 * that went. The dispatcher fills one for each call that it decides; log, trace, summary and
 * estimate are made from it (report.h).
 */
#ifndef ACCEL_RECORD_H
#define ACCEL_RECORD_H

#include "gpu/device/gpu.h"
#include "call/call.h"

/* The values of the log's `why`. */
enum accel_why {
    /* on the GPU */
    ACCEL_FASTER,
    ACCEL_FORCED,
    ACCEL_DEVICE_DATA,
    ACCEL_REQUIRED,
    /* on the CPU */
    ACCEL_SMALL,
    ACCEL_SLOWER,
    ACCEL_UNSUPPORTED,
    ACCEL_WORKSPACE_QUERY,
    ACCEL_BAD_ARGUMENT,
    ACCEL_EMPTY,
    ACCEL_OFF,
    ACCEL_USER,
    ACCEL_NO_GPU,
    ACCEL_WARMING,
    ACCEL_NO_MEMORY,
    ACCEL_BUSY,
    ACCEL_ERROR,
    ACCEL_FORKED,
    ACCEL_VERIFY_FAILED,
    ACCEL_WHYS
};

/* Returns the name of a reason in the log, which is constant. */
const char *accel_why_name(enum accel_why why);

/* The longest `ran`: of sixteen devices and the CPU. */
enum { ACCEL_RAN_BYTES = 96 };

struct accel_decision {
    bool gpu;
    enum accel_why why;
    double est_cpu_ms, est_gpu_ms; /* 0: not estimated */
    double est_own_ms;             /* est_gpu_ms without the wait for others */
    unsigned placed;               /* operands that the GPU reads in host memory: see gpu_host */
    /* est_own_ms if the call's matrix were on the device; 0: it need not be, or cannot, or that
     * would not pay */
    double est_there_ms;
};

/* A precision that the device has for the call, in which products are faster, and that nobody has
 * asked for. */
struct accel_offer {
    enum gpu_precision precision; /* GPU_NATIVE: none */
    double est_gpu_ms;            /* that the call would take on the GPU in it */
    double native_gflops, gflops; /* of large products, in native precision and in it */
};

/* The value of accel_record.verify for a call that is not to be verified. */
#define VERIFY_NOT_ASKED (-2.0)

/* Of the calls that were made inside one. */
struct accel_inner {
    double ms;         /* of those one deeper: sums leave it out */
    int64_t gpu_calls; /* those that the GPU has run, however deep */
};

struct accel_record {
    const struct accel_call *call;
    const char *symbol; /* the name that was called; constant */
    uintptr_t site;     /* where from: the return address */
    struct accel_decision decision;
    struct accel_offer offer;
    enum accel_why why;            /* decision.why, unless the GPU has refused or failed since */
    const char *ran;               /* "cpu", "gpu0", "gpu0+cpu", "gpu0+gpu1", "gpu0+gpu1+cpu" */
    char devices[ACCEL_RAN_BYTES]; /* what `ran` points to, if several devices have run the call */
    double start_ms;               /* when it began, by accel_now_ms() */
    double ms;                     /* the call took; negative: not timed */
    bool refused; /* the matrix has been looked at, and only LAPACK can report on it */
    int64_t up_bytes, down_bytes;
    int64_t peer_bytes;     /* from one device to another */
    const char *arithmetic; /* that keeps it from the GPU: dispatch_caller's word; NULL: nothing */
    const char *precision;  /* that the GPU has used; NULL: no other than native was asked for */
    int64_t kept_bytes;     /* of inputs that were on the device already, from earlier calls */
    /* VERIFY_NOT_ASKED, or the error over the bound; other negative values: not judged */
    double verify;
    /* Of this process on the GPU: when it began there, with itself, and after it */
    int gpu_calls[2];
    /* Inside how many calls whose originals this thread was running; 0: the program's own. Not
     * counted are calls in an original that the entry has jumped to, which is not timed either, and
     * calls of threads that an original has started. */
    int depth;
    struct accel_inner in;
    bool has_info; /* LAPACK has told: */
    int64_t info;  /* its INFO */
    /* That ran the call, or began to, of several the first; NULL: none */
    const struct gpu_info *gpu;
    bool inner; /* made inside a call that an estimate counts as a whole */
};

/* Returns the record of a call that has not run yet: on the CPU, with the decision's reason, not
 * timed, not verified. */
struct accel_record record_of(const struct accel_call *call, const char *symbol, uintptr_t site,
                              struct accel_decision decision);

#endif
