/*
 * How many threads may help (copy_pool.h), so that they leave the CPUs to the program's own.
 * Measured by the helpers themselves: one that gets markedly less of a CPU than it would use shares
 * that CPU with somebody who computes. Threads that only wait for work, by a loop of sched_yield(),
 * give way by themselves, and do not count. A pure function of samples and of the clock. Not
 * thread-safe.
 */
#ifndef ACCEL_HELPER_LIMIT_H
#define ACCEL_HELPER_LIMIT_H

#include <stdbool.h>

/* What a helper did since its last sample, in milliseconds: its time within tasks, the CPU's time
 * that it got, and for how long it was ready while another thread ran on its CPU;
 * HELPER_LIMIT_UNKNOWN: the kernel does not say. preempted: how often another thread took its CPU.
 * Without that, what it did not get it did not want: it slept, or waited for a page. Of what it did
 * not get, what is beyond queued_ms was taken by nobody here: by a hypervisor, say. */
struct helper_limit_sample {
    double wall_ms, cpu_ms, queued_ms;
    long preempted;
};

#define HELPER_LIMIT_UNKNOWN (-1.0)

/* A helper gives a sample when it has worked for so long: a scheduler's time slice, and a system
 * call in many pieces. */
#define HELPER_LIMIT_SAMPLE_MS 4.0

/* After there were too many, no more are tried for a while: so long at first, each time twice as
 * long, and at most so long. */
#define HELPER_LIMIT_PAUSE_MS   50.0
#define HELPER_LIMIT_LONGEST_MS 1000.0

struct helper_limit {
    int most, allowed;
    double wall_ms, cpu_ms;    /* of the samples since the last judgement */
    double pause_ms, until_ms; /* the next pause, and the end of the last one */
    bool tried;                /* more than before may help, and have not been judged yet */
};

/* Reads from the text of a thread's /proc/.../schedstat how long it was ready and did not run
 * (Documentation/scheduler/sched-stats.rst), in milliseconds. Returns false where it does not say
 * so: a kernel that does not count has zeros, even of a thread that runs. */
bool helper_limit_queued(const char *text, double *ms);

/* Begins with `most` helpers. */
void helper_limit_start(struct helper_limit *g, int most);

/* Adds a sample, and judges when there are enough: with less than 85 % of the CPUs, fewer may help,
 * at last none; with more than 93 %, behind the pause, half as many more. */
void helper_limit_add(struct helper_limit *g, const struct helper_limit_sample *sample,
                      double now_ms);

/* Returns how many may help now. */
int helper_limit_allowed(struct helper_limit *g, double now_ms);

#endif
