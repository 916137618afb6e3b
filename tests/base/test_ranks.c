#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/host/ranks.h"
#include "tests/lib/environment.h"

/* The ranks in an environment of these variables alone: NAME=value, separated by spaces. */
static struct accel_ranks ranks_with(const char *variables)
{
    static char copy[1000];
    struct accel_ranks ranks;
    clear_environment();
    strcpy(copy, variables);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = 0;
        setenv(word, equals + 1, 1);
    }
    ranks_read(&ranks);
    return ranks;
}

static void are(const char *variables, int rank, int size, int local_rank, int local_size)
{
    struct accel_ranks r = ranks_with(variables);
    if (r.rank != rank || r.size != size || r.local_rank != local_rank ||
        r.local_size != local_size || r.mpi != (size > 1))
        fail_msg("%s: rank %d of %d, %d of %d, %s", variables, r.rank, r.size, r.local_rank,
                 r.local_size, r.mpi ? "mpi" : "no mpi");
}

#define BATCH "SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=8 "
#define STEP(proc, local, node)                                                                    \
    "SLURM_NTASKS=8 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=8 "                        \
    "SLURM_STEP_NUM_NODES=3 SLURM_STEP_TASKS_PER_NODE=3(x2),2 SLURM_PROCID=" proc                  \
    " SLURM_LOCALID=" local " SLURM_NODEID=" node " "

static void launchers(void **state)
{
    (void)state;
    are("", 0, 1, 0, 1);
    are("OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
        "OMPI_COMM_WORLD_LOCAL_SIZE=4",
        5, 8, 1, 4);
    are("PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 5, 8, 1, 4);
    are("PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=4", 5, 8, 1, 4);
    are("PMI_RANK=5 PMI_SIZE=8 PALS_RANKID=5 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=4", 5, 8, 1, 4);
    are("MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=8 MV2_COMM_WORLD_LOCAL_RANK=1 "
        "MV2_COMM_WORLD_LOCAL_SIZE=4",
        5, 8, 1, 4);
    are("FLUX_TASK_RANK=5 FLUX_JOB_SIZE=7 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_NNODES=2", 5, 7, 1, 4);
    are("PMIX_RANK=5", 5, 1, 0, 1);
    are("OMPI_COMM_WORLD_RANK=7", 7, 1, 0, 1);
}

static void slurm(void **state)
{
    (void)state;
    are(STEP("4", "1", "1"), 4, 8, 1, 3);
    are(STEP("7", "1", "2"), 7, 8, 1, 2);
    are(STEP("4", "1", "1") "PMIX_RANK=4", 4, 8, 1, 3);
    are(STEP("4", "1", "1") "PMI_RANK=4 PMI_SIZE=8", 4, 8, 1, 3);
    /* The script of a job, and its shell: one process. */
    are(BATCH, 0, 1, 0, 1);
    are(BATCH "SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=8", 0, 1, 0, 1);
    are("SLURM_PROCID=3", 3, 1, 0, 1);
    /* An mpirun in the script; one whose daemons srun has started. */
    are(BATCH "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
              "OMPI_COMM_WORLD_LOCAL_SIZE=4",
        5, 8, 1, 4);
    are("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_PROCID=1 "
        "SLURM_LOCALID=0 SLURM_NODEID=1 PMI_RANK=1 PMI_SIZE=8",
        1, 8, 1, 8);
    /* Lists of tasks. */
    static const char *const lists[] = {"3(x2",   "3(x2)a", "a",     "",        "3(x),2",
                                        "3,,2",   "(x2)",   "3(x2)", "3(y2),2", "99999999999(x3)",
                                        "-3(x3)", "3,3"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[300] = "SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=7 SLURM_LOCALID=1 "
                         "SLURM_NODEID=2 SLURM_STEP_NUM_NODES=3 SLURM_STEP_TASKS_PER_NODE=";
        are(strcat(text, lists[i]), 7, 8, 1, 3);
    }
    are("SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=0 "
        "SLURM_STEP_TASKS_PER_NODE=2",
        1, 2, 1, 2);
}

#define TORCHRUN "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 "

static void torchrun(void **state)
{
    (void)state;
    are(TORCHRUN, 5, 8, 1, 4);
    are("RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", 5, 8, 1, 8);
    /* srun and mpirun start one on each node. */
    are(TORCHRUN STEP("1", "0", "1"), 5, 8, 1, 4);
    are(TORCHRUN "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 "
                 "OMPI_COMM_WORLD_LOCAL_SIZE=1",
        5, 8, 1, 4);
    /* The names are common words. */
    are("RANK=5 WORLD_SIZE=8", 0, 1, 0, 1);
    are("RANK=5 LOCAL_RANK=1", 0, 1, 0, 1);
    are("WORLD_SIZE=8 LOCAL_RANK=1", 0, 1, 0, 1);
    are("RANK=5 WORLD_SIZE=5 LOCAL_RANK=1", 0, 1, 0, 1);
    are("RANK=first WORLD_SIZE=8 LOCAL_RANK=1", 0, 1, 0, 1);
    are("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 PMI_RANK=1 PMI_SIZE=2", 1, 2, 1, 2);
}

static void order(void **state)
{
    (void)state;
    /* What a launcher leaves open is taken from one that names the same rank of as many. */
    are("PMIX_RANK=5 PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 5, 8, 1, 4);
    are("PMIX_RANK=5 PMI_RANK=6 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 5, 1, 0, 1);
    are("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMI_RANK=3 PMI_SIZE=4", 1, 2, 1, 2);
    are("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 "
        "FLUX_TASK_LOCAL_ID=0",
        1, 2, 1, 2);
    /* Nobody says how many share the machine: all. */
    are("PMI_RANK=5 PMI_SIZE=8", 5, 8, 5, 8);
}

static void nonsense(void **state)
{
    (void)state;
    are("OMPI_COMM_WORLD_RANK=a PMI_RANK=1 PMI_SIZE=2", 1, 2, 1, 2);
    are("OMPI_COMM_WORLD_RANK= PMI_RANK=1 PMI_SIZE=2", 1, 2, 1, 2);
    are("PMI_RANK=-1 PMI_SIZE=2", 0, 1, 0, 1);
    are("PMI_RANK=1x PMI_SIZE=2", 0, 1, 0, 1);
    are("PMI_RANK=99999999999999999999 PMI_SIZE=2", 0, 1, 0, 1);
    are("PMI_RANK=1 PMI_SIZE=2.0", 1, 1, 0, 1);
    are("PMI_RANK=1 PMI_SIZE=0", 1, 1, 0, 1);
    are("PMI_RANK=4 PMI_SIZE=2", 4, 1, 0, 1);
    are("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=7 MPI_LOCALNRANKS=2", 1, 4, 1, 2);
    are("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=9", 1, 4, 1, 4);
    are("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=1", 1, 4, 1, 4);
    are("PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=3", 0, 1, 0, 1);
    are("PALS_RANKID=1 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=2147483647", 1, 1, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers), cmocka_unit_test(slurm),    cmocka_unit_test(torchrun),
        cmocka_unit_test(order),     cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
