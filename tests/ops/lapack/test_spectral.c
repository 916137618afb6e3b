/*
 * Spectral divide and conquer, whose inner calls OpenBLAS runs here: matrices of every type with
 * spectra of all kinds, by the residuals of LAPACK's own tests. What fails on the way, and what the
 * estimate adds up.
 */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/lapack/packed.h"
#include "ops/lapack/spectral.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "ops/rules/rules.h"
#include "tests/lib/long.h"
#include "tests/lib/residual.h"
#include "tests/lib/routine.h"

/* ---- OpenBLAS ---- */

typedef void gemm_function(const char *, const char *, const int *, const int *, const int *,
                           const void *, const void *, const int *, const void *, const int *,
                           const void *, void *, const int *, size_t, size_t);
typedef void symm_function(const char *, const char *, const int *, const int *, const void *,
                           const void *, const int *, const void *, const int *, const void *,
                           void *, const int *, size_t, size_t);
typedef void syrk_function(const char *, const char *, const int *, const int *, const void *,
                           const void *, const int *, const void *, void *, const int *, size_t,
                           size_t);
typedef void trsm_function(const char *, const char *, const char *, const char *, const int *,
                           const int *, const void *, const void *, const int *, void *,
                           const int *, size_t, size_t, size_t, size_t);
typedef void potrf_function(const char *, const int *, void *, const int *, int *, size_t);
typedef void syevd_function(const char *, const char *, const int *, void *, const int *, void *,
                            void *, const int *, int *, const int *, int *, size_t, size_t);
typedef void heevd_function(const char *, const char *, const int *, void *, const int *, void *,
                            void *, const int *, void *, const int *, int *, const int *, int *,
                            size_t, size_t);

static void *function(const struct accel_call *call)
{
    static void *blas, *lapack;
    char name[32];
    blas = blas ? blas : dlopen("libblas.so.3", RTLD_NOW);
    lapack = lapack ? lapack : dlopen("liblapack.so.3", RTLD_NOW);
    assert_non_null(blas);
    assert_non_null(lapack);
    snprintf(name, sizeof name, "%s_", call->routine->name);
    void *const found = dlsym(accel_is_lapack(call->routine) ? lapack : blas, name);
    assert_non_null(found);
    return found;
}

/* A scalar in the routine's type, real ones included. */
union scalar {
    float s[2];
    double d[2];
};

static union scalar scalar_of(const struct accel_call *call, enum accel_scalar which)
{
    const struct accel_complex z = call->blas.scalar[which];
    union scalar x;
    if (accel_is_double(call->routine->dtype))
        x = (union scalar){.d = {z.re, z.im}};
    else
        x = (union scalar){.s = {(float)z.re, (float)z.im}};
    return x;
}

/* Returns INFO. */
static int eigenvalues(const struct accel_call *call)
{
    const int n = (int)call->blas.size[ACCEL_n], ld = (int)call->span[ACCEL_a].ld,
              length = 1 + 6 * n + 2 * n * n, integers = 3 + 5 * n;
    const char *const jobz = &call->blas.flag[ACCEL_jobz], *const uplo =
                                                               &call->blas.flag[ACCEL_uplo];
    void *const a = call->span[ACCEL_a].ptr, *const w = call->span[ACCEL_x].ptr;
    char *const work = calloc(2 * (size_t)length, 16);
    int *const iwork = calloc((size_t)integers, sizeof *iwork), info = -1;
    if (accel_is_complex(call->routine->dtype))
        ((heevd_function *)function(call))(jobz, uplo, &n, a, &ld, w, work, &length,
                                           work + 16 * (size_t)length, &length, iwork, &integers,
                                           &info, 1, 1);
    else
        ((syevd_function *)function(call))(jobz, uplo, &n, a, &ld, w, work, &length, iwork,
                                           &integers, &info, 1, 1);
    free(work);
    free(iwork);
    return info;
}

/* Runs a call. Returns INFO, 0 for BLAS. */
static int by_openblas(const struct accel_call *call)
{
    const struct blas_arguments *x = &call->blas;
    const struct accel_span *s = call->span;
    const union scalar alpha = scalar_of(call, ACCEL_alpha), beta = scalar_of(call, ACCEL_beta);
    const int m = (int)x->size[ACCEL_m], n = (int)x->size[ACCEL_n], k = (int)x->size[ACCEL_k],
              lda = (int)s[ACCEL_a].ld, ldb = (int)s[ACCEL_b].ld, ldc = (int)s[ACCEL_c].ld;
    const struct accel_op *op = accel_op_of(call->routine);
    const char *flag = x->flag;
    int info = 0;
    if (op == &op_gemm)
        ((gemm_function *)function(call))(flag + ACCEL_transa, flag + ACCEL_transb, &m, &n, &k,
                                          &alpha, s[ACCEL_a].ptr, &lda, s[ACCEL_b].ptr, &ldb, &beta,
                                          s[ACCEL_c].ptr, &ldc, 1, 1);
    else if (strstr(call->routine->name, "mm"))
        ((symm_function *)function(call))(flag + ACCEL_side, flag + ACCEL_uplo, &m, &n, &alpha,
                                          s[ACCEL_a].ptr, &lda, s[ACCEL_b].ptr, &ldb, &beta,
                                          s[ACCEL_c].ptr, &ldc, 1, 1);
    else if (strstr(call->routine->name, "rk"))
        ((syrk_function *)function(call))(flag + ACCEL_uplo, flag + ACCEL_trans, &n, &k, &alpha,
                                          s[ACCEL_a].ptr, &lda, &beta, s[ACCEL_c].ptr, &ldc, 1, 1);
    else if (strstr(call->routine->name, "trsm"))
        ((trsm_function *)function(call))(flag + ACCEL_side, flag + ACCEL_uplo, flag + ACCEL_trans,
                                          flag + ACCEL_diag, &m, &n, &alpha, s[ACCEL_a].ptr, &lda,
                                          s[ACCEL_b].ptr, &ldb, 1, 1, 1, 1);
    else if (strstr(call->routine->name, "potrf"))
        ((potrf_function *)function(call))(flag + ACCEL_uplo, &n, s[ACCEL_a].ptr, &lda, &info, 1);
    else
        info = eigenvalues(call);
    return info;
}

/* ---- A runner ---- */

struct runner {
    int64_t most; /* a call of this order fits */
    int calls, fails_at;
    enum gpu_status failure;
    double operations;
    bool lacks_memory; /* the first eigenvalues that fit do not, after all */
    double edge;       /* the first value of each part is so much less, the last one more */
};

static void move_edges(const struct runner *r, const struct accel_call *call)
{
    char *const w = call->span[ACCEL_x].ptr;
    const enum accel_dtype dtype = call->routine->dtype;
    const int64_t last = call->blas.size[ACCEL_n] - 1;
    store_real(w, dtype, 0, load_real(w, dtype, 0) - r->edge);
    store_real(w, dtype, last, load_real(w, dtype, last) + r->edge);
}

static enum gpu_status run(void *context, const struct accel_call *call)
{
    struct runner *r = context;
    const bool eigen = strstr(call->routine->name, "evd");
    assert_null(accel_call_fault(call));
    r->operations += accel_flops(call);
    if (r->calls++ == r->fails_at)
        return r->failure;
    if (eigen && r->lacks_memory) {
        r->lacks_memory = false;
        return GPU_NO_MEMORY;
    }
    const int info = by_openblas(call);
    if (eigen)
        move_edges(r, call);
    return info == 0 ? GPU_OK : GPU_UNSUPPORTED;
}

static enum gpu_status count(void *context, const struct accel_call *call)
{
    struct runner *r = context;
    assert_null(accel_call_fault(call));
    r->operations += accel_flops(call);
    r->calls++;
    return GPU_OK;
}

static bool fits(void *context, const struct accel_call *call)
{
    const struct runner *r = context;
    return call->blas.size[ACCEL_n] <= r->most;
}

/* ---- Matrices ---- */

enum { N = 120, LD = N + 3 };

struct problem {
    enum accel_dtype dtype;
    char jobz, uplo;
    char *a;      /* LD x N, the other triangle and the rows below have NaN */
    char *before; /* the same */
    char *w;
    struct accel_call call;
};

static void set(struct problem *p, int64_t row, int64_t col, double re, double im)
{
    const bool stored = p->uplo == 'L' ? row >= col : row <= col;
    char *const at = p->a + (col * LD + row) * (int64_t)accel_dtype_size(p->dtype);
    store_real(at, p->dtype, 0, stored ? re : NAN);
    if (accel_is_complex(p->dtype))
        store_real(at, p->dtype, 1, !stored ? NAN : row == col ? 0 : im);
}

static void open_problem(struct problem *p, enum accel_dtype dtype, char jobz, char uplo)
{
    static const char *const name[] = {"ssyevd", "dsyevd", "cheevd", "zheevd"};
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_n] = N}, bytes = (int64_t)LD * N * 16;
    *p = (struct problem){.dtype = dtype, .jobz = jobz, .uplo = uplo};
    p->a = malloc((size_t)bytes);
    memset(p->a, 0xff, (size_t)bytes);
    p->before = malloc((size_t)bytes);
    p->w = calloc(N, 8);
    shape_typical(&p->call, routine(name[dtype]), size);
    p->call.blas.flag[ACCEL_jobz] = jobz;
    p->call.blas.flag[ACCEL_uplo] = uplo;
    shape_operands(&p->call);
    p->call.span[ACCEL_a].ptr = p->a;
    p->call.span[ACCEL_a].ld = LD;
    p->call.span[ACCEL_x].ptr = p->w;
}

static void close_problem(struct problem *p)
{
    free(p->a);
    free(p->before);
    free(p->w);
}

/* x := H x H with the reflection H = 1 - 2 v v^H / v^H v. */
static void reflect(double complex x[N][N], const double complex *v)
{
    double square = 0;
    for (int i = 0; i < N; i++)
        square += creal(v[i] * conj(v[i]));
    for (int j = 0; j < N; j++) {
        double complex down = 0;
        for (int i = 0; i < N; i++)
            down += conj(v[i]) * x[i][j];
        for (int i = 0; i < N; i++)
            x[i][j] -= 2 / square * v[i] * down;
    }
    for (int i = 0; i < N; i++) {
        double complex across = 0;
        for (int j = 0; j < N; j++)
            across += x[i][j] * v[j];
        for (int j = 0; j < N; j++)
            x[i][j] -= 2 / square * across * conj(v[j]);
    }
}

/* Makes a matrix with these eigenvalues: a diagonal one, after some reflections. */
static void fill(struct problem *p, const double *values, int reflections)
{
    static double complex x[N][N];
    double complex v[N];
    memset(x, 0, sizeof x);
    for (int i = 0; i < N; i++)
        x[i][i] = values[i];
    for (int turn = 0; turn < reflections; turn++) {
        for (int i = 0; i < N; i++)
            v[i] = sin(1.3 * i * (turn + 1) + turn) + 0.2 +
                   (accel_is_complex(p->dtype) ? I * cos(0.7 * i * (turn + 2)) : 0);
        reflect(x, v);
    }
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            set(p, i, j, creal(x[i][j]), cimag(x[i][j]));
    memcpy(p->before, p->a, (size_t)LD * N * accel_dtype_size(p->dtype));
}

/* ---- Spectra ---- */

static double even(int i)
{
    return -1 + 2.0 * i / (N - 1);
}
static double clustered(int i)
{
    return i < N / 3 ? -0.5 : i < N / 2 ? 0.25 : 1 + 1e-3 * i;
}
static double zeros_and_ones(int i)
{
    return i % 2;
}
static double low_rank(int i)
{
    return i < 5 ? i + 1 : 0;
}
static double positive(int i)
{
    return exp(-i / 8.0);
}
static double two_scales(int i)
{
    return i < N / 2 ? 1e-9 * (i + 1) : 1 + i;
}
static double negative(int i)
{
    return -5 - i % 7;
}
static double pairs(int i)
{
    return (i / 2) * 0.1 * (i % 2 ? 1 : 1 + 1e-13);
}
static double all_the_same(int i)
{
    return i >= 0 ? 3 : 0;
}
static double nearly_the_same(int i)
{
    return 1 + 1e-17 * i;
}

static const struct {
    const char *name;
    double (*value)(int);
} spectra[] = {{"even", even},
               {"clustered", clustered},
               {"zeros and ones", zeros_and_ones},
               {"low rank", low_rank},
               {"positive", positive},
               {"two scales", two_scales},
               {"negative", negative},
               {"pairs", pairs},
               {"all the same", all_the_same},
               {"nearly the same", nearly_the_same}};
enum { SPECTRA = sizeof spectra / sizeof *spectra };

static void fill_spectrum(struct problem *p, int which, int reflections)
{
    double values[N];
    for (int i = 0; i < N; i++)
        values[i] = spectra[which].value(i);
    fill(p, values, reflections);
}

/* ---- Tests ---- */

static enum gpu_status decompose(struct problem *p, struct runner *r, struct accel_call *done)
{
    struct decomposition c = {.run = run, .fits = fits, .context = r};
    const enum gpu_status status = spectral_decompose(&c, &p->call, done);
    assert_memory_equal(p->a, p->before, (size_t)LD * N * accel_dtype_size(p->dtype));
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The eigenvalues by the spectrum; vectors by the residuals of LAPACK's tests. */
static void judge(const struct problem *p, int which, const struct accel_call *done)
{
    const double eps = accel_is_double(p->dtype) ? 0x1p-53 : 0x1p-24;
    double values[N], largest = 0;
    for (int i = 0; i < N; i++) {
        values[i] = spectra[which].value(i);
        largest = fmax(largest, fabs(values[i]));
    }
    qsort(values, N, sizeof *values, ascending);
    for (int i = 0; i < N; i++) {
        const double got = load_real(done->span[ACCEL_x].ptr, p->dtype, i);
        assert_true(fabs(got - values[i]) <= 30 * N * eps * largest);
        assert_true(i == 0 || got >= load_real(done->span[ACCEL_x].ptr, p->dtype, i - 1));
    }
    if (p->jobz == 'N') {
        assert_ptr_equal(done->span[ACCEL_a].ptr, p->a);
        return;
    }
    const struct view
        a = {p->before, N, N, LD, p->dtype, accel_is_complex(p->dtype) ? HERMITIAN : SYMMETRIC,
             p->uplo},
        z = {done->span[ACCEL_a].ptr, N, N, done->span[ACCEL_a].ld, p->dtype, GENERAL, 0};
    const double ratio = residual_eigen(&a, &z, done->span[ACCEL_x].ptr);
    if (!(ratio < CPU_REF_RESIDUAL_THRESHOLD))
        print_message("# %s: %s %c %c: %g\n", spectra[which].name, p->call.routine->name, p->jobz,
                      p->uplo, ratio);
    assert_true(ratio < CPU_REF_RESIDUAL_THRESHOLD);
}

static void divides_every_spectrum(void **state)
{
    (void)state;
    for (int i = 0; i < SPECTRA * ACCEL_DTYPES * 4; i += test_is_long() ? 1 : 7) {
        const int which = i % SPECTRA, flags = i / SPECTRA / ACCEL_DTYPES;
        struct problem p;
        struct accel_call done;
        struct runner r = {.most = 40, .fails_at = -1};
        open_problem(&p, i / SPECTRA % ACCEL_DTYPES, "NV"[flags / 2], "UL"[flags % 2]);
        fill_spectrum(&p, which, i % 3 == 0 ? 0 : 3); /* also diagonal ones */
        const enum gpu_status status = decompose(&p, &r, &done);
        if (status != GPU_OK)
            print_message("# %s: %s\n", spectra[which].name, p.call.routine->name);
        assert_int_equal(status, GPU_OK);
        judge(&p, which, &done);
        decomposition_free(&p.call, &done);
        close_problem(&p);
    }
}

static void divides_further_without_memory(void **state)
{
    struct problem p;
    struct accel_call done;
    struct runner r = {.most = 70, .fails_at = -1, .lacks_memory = true};
    (void)state;
    open_problem(&p, ACCEL_FLOAT64, 'V', 'L');
    fill_spectrum(&p, 0, 3);
    assert_int_equal(decompose(&p, &r, &done), GPU_OK);
    assert_false(r.lacks_memory);
    judge(&p, 0, &done);
    decomposition_free(&p.call, &done);
    close_problem(&p);
}

static double by_vector(const struct accel_call *done, const double *diagonal, int col)
{
    const double *z = (const double *)done->span[ACCEL_a].ptr + col * done->span[ACCEL_a].ld;
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += diagonal[i] * z[i] * z[i];
    return sum;
}

/* Rounding may put the last value of a part above the first one of the next. Here it is more than
 * rounding, which shows that vectors stay with their values. */
static void parts_are_put_in_order(void **state)
{
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        struct problem p;
        struct accel_call done;
        struct runner r = {.most = 40, .fails_at = -1, .edge = 1.25 * (even(1) - even(0))};
        double values[N];
        int moved = 0;
        open_problem(&p, ACCEL_FLOAT64, "NV"[vectors], 'L');
        for (int i = 0; i < N; i++)
            values[i] = even(i * 7 % N); /* in any order, each once */
        fill(&p, values, 0);
        assert_int_equal(decompose(&p, &r, &done), GPU_OK);
        const double *w = done.span[ACCEL_x].ptr;
        for (int i = 0; i < N; i++) {
            assert_true(i == 0 || w[i] >= w[i - 1]);
            if (!vectors)
                continue;
            const double beside = fabs(w[i] - by_vector(&done, values, i));
            assert_true(beside < 1e-9 || fabs(beside - r.edge) < 1e-9);
            moved += beside > 1e-9;
        }
        assert_true(!vectors || (moved >= 8 && moved % 2 == 0)); /* of four parts or more */
        decomposition_free(&p.call, &done);
        close_problem(&p);
    }
}

static void refuses(struct problem *p, enum gpu_status expected, int calls)
{
    struct accel_call done;
    struct runner r = {.most = 40, .fails_at = -1};
    memcpy(p->before, p->a, (size_t)LD * N * accel_dtype_size(p->dtype));
    assert_int_equal(decompose(p, &r, &done), expected);
    assert_true(r.calls <= calls);
    assert_memory_equal(done.span, p->call.span, sizeof done.span);
}

static void leaves_to_lapack_what_it_scales(void **state)
{
    const double largest[] = {NAN, INFINITY, -INFINITY, 1e200, 1e-200, 0};
    (void)state;
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        struct problem p;
        double values[N] = {0};
        open_problem(&p, ACCEL_FLOAT64, 'V', 'U');
        fill(&p, values, 0);
        set(&p, 3, 7, largest[i], 0);
        refuses(&p, GPU_UNSUPPORTED, 0);
        close_problem(&p);
    }
}

/* Whichever inner call fails, nothing is left, and nothing was written. */
static void passes_failures_on(void **state)
{
    const enum gpu_status failures[] = {GPU_ERROR, GPU_NO_MEMORY, GPU_UNSUPPORTED};
    (void)state;
    for (int f = 0; f < 3; f++) {
        enum gpu_status status = GPU_ERROR;
        for (int i = 0; status != GPU_OK || i < 20; i += test_is_long() ? 1 : 3) {
            struct problem p;
            struct accel_call done;
            struct runner r = {.most = 70, .fails_at = i, .failure = failures[f]};
            open_problem(&p, ACCEL_FLOAT64, 'V', 'L');
            fill_spectrum(&p, 0, 3);
            status = decompose(&p, &r, &done);
            const bool reached = r.calls > i;
            /* Without memory for eigenvalues it divides further; a matrix that is not definite gets
             * a larger shift. */
            assert_true(status == failures[f] || (status == GPU_OK && (!reached || f > 0)));
            if (status == GPU_OK)
                judge(&p, 0, &done);
            decomposition_free(&p.call, &done);
            close_problem(&p);
            if (!reached)
                break;
            status = GPU_ERROR;
        }
    }
}

/* An estimate touches nothing, and comes near what a run takes. */
static void estimates(void **state)
{
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        struct problem p;
        struct accel_call done;
        struct runner counted = {.most = 70}, ran = {.most = 70, .fails_at = -1};
        struct decomposition c = {
            .run = count, .fits = fits, .context = &counted, .estimates = true};
        open_problem(&p, ACCEL_COMPLEX128, "NV"[vectors], 'L');
        fill_spectrum(&p, 0, 3);
        assert_int_equal(spectral_decompose(&c, &p.call, &done), GPU_OK);
        assert_memory_equal(done.span, p.call.span, sizeof done.span);
        assert_true(c.host_bytes > 0);
        assert_int_equal(decompose(&p, &ran, &done), GPU_OK);
        assert_true(counted.operations > 0.6 * ran.operations);
        assert_true(counted.operations < 1.5 * ran.operations);
        decomposition_free(&p.call, &done);
        close_problem(&p);
    }
}

/* A matrix for which no machine has the memory. */
static void knows_the_host(void **state)
{
    struct problem p;
    struct accel_call done;
    struct runner r = {.most = 40, .fails_at = -1};
    struct decomposition c = {.run = run, .fits = fits, .context = &r};
    (void)state;
    open_problem(&p, ACCEL_FLOAT64, 'V', 'L');
    p.call.blas.size[ACCEL_n] = 100000000;
    assert_int_equal(spectral_decompose(&c, &p.call, &done), GPU_NO_MEMORY);
    c.estimates = true;
    assert_int_equal(spectral_decompose(&c, &p.call, &done), GPU_NO_MEMORY);
    assert_int_equal(r.calls, 0);
    close_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divides_every_spectrum), cmocka_unit_test(divides_further_without_memory),
        cmocka_unit_test(parts_are_put_in_order), cmocka_unit_test(leaves_to_lapack_what_it_scales),
        cmocka_unit_test(passes_failures_on),     cmocka_unit_test(estimates),
        cmocka_unit_test(knows_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
