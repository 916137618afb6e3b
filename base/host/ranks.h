/*
 * The process's MPI rank, from the environment of the launcher: Open MPI, PMIx, MPICH and its
 * derivatives, MVAPICH, PALS, Flux, Slurm; or torchrun's. Calls no MPI function.
 */
#ifndef ACCEL_RANKS_H
#define ACCEL_RANKS_H

#include <stdbool.h>

struct accel_ranks {
    int rank, size;             /* of all processes of the program */
    int local_rank, local_size; /* of the processes on this machine */
    bool mpi;                   /* size > 1 */
};

/* Gives rank 0 of 1 if no launcher is known. Ignores values that are no numbers or contradict the
 * rank. Believes the innermost launcher; another launcher that names the same rank fills in missing
 * values. The size is 1 if no variable gives it, whatever the rank, and in the script of a Slurm
 * job, which is no task.
 *
 * If no variable gives local_size, it is all processes, divided by the number of nodes if that is
 * known: too small a share of a GPU costs tiles, too large a share takes memory from other
 * processes.
 *
 * Not thread-safe against changes of the environment. */
void ranks_read(struct accel_ranks *ranks);

#endif
