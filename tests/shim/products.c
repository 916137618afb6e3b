#include "products.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/gemm.h"

/* ---- The program's BLAS ---- */

#define FORTRAN(name)                                                                              \
    void name(const char *, const char *, const blas_int *, const blas_int *, const blas_int *,    \
              const void *, const void *, const blas_int *, const void *, const blas_int *,        \
              const void *, void *, const blas_int *, size_t, size_t)
FORTRAN(sgemm_);
FORTRAN(dgemm_);
FORTRAN(cgemm_);
FORTRAN(zgemm_);
typedef FORTRAN(fortran_gemm);
static fortran_gemm *const fortran[] = {sgemm_, dgemm_, cgemm_, zgemm_};

/* As C programs have it that know nothing of hidden lengths. */
typedef void no_lengths_gemm(const char *, const char *, const blas_int *, const blas_int *,
                             const blas_int *, const void *, const void *, const blas_int *,
                             const void *, const blas_int *, const void *, void *,
                             const blas_int *);

#define CBLAS(name, scalar)                                                                        \
    void name(int, int, int, blas_int, blas_int, blas_int, scalar, const void *, blas_int,         \
              const void *, blas_int, scalar, void *, blas_int)
CBLAS(cblas_sgemm, float);
CBLAS(cblas_dgemm, double);
CBLAS(cblas_cgemm, const void *);
CBLAS(cblas_zgemm, const void *);

/* ---- Random matrices with room around and between the columns ---- */

static double uniform(unsigned *seed)
{
    return 2.0 * rand_r(seed) / RAND_MAX - 1;
}

static int64_t below(unsigned *seed, int64_t n)
{
    return n > 0 ? rand_r(seed) % n : 0;
}

#define MARGIN 64 /* bytes before and behind */

struct matrix {
    int64_t rows, cols, ld;
    size_t bytes; /* with the margins */
    char *memory, *copy;
    void *first; /* the first element, wherever it is */
    void *where; /* what memory->put returned */
    const struct test_memory *kind;
};

static void fill(char *at, size_t bytes, enum accel_dtype dtype, unsigned *seed)
{
    for (size_t i = 0; i < bytes; i += accel_is_double(dtype) ? 8 : 4) {
        if (accel_is_double(dtype))
            *(double *)(at + i) = uniform(seed);
        else
            *(float *)(at + i) = (float)uniform(seed);
    }
}

static struct matrix make(int64_t rows, int64_t cols, enum accel_dtype dtype, bool nan,
                          unsigned *seed, const struct test_memory *kind)
{
    struct matrix x = {.rows = rows, .cols = cols, .kind = kind};
    x.ld = (rows > 0 ? rows : 1) + (below(seed, 2) ? below(seed, 5) : 0);
    x.bytes = (size_t)(x.ld * (cols > 0 ? cols : 1)) * accel_dtype_size(dtype) + 2 * MARGIN;
    x.memory = aligned_alloc(64, (x.bytes + 63) / 64 * 64);
    x.copy = malloc(x.bytes);
    if (!x.memory || !x.copy)
        abort();
    fill(x.memory, x.bytes, dtype, seed);
    for (int64_t col = 0; nan && col < cols; col++)
        memset(x.memory + MARGIN + (size_t)(col * x.ld) * accel_dtype_size(dtype), 0xff,
               (size_t)rows * accel_dtype_size(dtype));
    memcpy(x.copy, x.memory, x.bytes);
    x.where = kind ? kind->put(x.memory, x.bytes) : x.memory;
    x.first = (char *)x.where + MARGIN;
    return x;
}

static void bring_back(struct matrix *x)
{
    if (x->kind)
        x->kind->get(x->memory, x->where, x->bytes);
}

static void release(struct matrix *x)
{
    if (x->kind)
        x->kind->release(x->where);
    free(x->memory);
    free(x->copy);
}

/* Whether every byte outside the matrix's elements (inside too, if all) is as it was. */
static bool untouched(const struct matrix *x, enum accel_dtype dtype, bool all)
{
    size_t size = accel_dtype_size(dtype);
    if (all)
        return memcmp(x->memory, x->copy, x->bytes) == 0;
    char *masked = malloc(x->bytes);
    if (!masked)
        abort();
    memcpy(masked, x->memory, x->bytes);
    for (int64_t col = 0; col < x->cols; col++) {
        size_t at = MARGIN + (size_t)(col * x->ld) * size;
        memcpy(masked + at, x->copy + at, (size_t)x->rows * size);
    }
    bool same = memcmp(masked, x->copy, x->bytes) == 0;
    free(masked);
    return same;
}

/* ---- One product ---- */

static const char *const type_names = "sdcz";

static void call_blas(enum test_interface interface, enum accel_dtype dtype, char ta, char tb,
                      blas_int m, blas_int n, blas_int k, const double alpha[2],
                      const struct matrix *a, const struct matrix *b, const double beta[2],
                      const struct matrix *c)
{
    float alpha32[2] = {(float)alpha[0], (float)alpha[1]},
          beta32[2] = {(float)beta[0], (float)beta[1]};
    const void *pa = accel_is_double(dtype) ? (const void *)alpha : alpha32;
    const void *pb = accel_is_double(dtype) ? (const void *)beta : beta32;
    blas_int lda = (blas_int)a->ld, ldb = (blas_int)b->ld, ldc = (blas_int)c->ld;
    if (interface == TEST_FORTRAN) {
        fortran[dtype](&ta, &tb, &m, &n, &k, pa, a->first, &lda, b->first, &ldb, pb, c->first, &ldc,
                       1, 1);
        return;
    }
    if (interface == TEST_NO_LENGTHS) {
        no_lengths_gemm *f = (no_lengths_gemm *)(void (*)(void))fortran[dtype];
        f(&ta, &tb, &m, &n, &k, pa, a->first, &lda, b->first, &ldb, pb, c->first, &ldc);
        return;
    }
    int layout = interface == TEST_CBLAS_ROW ? 101 : 102;
    int cta = ta == 'N'   ? 111
              : ta == 'T' ? 112
                          : 113,
        ctb = tb == 'N'   ? 111
              : tb == 'T' ? 112
                          : 113;
    switch (dtype) {
    case ACCEL_FLOAT32:
        cblas_sgemm(layout, cta, ctb, m, n, k, alpha32[0], a->first, lda, b->first, ldb, beta32[0],
                    c->first, ldc);
        break;
    case ACCEL_FLOAT64:
        cblas_dgemm(layout, cta, ctb, m, n, k, alpha[0], a->first, lda, b->first, ldb, beta[0],
                    c->first, ldc);
        break;
    case ACCEL_COMPLEX64:
        cblas_cgemm(layout, cta, ctb, m, n, k, pa, a->first, lda, b->first, ldb, pb, c->first, ldc);
        break;
    default:
        cblas_zgemm(layout, cta, ctb, m, n, k, pa, a->first, lda, b->first, ldb, pb, c->first, ldc);
    }
}

static void pick_scalar(double z[2], enum accel_dtype dtype, unsigned *seed)
{
    int64_t which = below(seed, 4);
    z[0] = which == 0 ? 0 : which == 1 ? 1 : which == 2 ? -1 : (float)uniform(seed);
    z[1] = accel_is_complex(dtype) && which == 3 ? (float)uniform(seed) : 0;
}

static int64_t pick_size(int max, unsigned *seed)
{
    int64_t which = below(seed, 12);
    return which < 2 ? which : 1 + below(seed, max);
}

/* The rectangle of C packed, as it was: for the ratio. */
static void *packed_copy(const struct matrix *c, enum accel_dtype dtype)
{
    size_t size = accel_dtype_size(dtype);
    char *packed = malloc((size_t)(c->rows * c->cols) * size + 1);
    if (!packed)
        abort();
    for (int64_t col = 0; col < c->cols; col++)
        memcpy(packed + (size_t)(col * c->rows) * size,
               c->copy + MARGIN + (size_t)(col * c->ld) * size, (size_t)c->rows * size);
    return packed;
}

static bool one_product(enum test_interface interface, enum accel_dtype dtype, int max_size,
                        unsigned *seed, const struct test_memory *memory[3])
{
    static const char flags[] = "NTCntc";
    const struct accel_routine routine = {.dtype = dtype};
    struct accel_call call = {.routine = &routine};
    bool row = interface == TEST_CBLAS_ROW;
    double alpha[2], beta[2];
    unsigned first_seed = *seed;
    char ta = flags[below(seed, 6)], tb = flags[below(seed, 6)];
    if (interface == TEST_CBLAS_COLUMN || row) {
        ta = (char)(ta & ~32);
        tb = (char)(tb & ~32);
    }
    int64_t m = pick_size(max_size, seed), n = pick_size(max_size, seed),
            k = pick_size(max_size, seed);
    pick_scalar(alpha, dtype, seed);
    pick_scalar(beta, dtype, seed);
    bool has_beta = beta[0] != 0 || beta[1] != 0;
    bool na = (ta & ~32) == 'N', nb = (tb & ~32) == 'N';
    /* Stored shapes; a row-major matrix is stored as its transpose is column-major. */
    int64_t ar = na ? m : k, ac = na ? k : m, br = nb ? k : n, bc = nb ? n : k;
    struct matrix a = make(row ? ac : ar, row ? ar : ac, dtype, false, seed, memory[0]);
    struct matrix b = make(row ? bc : br, row ? br : bc, dtype, false, seed, memory[1]);
    struct matrix c = make(row ? n : m, row ? m : n, dtype, !has_beta, seed, memory[2]);
    call_blas(interface, dtype, ta, tb, (blas_int)m, (blas_int)n, (blas_int)k, alpha, &a, &b, beta,
              &c);
    bring_back(&a);
    bring_back(&b);
    bring_back(&c);

    struct matrix *left = row ? &b : &a, *right = row ? &a : &b;
    call.flag[ACCEL_transa] = (char)((row ? tb : ta) & ~32);
    call.flag[ACCEL_transb] = (char)((row ? ta : tb) & ~32);
    call.size[ACCEL_m] = row ? n : m;
    call.size[ACCEL_n] = row ? m : n;
    call.size[ACCEL_k] = k;
    call.scalar[ACCEL_alpha] = (struct accel_complex){alpha[0], alpha[1]};
    call.scalar[ACCEL_beta] = (struct accel_complex){beta[0], beta[1]};
    call.operand[ACCEL_a] = (struct accel_operand){
        .ptr = left->memory + MARGIN, .rows = left->rows, .cols = left->cols, .ld = left->ld};
    call.operand[ACCEL_b] = (struct accel_operand){
        .ptr = right->memory + MARGIN, .rows = right->rows, .cols = right->cols, .ld = right->ld};
    call.operand[ACCEL_c] = (struct accel_operand){
        .ptr = c.memory + MARGIN, .rows = c.rows, .cols = c.cols, .ld = c.ld};
    void *before = packed_copy(&c, dtype);
    double ratio = cpu_ref_gemm_ratio(&call, before);
    bool right_result = ratio <= CPU_REF_THRESHOLD;
    bool right_memory =
        untouched(&a, dtype, true) && untouched(&b, dtype, true) && untouched(&c, dtype, false);
    if (!right_result || !right_memory)
        fprintf(
            stderr,
            "wrong: %cgemm interface %d %c%c m=%ld n=%ld k=%ld lda=%ld ldb=%ld ldc=%ld alpha=%g "
            "beta=%g seed=%u: ratio %g, memory %s\n",
            type_names[dtype], interface, ta, tb, (long)m, (long)n, (long)k, (long)a.ld, (long)b.ld,
            (long)c.ld, alpha[0], beta[0], first_seed, ratio,
            right_memory ? "untouched" : "touched");
    free(before);
    release(&a);
    release(&b);
    release(&c);
    return right_result && right_memory;
}

int test_products(const struct test_options *options, const struct test_memory *memory[3])
{
    static const struct test_memory *host[3];
    unsigned seed = options->seed;
    int wrong = 0;
    for (int i = 0; i < options->count; i++)
        for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
            wrong += !one_product(options->interface, (enum accel_dtype)dtype, options->max_size,
                                  &seed, memory ? memory : host);
    return wrong;
}

int test_options_read(struct test_options *options, int argc, char **argv)
{
    static const char *const names[] = {"fortran", "no-lengths", "cblas-column", "cblas-row"};
    int option;
    *options = (struct test_options){TEST_FORTRAN, 1, 10, 40};
    while ((option = getopt(argc, argv, "+i:s:c:n:")) != -1) {
        switch (option) {
        case 'i': {
            size_t i = 0;
            while (i < 4 && strcmp(names[i], optarg) != 0)
                i++;
            if (i == 4) {
                fprintf(stderr, "-i: fortran, no-lengths, cblas-column, cblas-row\n");
                exit(2);
            }
            options->interface = (enum test_interface)i;
            break;
        }
        case 's':
            options->seed = (unsigned)atoi(optarg);
            break;
        case 'c':
            options->count = atoi(optarg);
            break;
        case 'n':
            options->max_size = atoi(optarg);
            break;
        default:
            exit(2);
        }
    }
    return optind;
}
