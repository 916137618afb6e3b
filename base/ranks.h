/*
 * Which of how many processes this is, as the launcher says in the environment: Open MPI, PMIx, MPICH and what
 * derives from it, MVAPICH, PALS, Flux, Slurm. MPI itself is not asked.
 */
#ifndef ACCEL_RANKS_H
#define ACCEL_RANKS_H

#include <stdbool.h>

struct accel_ranks {
    int rank, size;             /* of all processes of the program */
    int local_rank, local_size; /* of those on this machine */
    bool mpi;                   /* size > 1 */
};

/* Rank 0 of 1 where no launcher is known; values that are no numbers, or contradict the rank, are ignored. One
 * launcher is believed, the innermost; what it leaves open is taken from another that names the same rank.
 * The size is 1 where nothing says it, whatever the rank; so it is in the script of a Slurm job, which is no task.
 *
 * Where nothing says how many processes share the machine, it is all of them, spread evenly over the
 * nodes if their number is known: a share of a GPU that is too small costs tiles, one that is too large takes what
 * other processes have been promised.
 *
 * Not thread-safe against changes of the environment. */
void ranks_read(struct accel_ranks *ranks);

#endif
