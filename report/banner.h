/*
 * What outputs say once of a process and its machine: libaccel, the CPU library, each GPU with its
 * libraries, or why there is none. The dispatcher tells what it knows as soon as it knows it; an
 * output asks at each decision for the parts that it has not said yet. No malloc, no stdio, no
 * lock. Thread-safe, and allowed in signal handlers. The child of a fork begins anew.
 */
#ifndef ACCEL_BANNER_H
#define ACCEL_BANNER_H

#include <stdatomic.h>

#include "line.h"
#include "gpu/device/gpu.h"

enum { BANNER_GPUS = 8 };
enum banner_part {
    BANNER_PROGRAM,
    BANNER_SLOW, /* the first CPU library that is slower than its nominal figures */
    BANNER_NO_GPU,
    BANNER_GPU, /* the first of BANNER_GPUS: the one of CUDA's number 0, if it is there */
    BANNER_DRIVER = BANNER_GPU + BANNER_GPUS, /* and the library of BLAS */
    BANNER_SOLVER,
    BANNER_UNTRACKED, /* why the kernel's record of writes is not used; a summary for people does
                         not say it */
    BANNER_PARTS
};

/* Where the figures come from by which times are estimated: a calibration's file, and the time of
 * its last change in seconds since 1970; NULL: they are built in. */
struct banner_figures {
    const char *file;
    int64_t time;
};

struct banner_program {
    const char *precision; /* that ACCEL_PRECISION asks for */
    const char *cpu_path;  /* of the library that has the first call's original; NULL: not known */
    int cpu_threads;       /* 0: the first call was none of such a library */
    const char *cpu_kernels; /* that it multiplies with, as it says itself; NULL: it does not say */
    bool cpu_is_slow;        /* by those: texts name them then */
    struct banner_figures figures; /* of that library with these threads */
};

/* ---- For the dispatcher: all strings stay ---- */

/* Whether the first decision's part is still to be told. */
bool banner_lacks_program(void);
void banner_program(const struct banner_program *program);

/* So many calls of a CPU library all took at least so many times what its nominal figures say,
 * which are divided by that. path: as cpu_path. Later ones are not heard. */
void banner_slow(const char *path, int calls, double times);

/* A GPU is ready, after a start of so long. */
void banner_gpu(const struct gpu_info *gpu, struct banner_figures figures, double start_ms);

/* The reason of a process in which CUDA is left to the program: readers of logs know it by this. */
#define BANNER_HELD                                                                                \
    "a CUDA library is loaded that the program has not started, and its forked children may want " \
    "to; ACCEL_START=background starts CUDA all the same"

/* No GPU is used. said: a message has said so. Later reasons are not heard. */
void banner_no_gpu(const char *why, bool said);

/* ---- For outputs ---- */

/* Returns the parts that are known and not in *told, as bits 1 << enum banner_part, and adds them
 * there. */
unsigned banner_news(atomic_uint *told);

/* Puts a part that is known into a line: its event and fields. False, and nothing is put: GPUs'
 * lines have it. */
bool banner_put(struct report_line *line, enum banner_part part);

/* Whether a message has said the same on stderr. */
bool banner_is_said(enum banner_part part);

/* Appends a part that is known as lines for people, each with its newline and "accel: " before
 * it. */
void banner_say(struct accel_text *text, enum banner_part part);

/* Appends the line for a run in which no GPU was needed. */
void banner_say_unused(struct accel_text *text);

#endif
