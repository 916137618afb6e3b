/*
 * What a thread spends on something. Thread-safe; keeps errno.
 */
#ifndef ACCEL_SPENT_H
#define ACCEL_SPENT_H

/* By the clock; of a CPU's time; and how often another thread took its CPU. */
struct spent {
    double wall_ms, cpu_ms;
    long preempted;
};

/* What the thread has spent so far, before something and after it. Where the kernel does not
 * say, the CPU's time is the clock's. */
struct spent spent_begin(void);
struct spent spent_end(void);

/*
 * Returns what the thread computed for certain between the two, in milliseconds. Time that it
 * slept counts, as it may have waited for helpers, and so does all time if nobody took its CPU.
 * Else the rest may be others', and the CPU's time alone is sure.
 */
double spent_surely(const struct spent *begin, const struct spent *end);

#endif
