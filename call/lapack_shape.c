#include "lapack_shape.h"

char lapack_job_of(const struct accel_call *call, enum accel_flag job)
{
    char both = call->blas.flag[ACCEL_jobz];
    if (!both)
        return call->blas.flag[job];
    if (both != 'O')
        return both;
    return (call->blas.size[ACCEL_m] >= call->blas.size[ACCEL_n]) == (job == ACCEL_jobu) ? 'O'
                                                                                         : 'A';
}

int64_t lapack_vectors(char job, int64_t all, int64_t values)
{
    return job == 'A' ? all : job == 'S' ? values : 0;
}

/* Returns the length of laswp's IPIV; 0 if the arguments are wrong, or it has nothing to
 * exchange. */
static int64_t swaps(const struct accel_call *call)
{
    int64_t k1 = call->blas.size[ACCEL_k1], k2 = call->blas.size[ACCEL_k2],
            inc = call->blas.size[ACCEL_incx], length;
    if (inc == 0 || k1 < 1 || k2 < k1 || inc == INT64_MIN ||
        __builtin_mul_overflow(k2 - k1, inc < 0 ? -inc : inc, &length) ||
        __builtin_add_overflow(length, k1, &length))
        return 0;
    return length;
}

/* Returns how many elements a triangle has; INT64_MAX: more than any memory. */
static int64_t triangle_length(int64_t order)
{
    const int64_t most = INT32_MAX;
    return order <= 0 ? 0 : order <= most ? order * (order + 1) / 2 : INT64_MAX;
}

int64_t lapack_range_length(const struct accel_call *call)
{
    int64_t il = call->blas.size[ACCEL_il], iu = call->blas.size[ACCEL_iu];
    return il >= 1 && iu >= il && iu <= call->blas.size[ACCEL_n] ? iu - il + 1 : 0;
}

/* By the documentation of LAPACK's routines. */
int64_t lapack_size(const struct accel_call *call, int which)
{
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    bool wantz = call->blas.flag[ACCEL_jobz] == 'V';
    switch (which) {
    case ACCEL_one:
        return 1;
    case ACCEL_minmn:
        return accel_min(m, n);
    case ACCEL_maxmn:
        return accel_max(m, n);
    case ACCEL_ucols:
    case ACCEL_urows: {
        int64_t cols = lapack_vectors(lapack_job_of(call, ACCEL_jobu), m, accel_min(m, n));
        return which == ACCEL_ucols ? cols : cols > 0 ? m : 0;
    }
    case ACCEL_vtcols:
    case ACCEL_vtrows: {
        int64_t rows = lapack_vectors(lapack_job_of(call, ACCEL_jobvt), n, accel_min(m, n));
        return which == ACCEL_vtrows ? rows : rows > 0 ? n : 0;
    }
    case ACCEL_zrows:
        return wantz ? n : 0;
    case ACCEL_zcols:
        return !wantz ? 0 : call->blas.flag[ACCEL_range] == 'I' ? lapack_range_length(call) : n;
    case ACCEL_supports:
        return lapack_size(call, ACCEL_zcols) == n && n > 0 && n <= INT64_MAX / 2 &&
                       call->blas.flag[ACCEL_range] != 'V'
                   ? 2 * n
                   : 0;
    case ACCEL_failures:
        return wantz ? n : 0;
    case ACCEL_vlorder:
        return call->blas.flag[ACCEL_jobvl] == 'V' ? n : 0;
    case ACCEL_vrorder:
        return call->blas.flag[ACCEL_jobvr] == 'V' ? n : 0;
    case ACCEL_lda_:
        return call->span[ACCEL_a].ld;
    case ACCEL_packed:
        return triangle_length(n);
    default:
        return swaps(call);
    }
}

bool lapack_wants_vectors(const struct accel_call *call)
{
    for (int job = ACCEL_jobz; job < ACCEL_FLAGS; job++)
        if (job != ACCEL_range && call->blas.flag[job] && call->blas.flag[job] != 'N')
            return true;
    return false;
}
