/* GSL's decompositions on the test GPU, beside GSL's own in the same process (ops/gsl/). */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/convention.h"
#include "ops/gsl/gsl.h"
#include "tests/lib/device_work.h"
#include "tests/lib/routine.h"

enum { MOST = 40, TDA = MOST + 2 };

static void *gsl;

/* Numbers of a matrix, and behind its rows what must stay; of complex numbers twice as many. */
struct operands {
    double a[2 * MOST * TDA], tau[2 * MOST];
    size_t p[MOST];
    int sign;
};

static void fill(double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (double)rand() / RAND_MAX - 0.5;
}

/* Decomposes a matrix of m x n on the device, and another one by GSL's own function. */
static void decompose(const char *name, const char *symbol, size_t m, size_t n,
                      struct operands *ours, struct operands *own)
{
    struct operands *const both[] = {ours, own};
    const bool permutes = strcmp(name, "gsl_lu") == 0, reduces = strstr(name, "td") != NULL;
    const size_t least = m < n ? m : n;
    int (*original)(void *, void *, void *);
    *(void **)&original = dlsym(gsl, symbol);
    assert_non_null(original);
    memcpy(own, ours, sizeof *own);
    for (int i = 0; i < 2; i++) {
        struct gsl_matrix a = {m, n, TDA, both[i]->a};
        struct gsl_vector tau = {reduces ? n - 1 : least, 1, both[i]->tau};
        struct gsl_permutation p = {m, both[i]->p};
        void *const second = permutes ? (void *)&p : &tau, *const third = &both[i]->sign;
        if (i == 1) {
            assert_int_equal(original(&a, second, third), 0);
            continue;
        }
        const uint64_t gpr[ACCEL_WORD_REGISTERS] = {(uintptr_t)&a, (uintptr_t)second,
                                                    (uintptr_t)third};
        const struct accel_passed passed = {.gpr = gpr, .abi = ACCEL_ABI_OWN, .layout = 7};
        struct accel_result result = {.gpr = {7}};
        assert_true(accel_convention_of(routine(name))->parse(&call, routine(name), &passed));
        assert_int_equal(call.op->gpu->run(&work), GPU_OK);
        gpu_work_give_back(&work);
        call.op->foreign->complete(&call, &result);
        assert_int_equal(result.gpr[0], 0);
    }
}

static void assert_same(const char *name, size_t m, const double *x, const double *y, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(x[i] - y[i]) <= 1e-10 * (1 + fabs(y[i]))))
            fail_msg("%s of %zu: number %zu is %g, not %g", name, m, i, x[i], y[i]);
}

static void factors_are_gsls(void **state)
{
    static const struct {
        const char *name, *symbol;
        int taller; /* than it is wide */
    } of[] = {{"gsl_cholesky", "gsl_linalg_cholesky_decomp1", 0},
              {"gsl_lu", "gsl_linalg_LU_decomp", 0},
              {"gsl_qr", "gsl_linalg_QR_decomp", 0},
              {"gsl_qr", "gsl_linalg_QR_decomp", 3},
              {"gsl_lq", "gsl_linalg_LQ_decomp", 0},
              {"gsl_lq", "gsl_linalg_LQ_decomp", -3},
              {"gsl_symmtd", "gsl_linalg_symmtd_decomp", 0},
              {"gsl_hermtd", "gsl_linalg_hermtd_decomp", 0}};
    static struct operands ours, own;
    (void)state;
    srand(1);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        for (size_t n = 4; n <= MOST - 3; n = 2 * n + 1) {
            const size_t m = (size_t)((int)n + of[k].taller);
            const bool definite = k == 0, complex = strcmp(of[k].name, "gsl_hermtd") == 0;
            fill(ours.a, 2 * MOST * TDA);
            fill(ours.tau, 2 * MOST);
            for (size_t i = 0; i < n && i < m; i++) {
                double *const diagonal = &ours.a[(complex ? 2 : 1) * (i * TDA + i)];
                diagonal[0] += definite ? (double)n : 0;
                if (complex)
                    diagonal[1] = 0;
            }
            memset(ours.p, 0, sizeof ours.p);
            ours.sign = 7;
            decompose(of[k].name, of[k].symbol, m, n, &ours, &own);
            if (strcmp(of[k].name, "gsl_symmtd") ==
                0) /* GSL leaves something there, and uses none */
                ours.tau[n - 2] = own.tau[n - 2];
            assert_same(of[k].name, m, ours.a, own.a, 2 * MOST * TDA);
            assert_same("tau", m, ours.tau, own.tau, 2 * MOST);
            assert_memory_equal(ours.p, own.p, sizeof own.p);
            assert_int_equal(ours.sign, own.sign);
        }
}

static int start(void **state)
{
    setenv("TESTGPU_DELAY_US", "0", 0);
    gsl = dlopen("libgslcblas.so", RTLD_NOW | RTLD_GLOBAL) ? dlopen("libgsl.so", RTLD_NOW) : NULL;
    return gsl ? start_work(state) : -1;
}

/* cuSOLVER has been loaded since the test began. */
static int end(void **state)
{
    real = cuda_api;
    return end_work(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(factors_are_gsls, begin_work, end)};
    return cmocka_run_group_tests_name("ops/gsl on a device", tests, start, stop_device);
}
