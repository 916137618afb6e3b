/* LAPACK, by OpenBLAS's. INFO goes where the call's is. Of the algorithms for
 * singular values there is gesvd alone. */
#include <stdlib.h>

#include "host_device.h"

#define INFO    ((int *)(uintptr_t)s->info)
#define WORK(a) room(0, enough(a)), INTEGER(enough(a))

/* A step: calls a routine of the call's type, unless workspaces are measured, and wants INFO = 0.
 */
#define CALL(real, complex, ...)                                                                   \
    do {                                                                                           \
        if (begins(s))                                                                             \
            host_blas(s->dtype, accel_is_complex(s->dtype) ? complex : real)(__VA_ARGS__,          \
                                                                             LENGTHS);             \
        solver_require_success(s);                                                                 \
    } while (0)

#define STEP(name, parameters, ...)                                                                \
    static void name parameters                                                                    \
    {                                                                                              \
        CALL(__VA_ARGS__);                                                                         \
    }

/* Returns whether a step may go on. */
static bool begins(struct solver *s)
{
    struct array work;
    void *host;
    return solver_take_work(s, 64, 0, &work, &host);
}

/* Returns a workspace of the thread's, one of three, for so many numbers of any type; they stay. */
static char *room(int number, int64_t count)
{
    static _Thread_local char *memory[3];
    free(memory[number]);
    return memory[number] = calloc((size_t)accel_max(count, 1), 16);
}

/* Enough for every routine's blocked algorithm, but those by divide and conquer. */
static int64_t enough(struct array a)
{
    return 320 * (accel_max(a.rows, a.cols) + 64);
}

/* Pivots as Fortran's INTEGER, and back; of a call that has failed there are none. */
static int *narrow(const struct solver *s, struct array pivots)
{
    int *to = (int *)room(1, pivots.rows);
    for (int64_t i = 0; solver_is_well(s) && i < pivots.rows; i++)
        to[i] = (int)accel_integer_at(pivots.dtype, AT(pivots.at), i);
    return to;
}

static void widen(const struct solver *s, struct array pivots, const int *from)
{
    for (int64_t i = 0; solver_is_well(s) && i < pivots.rows; i++)
        if (pivots.dtype == ACCEL_INT32)
            ((int32_t *)AT(pivots.at))[i] = from[i];
        else
            ((int64_t *)AT(pivots.at))[i] = from[i];
}

static void potrf(struct solver *s, char uplo, struct array a)
{
    if (begins(s))
        host_blas(s->dtype, "potrf")(&uplo, INTEGER(a.rows), MATRIX(a.at), INFO, LENGTHS);
    solver_keep_pivot(s, a);
    solver_require_definite(s);
}

STEP(potrs, (struct solver * s, char uplo, struct array a, struct array b), "potrs", "potrs", &uplo,
     INTEGER(a.rows), INTEGER(b.cols), MATRIX(a.at), MATRIX(b.at), INFO)
STEP(potri, (struct solver * s, char uplo, struct array a), "potri", "potri", &uplo,
     INTEGER(a.rows), MATRIX(a.at), INFO)
STEP(lauum, (struct solver * s, char uplo, struct array a), "lauum", "lauum", &uplo,
     INTEGER(a.rows), MATRIX(a.at), INFO)
STEP(trtri, (struct solver * s, char uplo, char diag, struct array a), "trtri", "trtri", &uplo,
     &diag, INTEGER(a.rows), MATRIX(a.at), INFO)

#define FACTOR(name, real, complex)                                                                \
    static void name(struct solver *s, char uplo, struct array a, struct array pivots)             \
    {                                                                                              \
        int *to = narrow(s, pivots);                                                               \
        CALL(real, complex, &uplo, INTEGER(a.rows), MATRIX(a.at), to, WORK(a), INFO);              \
        widen(s, pivots, to);                                                                      \
    }

FACTOR(sytrf, "sytrf", "sytrf")
FACTOR(hetrf, "sytrf", "hetrf")
STEP(sytrs, (struct solver * s, char uplo, struct array a, struct array pivots, struct array b),
     "sytrs", "sytrs", &uplo, INTEGER(a.rows), INTEGER(b.cols), MATRIX(a.at), narrow(s, pivots),
     MATRIX(b.at), INFO)
STEP(hetrs, (struct solver * s, char uplo, struct array a, struct array pivots, struct array b),
     "sytrs", "hetrs", &uplo, INTEGER(a.rows), INTEGER(b.cols), MATRIX(a.at), narrow(s, pivots),
     MATRIX(b.at), INFO)

static void getrf(struct solver *s, struct array a, struct array pivots)
{
    int *to = narrow(s, pivots);
    CALL("getrf", "getrf", INTEGER(a.rows), INTEGER(a.cols), MATRIX(a.at), to, INFO);
    widen(s, pivots, to);
}

STEP(getrs, (struct solver * s, char trans, struct array a, struct array pivots, struct array b),
     "getrs", "getrs", &trans, INTEGER(a.rows), INTEGER(b.cols), MATRIX(a.at), narrow(s, pivots),
     MATRIX(b.at), INFO)

static void laswp(struct solver *s, struct array a, struct array swaps, int64_t first, int64_t last)
{
    if (solver_is_well(s))
        host_blas(s->dtype, "laswp")(INTEGER(a.cols), MATRIX(a.at), INTEGER(first), INTEGER(last),
                                     AT(swaps.at), INTEGER(1));
}

STEP(geqrf, (struct solver * s, struct array a, struct array tau), "geqrf", "geqrf",
     INTEGER(a.rows), INTEGER(a.cols), MATRIX(a.at), AT(tau.at), WORK(a), INFO)
STEP(orgqr, (struct solver * s, struct array a, struct array tau), "orgqr", "ungqr",
     INTEGER(a.rows), INTEGER(a.cols), INTEGER(tau.rows), MATRIX(a.at), AT(tau.at), WORK(a), INFO)
STEP(ormqr,
     (struct solver * s, char side, char trans, struct array a, struct array tau, struct array c),
     "ormqr", "unmqr", &side, &trans, INTEGER(c.rows), INTEGER(c.cols), INTEGER(a.cols),
     MATRIX(a.at), AT(tau.at), MATRIX(c.at), WORK(c), INFO)
STEP(sytrd,
     (struct solver * s, char uplo, struct array a, struct array d, struct array e,
      struct array tau),
     "sytrd", "hetrd", &uplo, INTEGER(a.rows), MATRIX(a.at), AT(d.at), AT(e.at), AT(tau.at),
     WORK(a), INFO)

/* Divide and conquer: of complex types there is one workspace more. */
#define CONQUER(real, complex, ...)                                                                \
    do {                                                                                           \
        const int64_t n = a.rows, most = 1 + 6 * n + 2 * n * n + enough(a), integers = 3 + 5 * n;  \
        if (accel_is_complex(s->dtype))                                                            \
            CALL(real, complex, __VA_ARGS__, AT(w.at), room(0, most), INTEGER(most),               \
                 room(1, most), INTEGER(most), room(2, integers), INTEGER(integers), INFO);        \
        else                                                                                       \
            CALL(real, complex, __VA_ARGS__, AT(w.at), room(0, most), INTEGER(most),               \
                 room(2, integers), INTEGER(integers), INFO);                                      \
    } while (0)

static void syevd(struct solver *s, char jobz, char uplo, struct array a, struct array w)
{
    CONQUER("syevd", "heevd", &jobz, &uplo, INTEGER(a.rows), MATRIX(a.at));
}

static void sygvd(struct solver *s, int64_t itype, char jobz, char uplo, struct array a,
                  struct array b, struct array w)
{
    CONQUER("sygvd", "hegvd", INTEGER(itype), &jobz, &uplo, INTEGER(a.rows), MATRIX(a.at),
            MATRIX(b.at));
}

/* Leaves the eigenvalues of a part of the spectrum, and their vectors; returns how many. */
static int64_t select_part(struct solver *s, struct spectrum part, struct array a, struct array w)
{
    int64_t found = 0;
    for (int64_t i = 0; solver_is_well(s) && i < a.rows; i++) {
        const struct array from = solver_part(w, i, 0, 1, 1), to = solver_part(w, found, 0, 1, 1);
        const double value =
            w.dtype == ACCEL_FLOAT64 ? *(double *)AT(from.at) : (double)*(float *)AT(from.at);
        if (part.range == 'I'   ? i + 1 < part.il || i + 1 > part.iu
            : part.range == 'V' ? value <= part.vl || value > part.vu
                                : false)
            continue;
        solver_copy(s, to, from);
        solver_copy(s, solver_part(a, 0, found++, a.rows, 1), solver_part(a, 0, i, a.rows, 1));
    }
    return found;
}

static int64_t syevdx(struct solver *s, char jobz, struct spectrum part, char uplo, struct array a,
                      struct array w)
{
    syevd(s, jobz, uplo, a, w);
    return select_part(s, part, a, w);
}

static int64_t sygvdx(struct solver *s, int64_t itype, char jobz, struct spectrum part, char uplo,
                      struct array a, struct array b, struct array w)
{
    sygvd(s, itype, jobz, uplo, a, b, w);
    return select_part(s, part, a, w);
}

static bool has(void)
{
    return true;
}

static void geev(struct solver *s, char jobvr, struct array a, struct array w, struct array vr)
{
    const struct array none = {.at = {w.at.ptr, 1}}, to = jobvr == 'V' ? vr : none;
    if (accel_is_complex(s->dtype))
        CALL("", "geev", "N", &jobvr, INTEGER(a.rows), MATRIX(a.at), AT(w.at), MATRIX(none.at),
             MATRIX(to.at), WORK(a), room(1, enough(a)), INFO);
    else
        CALL("geev", "", "N", &jobvr, INTEGER(a.rows), MATRIX(a.at), AT(w.at),
             AT(solver_part(w, a.rows, 0, a.rows, 1).at), MATRIX(none.at), MATRIX(to.at), WORK(a),
             INFO);
}

static void gesvd(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
                  struct array u, struct array vt)
{
#define SVD                                                                                        \
    &jobu, &jobvt, INTEGER(a.rows), INTEGER(a.cols), MATRIX(a.at), AT(values.at), MATRIX(u.at),    \
        MATRIX(vt.at), WORK(a)
    if (accel_is_complex(s->dtype))
        CALL("", "gesvd", SVD, room(1, enough(a)), INFO);
    else
        CALL("gesvd", "", SVD, INFO);
}

/* clang-format off */
const struct solver_library host_solver = {
    .potrf = potrf, .potrs = potrs, .potri = potri, .lauum = lauum, .sytrf = sytrf, .sytrs = sytrs,
    .has_hetrf = has, .hetrf = hetrf, .hetrs = hetrs, .trtri = trtri, .getrf = getrf,
    .getrs = getrs, .laswp = laswp, .geqrf = geqrf, .orgqr = orgqr, .ormqr = ormqr, .sytrd = sytrd,
    .syevd = syevd, .syevdx = syevdx, .sygvd = sygvd, .sygvdx = sygvdx, .has_geev = has,
    .geev = geev, .gesvd = gesvd,
};
/* clang-format on */
