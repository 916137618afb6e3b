/*
 * Tests in the child of a fork, which begins without threads, on a machine that seems to have as
 * many CPUs as the test says. For programs that are linked with
 * --wrap=sched_getaffinity,--wrap=sched_setaffinity,--wrap=pthread_create,--wrap=getrusage.
 */
#ifndef ACCEL_TEST_IN_CHILD_H
#define ACCEL_TEST_IN_CHILD_H

#include <stdatomic.h>
#include <stdbool.h>

/* Ends the child if the condition is false: a failure of cmocka's would go on with the other tests
 * there. */
#define must(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))
_Noreturn void broken(const char *condition, int line);

/* In the child: the number of CPUs, and how often libaccel has tried to start a thread. The calling
 * thread seems to be bound to one of the CPUs, the process's first thread to the others. */
extern int cpus;
extern atomic_int attempts;

/* libaccel's threads get all of a CPU that they want, whatever else the machine does; in the
 * child. */
extern bool undisturbed;

/* The number of CPUs to which a thread has bound itself; 0: it has not. */
extern _Thread_local int bound_to;

/* Returns the threads of this process that the kernel knows by this name. */
int threads_named(const char *name);

/* Runs a test of cmocka's in a child. libaccel can start `with_threads` threads there; the test's
 * own, without attributes, do not count. */
void in_child(void (*test)(void), int with_cpus, int with_threads);

#endif
