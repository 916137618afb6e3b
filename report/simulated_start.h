/*
 * CUDA's start in virtual time: which of a program's calls would have run on the GPU, if libaccel
 * had started CUDA on its own thread while the program ran on. The program ran on the CPU, so its
 * clock is put forward by what the calls so far would have saved. Pure.
 *
 * Calls come one after the other. The start begins when the calls together would have gained
 * `begins_ms`. A call that would gain `waits_from_ms` waits for it. A routine's first call has its
 * kernels loaded, on one more thread: calls of it run on the CPU until then, but one that gains
 * more than that takes (dispatch/warm_up.h).
 */
#ifndef ACCEL_SIMULATED_START_H
#define ACCEL_SIMULATED_START_H

#include <stdbool.h>
#include <stdint.h>

struct simulated_start_rules {
    double cuda_ms;    /* from nothing to the first product */
    double kernels_ms; /* a routine's first call takes longer by this, */
    double solver_ms;  /* and the first one of LAPACK by this */
    double begins_ms, waits_from_ms;
};

/* A process. Zero at first. */
struct simulated_start {
    bool began, never; /* never: the child of a fork, whose parent had begun */
    bool solver_is_open;
    double gain_ms;
    double ready_ms;  /* CUDA is up, */
    double loaded_ms; /* and the thread that loads kernels has done what it was asked for */
    double saved_ms;  /* by the calls so far */
};

/* A routine: zero at first. `with_start`: loaded with CUDA, as products are. */
struct simulated_kernels {
    bool asked, with_start, solver;
    double ready_ms;
};

/* A call that a GPU in use would have run in gpu_ms, and that took the CPU cpu_ms, from start_ms of
 * the process' clock on. Returns the milliseconds that it would have saved; 0: it would have stayed
 * on the CPU. */
double simulated_start_call(struct simulated_start *s, struct simulated_kernels *kernels,
                            const struct simulated_start_rules *rules, double start_ms,
                            double cpu_ms, double gpu_ms);

#endif
