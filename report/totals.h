/*
 * Sums over the decisions of a process, or of several: one table in shared memory, which each call
 * updates by atomics, so that no sum is lost however a process ends. The children of a fork count
 * in their parent's table; `accel run` makes one for all processes of a run. No malloc, no stdio,
 * no lock.
 */
#ifndef ACCEL_TOTALS_H
#define ACCEL_TOTALS_H

#include <stdatomic.h>

#include "record.h"

/* What the end of a run may need to know beside the sums. */
enum totals_fact {
    TOTALS_THREADS = 1,    /* in a process, more than one thread has made calls */
    TOTALS_WAITS = 2,      /* ACCEL_START=wait */
    TOTALS_KEEPS = 4,      /* ACCEL_RESIDENT is on */
    TOTALS_CALIBRATED = 8, /* the device's figures are measured */
    TOTALS_ON_GPU = 16,    /* a GPU was ready for calls */
    TOTALS_TURNS = 32,     /* ranks shared a GPU without MPS */
    TOTALS_HELD = 64,      /* a process left CUDA to the program */
    /* libraries that the program has loaded (hints.h) */
    TOTALS_SKLEARN_TREES = 1 << 8,
    TOTALS_R_FORESTS = 1 << 9,
    TOTALS_R_RANGER = 1 << 10,
    TOTALS_XGBOOST = 1 << 11,
    TOTALS_LIGHTGBM = 1 << 12
};

/* The calls of one routine, with sizes of one class, that ran in one place for one reason. Times in
 * seconds. */
struct totals_row {
    char name[40]; /* the routine; where it is not known, the name that was called */
    char ran[ACCEL_RAN_BYTES];
    enum accel_why why;
    bool inner;        /* made inside other calls, whose rows have their time already */
    int64_t low, high; /* of the largest size of each call; 0: it has none */
    int64_t calls;
    int64_t untimed; /* of calls */
    double seconds;  /* of the other calls */
    /* Of those with an estimate: their time; the estimated time on the other side */
    double estimated, instead;
    int64_t up, down, kept; /* bytes */
    int64_t again; /* of up: operands from where, and in the shape in which, one has come before */
};

/* Another precision than native that devices have, and that was not asked for. */
struct totals_precision {
    double native_gflops, gflops; /* of large products; 0: no device offers it */
    int64_t calls;                /* that would have been faster in it */
    double saved;                 /* by so many seconds, by estimates */
};

struct totals_sums {
    unsigned facts;
    int processes;   /* that have made calls */
    double seconds;  /* that these have run, together */
    double starting; /* seconds that GPUs took to start in the background, until now */
    int64_t dropped; /* calls for which the table had no row */
    struct totals_precision precision[GPU_PRECISIONS];
};

enum { TOTALS_ROWS = 2048 };

/* What one of the processes has told of itself and its machine, by part (banner.h) and form: the
 * first one that has told it. Text that does not fit is left out. A process tells both forms, as
 * another one may print the summary, in the other form. */
enum { TOTALS_ABOUTS = 16, TOTALS_ABOUT_BYTES = 4096 };

/* The table, at its place in shared memory. */
struct totals;

/* Returns a new table that the children of forks share, or NULL with errno. */
struct totals *totals_make(void);

/* Makes the open, empty file a table, and maps it. NULL with errno. */
struct totals *totals_make_in(int fd);

/* Maps the table that another process has made in this file; NULL: it cannot be read, or is of
 * another version. */
struct totals *totals_open(const char *path);

/* Whether this process is to report the sums: it has made the table, or the process that has is
 * gone. */
bool totals_is_mine(struct totals *totals);

/* The process that has made the table. */
int totals_maker(const struct totals *totals);

/* One process at a time may have the table's output as its task. Whether this one has got it:
 * nobody had it, or who had it is gone. */
bool totals_become_writer(struct totals *totals);

/* Whether this process had it, and has no longer. */
bool totals_leave_writer(struct totals *totals);

/* A process's part in a table. */
struct totals_part {
    struct totals *totals;
    _Atomic int64_t seen; /* nanoseconds of the clock up to which its time is in the table */
    atomic_bool joined;   /* it has made a call */
    _Atomic(const void *) thread;  /* that made the first */
    _Atomic uint64_t operand[128]; /* that were sent up, by their digests */
};

/* Begins the part of a process that runs since now: at its start, or in the child of a fork. */
void totals_begin(struct totals_part *part, struct totals *totals);

/* Thread-safe, and allowed in signal handlers. */
void totals_add(struct totals_part *part, const struct accel_record *record);
void totals_know(struct totals *totals, unsigned facts);

/* A thread begins to start a GPU, or to load what a routine needs there, while calls run on the
 * CPU; or it has ended that. */
void totals_starting(struct totals *totals, bool begins);

/* Keeps what is told of a part, for people or as JSON, unless that is told already. */
void totals_tell(struct totals *totals, int part, bool json, const char *text);

/* Returns what has been told, NULL: nothing. */
const char *totals_told(struct totals *totals, int part, bool json);

/* At the process's end: its time until now. */
void totals_end(struct totals_part *part);

/* Row i of TOTALS_ROWS; false if nothing is in it. take: the sums are the caller's, and the table's
 * are 0. */
bool totals_read(struct totals *totals, int i, bool take, struct totals_row *row);
struct totals_sums totals_read_sums(struct totals *totals, bool take);

#endif
