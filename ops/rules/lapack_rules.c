#include "lapack_rules.h"

#include <math.h>

#include "gpu/pack/chunks.h"

/* ---- The cost of groups of routines ---- */

const struct accel_cost lapack_blocks_cost = {
    .nominal = {.cpu_share = 0.6, .gpu_share = 0.6, .gpu_step_ms = 0.003}};
const struct accel_cost lapack_solves_cost = {
    .nominal = {.cpu_share = 0.7, .gpu_share = 0.7, .gpu_step_ms = 0.0005}};
const struct accel_cost lapack_reflects_cost = {
    .nominal = {.cpu_share = 0.5, .gpu_share = 0.4, .gpu_step_ms = 0.008}};
const struct accel_cost lapack_iterates_cost = {LAPACK_ITERATES_NOMINAL};

/* ---- The least workspace ---- */

bool lapack_is_tall(int64_t longer, int64_t shorter)
{
    /* longer >= floor(1.6 shorter), without libm */
    return (double)longer + 1 > (double)shorter * 1.6;
}

struct accel_lengths lapack_n_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->n, 0, 0};
}

static struct lapack_sizes lapack_sizes_of(const struct accel_call *call)
{
    struct lapack_sizes x = {.call = call,
                             .m = accel_min(call->blas.size[ACCEL_m], LAPACK_SIDE_MOST),
                             .n = accel_min(call->blas.size[ACCEL_n], LAPACK_SIDE_MOST),
                             .nrhs = accel_min(call->blas.size[ACCEL_nrhs], LAPACK_SIDE_MOST),
                             .is_complex = accel_is_complex(call->routine->dtype),
                             .vectors = lapack_wants_vectors(call)};
    x.mn = accel_min(accel_min(x.m, x.n), LAPACK_SQUARE_MOST);
    x.mx = accel_max(x.m, x.n);
    return x;
}

void lapack_left_by_blocks(const struct lapack_sizes *sizes, int64_t reflectors, int64_t crossover,
                           struct accel_lengths *lengths)
{
    const int64_t block = lengths->work / accel_max(1, sizes->n);
    if (block <= 1 || block >= reflectors || crossover >= reflectors)
        lengths->work = accel_max(1, sizes->n);
}

struct accel_lengths lapack_least_lengths(const struct accel_call *call)
{
    const struct accel_rules *rules = accel_rules_of(call->op);
    const struct lapack_sizes x = lapack_sizes_of(call);
    return rules->workspace ? rules->workspace(&x) : (struct accel_lengths){1, 0, 0};
}

void lapack_lengths_left(const struct accel_call *call, struct accel_lengths *lengths)
{
    const struct accel_rules *rules = accel_rules_of(call->op);
    const struct lapack_sizes x = lapack_sizes_of(call);
    if (rules->left && lengths->work > 0)
        rules->left(&x, lengths);
}

/* Returns the name of a length of workspace below the least one, or NULL. */
static const char *short_workspace(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    const struct accel_lengths least = lapack_least_lengths(call);
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_LWORK || !call->blas.has_work)
            continue;
        int64_t wanted = arg->slot == ACCEL_lwork    ? accel_max(1, least.work)
                         : arg->slot == ACCEL_lrwork ? accel_max(1, least.rwork)
                                                     : accel_max(1, least.iwork);
        if (call->blas.size[arg->slot] < wanted)
            return arg->name;
    }
    return NULL;
}

/* ---- Arguments that depend on others ---- */

static const char *range_fault(const struct accel_call *call)
{
    int64_t n = call->blas.size[ACCEL_n], il = call->blas.size[ACCEL_il],
            iu = call->blas.size[ACCEL_iu];
    char range = call->blas.flag[ACCEL_range];
    if (range == 'V' && n > 0 && !(call->blas.scalar[ACCEL_vl].re < call->blas.scalar[ACCEL_vu].re))
        return "vu";
    if (range == 'I' && (il < 1 || il > accel_max(1, n)))
        return "il";
    return range == 'I' && (iu < accel_min(n, il) || iu > n) ? "iu" : NULL;
}

static const char *dependent_fault(const struct accel_call *call)
{
    const struct accel_rules *rules = accel_rules_of(call->op);
    return rules->fault ? rules->fault(call) : NULL;
}

const char *lapack_shape_fault(const struct accel_call *call)
{
    const char *fault = dependent_fault(call);
    return fault || lapack_is_query(call) ? fault : short_workspace(call);
}

const char *lapack_fault(const struct accel_call *call)
{
    const char *fault = dependent_fault(call);
    if (!fault && call->blas.flag[ACCEL_range])
        fault = range_fault(call);
    return fault ? fault : lapack_shape_fault(call);
}

bool lapack_looks_at(const struct accel_call *call, const struct accel_arg *arg)
{
    char range = call->blas.flag[ACCEL_range];
    if (arg->kind == ACCEL_ARG_INTEGER)
        return (arg->slot != ACCEL_il && arg->slot != ACCEL_iu) || range == 'I';
    if (arg->slot == ACCEL_vl || arg->slot == ACCEL_vu)
        return range == 'V' && call->blas.size[ACCEL_n] > 0;
    if (lapack_fault(call) || lapack_is_query(call) || lapack_is_empty(call))
        return false;
    /* The one eigenvalue of a matrix of order 1 needs no tolerance. */
    return arg->slot != ACCEL_abstol || call->blas.size[ACCEL_n] > 1;
}

bool lapack_is_query(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_LWORK && call->blas.has_work &&
            call->blas.size[routine->arg[i].slot] == -1)
            return true;
    return false;
}

bool lapack_has_no_matrix(const struct accel_call *call)
{
    return call->blas.size[ACCEL_n] == 0 ||
           (accel_has_size(call->routine, ACCEL_m) && call->blas.size[ACCEL_m] == 0);
}

bool lapack_is_part(const struct accel_call *call)
{
    return accel_is_lapack(call->routine) && call->blas.flag[ACCEL_range] &&
           call->blas.flag[ACCEL_range] != 'A';
}

bool lapack_is_empty(const struct accel_call *call)
{
    const struct accel_rules *rules = accel_rules_of(call->op);
    return rules->is_empty ? rules->is_empty(call) : accel_has_zero_size(call, ACCEL_SIZES);
}

bool lapack_is_supported(const struct accel_call *call)
{
    if (!accel_gpu_of(call->op)->steps || accel_is_rows_of_lapack(call))
        return false;
    const bool has_bounds = call->blas.flag[ACCEL_range] == 'V'; /* or they are anything */
    for (int i = ACCEL_vl; i < ACCEL_SCALARS; i++)
        if (isnan(call->blas.scalar[i].re) && (has_bounds || (i != ACCEL_vl && i != ACCEL_vu)))
            return false;
    return true;
}

double lapack_sent_bytes(const struct accel_call *call, const struct accel_span *x, bool down)
{
    const struct blas_arguments *blas = &call->blas;
    const bool a = x == &call->span[ACCEL_a], b = x == &call->span[ACCEL_b],
               eigenvalues = call->op->traits.iterates;
    const int64_t size = (int64_t)accel_dtype_size(x->dtype);
    const double whole = (double)x->rows * (double)x->cols * (double)size;
    if (!blas->flag[ACCEL_uplo] || x->rows != x->cols || x->rows > LAPACK_SQUARE_MOST ||
        !(a || (b && eigenvalues)))
        return whole;
    if (a && down && eigenvalues)
        return blas->flag[ACCEL_jobz] == 'V' && !blas->flag[ACCEL_range] ? whole : 0;
    return (double)chunks_triangle_sent(x->rows, size);
}

double lapack_gpu_bytes(const struct accel_call *call)
{
    double sum = 0, first = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        double bytes =
            x->ptr ? (double)x->rows * (double)x->cols * (double)accel_dtype_size(x->dtype) : 0;
        sum += bytes;
        first = i == ACCEL_a ? bytes : first;
    }
    if (call->op->traits.packed && first > 0) {
        const double order = (double)call->blas.size[ACCEL_n];
        sum += order * order * (double)accel_dtype_size(call->routine->dtype);
    }
    return call->op->traits.iterates ? sum + first : sum;
}
