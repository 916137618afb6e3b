#include "ranks.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* -1: not known. */
enum { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, NODES, FIELDS };

/* Innermost first: mpirun in a Slurm job starts its daemons with srun, and the ranks inherit srun's
 * variables. srun or mpirun may start a torchrun on each node, not the other way round. */
static const char *const launchers[][FIELDS] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", NULL},
    {"PMIX_RANK", NULL, NULL, NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL}, /* MPICH, Intel MPI */
    {"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", NULL},   /* Cray */
    {"PALS_RANKID", NULL, "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", NULL},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", NULL, "FLUX_JOB_NNODES"},
};

/* The decimal number in `text`, at most `max`; -1 for anything else. */
static int64_t digits(const char **at, int64_t max)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        value = value * 10 + (**at - '0');
        if (value > max)
            return -1;
    }
    return *at == start ? -1 : value;
}

static int64_t number(const char *name, int64_t max)
{
    const char *value = name ? getenv(name) : NULL;
    int64_t found = value ? digits(&value, max) : -1;
    return value && !*value ? found : -1;
}

static int count_of(const char *name)
{
    return (int)number(name, INT_MAX - 1);
}

/* torchrun and its like. The names are common words: they count together, and if there are several
 * processes. Notebooks and clouds set some of them for one. */
static void read_torchrun(int field[FIELDS])
{
    const int rank = count_of("RANK"), size = count_of("WORLD_SIZE");
    const int local_rank = count_of("LOCAL_RANK");
    if (rank < 0 || local_rank < 0 || size < 2 || rank >= size)
        return;
    field[RANK] = rank;
    field[SIZE] = size;
    field[LOCAL_RANK] = local_rank;
    field[LOCAL_SIZE] = count_of("LOCAL_WORLD_SIZE");
}

/* A node's entry in a list such as 4(x2),3. */
static int tasks_of_node(const char *list, int node)
{
    while (list && *list && node >= 0) {
        int64_t tasks = digits(&list, INT_MAX - 1), times = 1;
        if (list[0] == '(' && list[1] == 'x') {
            list += 2;
            times = digits(&list, INT_MAX - 1);
            if (*list++ != ')')
                return -1;
        }
        if (tasks < 0 || times < 0 || (*list && *list != ','))
            return -1;
        if (node < times)
            return (int)tasks;
        node -= (int)times;
        list += *list == ',';
    }
    return -1;
}

/* A job's own shell has a PROCID too. The highest step numbers are Slurm's own: batch, extern,
 * interactive. */
static void read_slurm(int field[FIELDS])
{
    int64_t step = number("SLURM_STEP_ID", UINT32_MAX);
    if (step < 0)
        step = number("SLURM_STEPID", UINT32_MAX);
    field[RANK] = count_of("SLURM_PROCID");
    if (step < 0 || step >= 0xfffffff0)
        return;
    field[SIZE] = count_of("SLURM_STEP_NUM_TASKS");
    field[LOCAL_RANK] = count_of("SLURM_LOCALID");
    field[LOCAL_SIZE] =
        tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), count_of("SLURM_NODEID"));
    field[NODES] = count_of("SLURM_STEP_NUM_NODES");
}

/* Fills in unknown values from `other`, if it names the same rank. */
static void add_unknown(int field[FIELDS], int other[FIELDS])
{
    if (other[RANK] < 0 || (field[RANK] >= 0 && other[RANK] != field[RANK]))
        return;
    if (other[SIZE] <= other[RANK])
        other[SIZE] = -1;
    if (field[SIZE] >= 0 && other[SIZE] >= 0 && field[SIZE] != other[SIZE])
        return;
    for (int i = 0; i < FIELDS; i++)
        if (field[i] < 0)
            field[i] = other[i];
    if (field[SIZE] >= 0 && field[LOCAL_RANK] >= field[SIZE])
        field[LOCAL_RANK] = -1;
    if (field[LOCAL_SIZE] <= field[LOCAL_RANK] || field[LOCAL_SIZE] == 0 ||
        (field[SIZE] >= 0 && field[LOCAL_SIZE] > field[SIZE]))
        field[LOCAL_SIZE] = -1;
}

void ranks_read(struct accel_ranks *ranks)
{
    int known[FIELDS] = {-1, -1, -1, -1, -1}, torchrun[FIELDS] = {-1, -1, -1, -1, -1};
    read_torchrun(torchrun);
    add_unknown(known, torchrun);
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int field[FIELDS];
        for (int j = 0; j < FIELDS; j++)
            field[j] = count_of(launchers[i][j]);
        add_unknown(known, field);
    }
    int slurm[FIELDS] = {-1, -1, -1, -1, -1};
    read_slurm(slurm);
    add_unknown(known, slurm);

    int size = known[SIZE], local_size = known[LOCAL_SIZE];
    int nodes = known[NODES] > 0 ? known[NODES] : 1;
    if (size < 0)
        size = local_size > 0 ? local_size : 1;
    if (local_size < 0)
        local_size = size / nodes + (size % nodes != 0);
    ranks->rank = known[RANK] > 0 ? known[RANK] : 0;
    ranks->size = size;
    ranks->local_rank = known[LOCAL_RANK] >= 0 ? known[LOCAL_RANK] : ranks->rank % local_size;
    ranks->local_size = local_size > ranks->local_rank ? local_size : ranks->local_rank + 1;
    ranks->mpi = size > 1;
}
