#include "rules.h"

#include <math.h>

/* ---- The least workspace ---- */

/* LWORK, LRWORK and LIWORK. */
struct lengths {
    int64_t work, rwork, iwork;
};

/* Sizes beyond these are those of no matrix: a side of a square one, and of any. With them, no length overflows. */
static const int64_t square_most = (int64_t)1 << 29, side_most = (int64_t)1 << 58;

/* From floor(1.6 * shorter) on, the long side is reduced to the short one by QR first (ilaenv, ISPEC = 6). */
static bool is_tall(int64_t longer, int64_t shorter)
{
    return (double)longer + 1 > (double)shorter * 1.6;
}

/* ?syevd, ?heevd and their generalized forms. */
static struct lengths divide_and_conquer(bool complex, bool vectors, int64_t n)
{
    if (n <= 1)
        return (struct lengths){1, 1, 1};
    if (complex)
        return vectors ? (struct lengths){2 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n}
                       : (struct lengths){n + 1, n, 1};
    return vectors ? (struct lengths){1 + 6 * n + 2 * n * n, 0, 3 + 5 * n}
                   : (struct lengths){2 * n + 1, 0, 1};
}

static int64_t gesvd_work(const struct accel_call *call, bool complex, int64_t mn, int64_t mx)
{
    bool tall = call->size[ACCEL_m] >= call->size[ACCEL_n];
    char longer = call->flag[tall ? ACCEL_jobu : ACCEL_jobvt];
    if (complex)
        return is_tall(mx, mn) && longer == 'N' ? 3 * mn : 2 * mn + mx;
    return is_tall(mx, mn) && longer == 'N' ? 5 * mn : accel_max(3 * mn + mx, 5 * mn);
}

/* As the code of LAPACK has it from 3.7 on, which asks for less than the documentation. */
static int64_t gesdd_work(char jobz, bool complex, int64_t mn, int64_t mx)
{
    int64_t square = mn * mn, inner = jobz == 'N' ? 7 * mn : 3 * square + 4 * mn;
    if (complex) {
        if (mx < mn * 17 / 9)
            return 2 * mn + mx + (jobz == 'O' ? square : 0);
        return jobz == 'N'   ? 3 * mn
               : jobz == 'O' ? 2 * square + 3 * mn
               : jobz == 'S' ? square + 3 * mn
                             : square + accel_max(3 * mn, mn + mx);
    }
    if (mx < mn * 11 / 6)
        return 3 * mn + accel_max(mx, inner + (jobz == 'O' ? square : 0));
    return jobz == 'N'   ? inner + mn
           : jobz == 'O' ? inner + 2 * square + 3 * mn
           : jobz == 'S' ? inner + square + 3 * mn
                         : square + accel_max(3 * mn + inner, mn + mx);
}

/* Rows that the bidiagonal reduction of ?gelss and ?gelsd sees: fewer after a QR factorisation. */
static int64_t reduced(const struct accel_call *call, int64_t mn, int64_t mx)
{
    return call->size[ACCEL_m] >= call->size[ACCEL_n] && is_tall(mx, mn) ? mn : mx;
}

static int64_t gelss_work(const struct accel_call *call, bool complex, int64_t mn, int64_t mx)
{
    int64_t rows = reduced(call, mn, mx), nrhs = accel_min(call->size[ACCEL_nrhs], side_most);
    return complex ? 2 * mn + accel_max(mx, nrhs)
                   : accel_max(3 * mn + accel_max(rows, nrhs), 5 * mn);
}

/* With the smallest subproblem that ilaenv's ISPEC = 9 has for the divide and conquer of ?lalsd. */
static int64_t gelsd_work(const struct accel_call *call, bool complex, int64_t mn, int64_t mx)
{
    const int64_t smallest = 25;
    int64_t nrhs = accel_min(call->size[ACCEL_nrhs], side_most / accel_max(1, mn));
    int64_t rows = reduced(call, mn, mx);
    int64_t levels =
        2 * mn > smallest + 1; /* INT(LOG2(mn / (smallest + 1))) + 1, and INT cuts off towards 0 */
    for (int64_t part = mn / (smallest + 1); part > 1; part /= 2)
        levels++;
    if (complex)
        return 2 * mn + accel_max(rows, mn * nrhs);
    int64_t solve =
        9 * mn + 2 * mn * smallest + 8 * mn * levels + mn * nrhs + (smallest + 1) * (smallest + 1);
    if (call->size[ACCEL_m] < call->size[ACCEL_n])
        rows = mn;
    return 3 * mn + accel_max(rows, accel_max(nrhs, solve));
}

static struct lengths least_lengths(const struct accel_call *call)
{
    bool complex = accel_is_complex(call->routine->dtype), vectors = accel_wants_vectors(call);
    int64_t m = accel_min(call->size[ACCEL_m], side_most),
            n = accel_min(call->size[ACCEL_n], side_most),
            nrhs = accel_min(call->size[ACCEL_nrhs], side_most);
    int64_t mn = accel_min(accel_min(m, n), square_most), mx = accel_max(m, n);
    enum accel_family family = call->routine->family;
    switch (family) {
    case ACCEL_GETRI:
    case ACCEL_GEQRF:
    case ACCEL_ORGQR:
        return (struct lengths){n, 0, 0};
    case ACCEL_ORMQR:
        return (struct lengths){call->flag[ACCEL_side] == 'L' ? n : m, 0, 0};
    case ACCEL_GELS:
        return (struct lengths){mn + accel_max(mn, nrhs), 0, 0};
    case ACCEL_GELSS:
        return (struct lengths){gelss_work(call, complex, mn, mx), 0, 0};
    case ACCEL_GELSD:
        return (struct lengths){gelsd_work(call, complex, mn, mx), 0, 0};
    case ACCEL_SYEV:
    case ACCEL_SYGV:
        return (struct lengths){complex ? 2 * n - 1 : 3 * n - 1, 0, 0};
    case ACCEL_SYEVD:
    case ACCEL_SYGVD:
        return divide_and_conquer(complex, vectors, accel_min(n, square_most));
    case ACCEL_SYEVR:
        return complex ? (struct lengths){2 * n, 24 * n, 10 * n}
                       : (struct lengths){26 * n, 0, 10 * n};
    case ACCEL_SYEVX:
    case ACCEL_SYGVX:
        return (struct lengths){n <= 1 && family == ACCEL_SYEVX ? 1
                                : complex                       ? 2 * n
                                                                : 8 * n,
                                0, 0};
    case ACCEL_GESVD:
        return (struct lengths){gesvd_work(call, complex, mn, mx), 0, 0};
    case ACCEL_GESDD:
        return (struct lengths){gesdd_work(call->flag[ACCEL_jobz], complex, mn, mx), 0, 0};
    case ACCEL_GEEV:
        return (struct lengths){complex ? 2 * n : vectors ? 4 * n : 3 * n, 0, 0};
    default:
        return (struct lengths){1, 0, 0};
    }
}

/* The argument that is a length of workspace below the least one. */
static const char *short_workspace(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    const struct lengths least = least_lengths(call);
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_LWORK || !call->has_work)
            continue;
        int64_t wanted = arg->slot == ACCEL_lwork    ? accel_max(1, least.work)
                         : arg->slot == ACCEL_lrwork ? accel_max(1, least.rwork)
                                                     : accel_max(1, least.iwork);
        if (call->size[arg->slot] < wanted)
            return arg->name;
    }
    return NULL;
}

/* ---- What depends on what ---- */

static const char *range_fault(const struct accel_call *call)
{
    int64_t n = call->size[ACCEL_n], il = call->size[ACCEL_il], iu = call->size[ACCEL_iu];
    char range = call->flag[ACCEL_range];
    if (range == 'V' && n > 0 && !(call->scalar[ACCEL_vl].re < call->scalar[ACCEL_vu].re))
        return "vu";
    if (range == 'I' && (il < 1 || il > accel_max(1, n)))
        return "il";
    return range == 'I' && (iu < accel_min(n, il) || iu > n) ? "iu" : NULL;
}

static const char *dependent_fault(const struct accel_call *call)
{
    int64_t m = call->size[ACCEL_m], n = call->size[ACCEL_n], k = call->size[ACCEL_k];
    switch (call->routine->family) {
    case ACCEL_ORGQR:
        return n > m ? "n" : k > n ? "k" : NULL;
    case ACCEL_ORMQR:
        return k > accel_call_size(call, ACCEL_order) ? "k" : NULL;
    case ACCEL_SYGV:
    case ACCEL_SYGVD:
    case ACCEL_SYGVX:
        if (call->size[ACCEL_itype] < 1 || call->size[ACCEL_itype] > 3)
            return "itype";
        break;
    case ACCEL_GESVD:
        return call->flag[ACCEL_jobu] == 'O' && call->flag[ACCEL_jobvt] == 'O' ? "jobvt" : NULL;
    case ACCEL_LASWP: /* which has no INFO: nothing is done, or what cannot be foreseen */
        return call->size[ACCEL_incx] == 0                                      ? "incx"
               : call->size[ACCEL_k1] < 1                                       ? "k1"
               : call->size[ACCEL_k2] > accel_max(call->operand[ACCEL_a].ld, 0) ? "k2"
                                                                                : NULL;
    default:
        break;
    }
    return NULL;
}

const char *lapack_shape_fault(const struct accel_call *call)
{
    const char *fault = dependent_fault(call);
    return fault || lapack_is_query(call) ? fault : short_workspace(call);
}

const char *lapack_fault(const struct accel_call *call)
{
    const char *fault = dependent_fault(call);
    if (!fault && call->flag[ACCEL_range])
        fault = range_fault(call);
    return fault ? fault : lapack_shape_fault(call);
}

bool lapack_looks_at(const struct accel_call *call, const struct accel_arg *arg)
{
    char range = call->flag[ACCEL_range];
    if (arg->kind == ACCEL_ARG_INTEGER)
        return (arg->slot != ACCEL_il && arg->slot != ACCEL_iu) || range == 'I';
    if (arg->slot == ACCEL_vl || arg->slot == ACCEL_vu)
        return range == 'V' && call->size[ACCEL_n] > 0;
    if (lapack_fault(call) || lapack_is_query(call) || lapack_is_empty(call))
        return false;
    /* The one eigenvalue of a matrix of order 1 needs no tolerance. */
    return arg->slot != ACCEL_abstol || call->size[ACCEL_n] > 1;
}

bool lapack_is_query(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_LWORK && call->has_work &&
            call->size[routine->arg[i].slot] == -1)
            return true;
    return false;
}

bool lapack_is_empty(const struct accel_call *call)
{
    switch (call->routine->family) {
    case ACCEL_GESV: /* these factor the matrix in any case */
    case ACCEL_POSV:
    case ACCEL_SYSV:
    case ACCEL_HESV:
    case ACCEL_GELSD:
    case ACCEL_GELSS:
        return call->size[ACCEL_n] == 0 ||
               (accel_has_size(call->routine, ACCEL_m) && call->size[ACCEL_m] == 0);
    case ACCEL_ORGQR: /* without a reflector, it is the identity */
        return call->size[ACCEL_n] == 0;
    case ACCEL_LASWP:
        return call->size[ACCEL_n] == 0 || call->size[ACCEL_k2] < call->size[ACCEL_k1];
    default:
        for (int i = 0; i < call->routine->args; i++)
            if (call->routine->arg[i].kind == ACCEL_ARG_SIZE &&
                call->size[call->routine->arg[i].slot] == 0)
                return true;
        return false;
    }
}

bool lapack_is_supported(const struct accel_call *call)
{
    int64_t nrhs = call->size[ACCEL_nrhs];
    if (accel_is_rows_of_lapack(call))
        return false;
    for (int i = ACCEL_vl; i < ACCEL_SCALARS; i++)
        if (isnan(call->scalar[i].re))
            return false;
    switch (call->routine->family) {
    case ACCEL_HETRF: /* cuSOLVER's sytrf is for symmetric matrices */
    case ACCEL_HETRS:
    case ACCEL_HESV:
    case ACCEL_GELSY: /* it has no QR with column pivoting */
        return false;
    case ACCEL_GELSD:
    case ACCEL_GELSS:
        return nrhs > 0;
    case ACCEL_ORGQR:
        return call->size[ACCEL_k] > 0;
    case ACCEL_GEEV: /* left eigenvectors: cuSOLVER documentation, cusolverDnXgeev */
        return call->flag[ACCEL_jobvl] == 'N';
    default:
        return true;
    }
}

/* The reduction to a condensed form, and then the iteration. */
static bool is_iteration(enum accel_family family)
{
    switch (family) {
    case ACCEL_SYEV:
    case ACCEL_SYEVD:
    case ACCEL_SYEVR:
    case ACCEL_SYEVX:
    case ACCEL_SYGV:
    case ACCEL_SYGVD:
    case ACCEL_SYGVX:
    case ACCEL_GESVD:
    case ACCEL_GESDD:
    case ACCEL_GELSD:
    case ACCEL_GELSS:
    case ACCEL_GEEV:
        return true;
    default:
        return false;
    }
}

double lapack_gpu_bytes(const struct accel_call *call)
{
    double sum = 0, first = 0;
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        const struct accel_operand *x = &call->operand[i];
        double bytes =
            x->ptr ? (double)x->rows * (double)x->cols * (double)accel_dtype_size(x->dtype) : 0;
        sum += bytes;
        first = i == ACCEL_a ? bytes : first;
    }
    return is_iteration(call->routine->family) ? sum + first : sum;
}

struct lapack_nominal lapack_nominal(enum accel_family family)
{
    if (!accel_is_lapack(family))
        return (struct lapack_nominal){1, 1, 0};
    switch (family) {
    case ACCEL_GETRS:
    case ACCEL_POTRS:
    case ACCEL_TRTRS:
    case ACCEL_SYTRS:
        return (struct lapack_nominal){0.7, 0.7, 0.0005};
    case ACCEL_ORMQR:
    case ACCEL_GEQRF:
    case ACCEL_ORGQR:
    case ACCEL_GELS:
        return (struct lapack_nominal){0.5, 0.4, 0.008};
    case ACCEL_GEEV: /* the Hessenberg form, and QR steps that hardly fill a GPU */
        return (struct lapack_nominal){0.15, 0.01, 0.2};
    default:
        if (is_iteration(family)) /* half of it is products of a matrix with a vector */
            return (struct lapack_nominal){0.15, 0.03, 0.06};
        return (struct lapack_nominal){0.6, 0.6, 0.003};
    }
}
