/*
 * Quadratic problems of support vector machines (gpu/exec/ml/smo.h) against a solver on the CPU:
 * all types of problems and kernels, memory that is short, launches, failures. With TEST_REAL_GPU
 * set, on whatever GPU is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/long.h"
#include "tests/lib/smo_cases.h"

/* With memory for few rows of the kernel matrix, they go and come again. */
static void rows_come_and_go(void **state)
{
    (void)state;
    int evicted = 0;
    for (int kind = 0; kind < KINDS;
         kind += test_is_long() ? 1 : 3) { /* sparse vectors, and others */
        const struct smo_kernel kernel = kernels[(kind + 2) % KERNELS];
        struct data *d = make_data(100, 4);
        struct made *ours = make_kind((enum kind)kind, 0, 100, d->label, 1);
        struct made *theirs = make_kind((enum kind)kind, 0, 100, d->label, 1);
        memory_left = kind < EPSILON_SVR ? 158000 : 162000;
        enum gpu_status status = solve(kernel, &d->x, kind % 2, &ours->p, 1);
        memory_left = 0;
        assert_int_equal(status, GPU_OK);
        assert_true(ours->p.rows_touched > 0);
        assert_true(ours->p.rows_computed <= 2 * ours->p.rows_touched);
        evicted += ours->p.rows_computed > 100;
        is_as_good(kernel, &d->x, &ours->p, &theirs->p);
        free(ours);
        free(theirs);
        free_data(d);
    }
    /* The memory is for the test GPU's ways: another device takes other steps, and may need no row
     * twice. */
    assert_true(evicted > 0 || is_real_gpu());
}

/* ---- Several problems ---- */

enum { PARTS = 3, PART = 80 };

static void solve_parts(int64_t left, struct smo_problem solved[PARTS], struct made *made[PARTS])
{
    const struct smo_kernel kernel = kernels[2];
    struct data *d = make_data((int64_t)PARTS * PART, 4);
    for (int i = 0; i < PARTS; i++) {
        made[i] = make_kind((enum kind)(i % 2), (int64_t)i * PART, PART, d->label, 1);
        solved[i] = made[i]->p;
    }
    memory_left = left;
    enum gpu_status status = solve(kernel, &d->x, false, solved, PARTS);
    memory_left = 0;
    assert_int_equal(status, GPU_OK);
    for (int i = 0; i < PARTS; i++) {
        struct made *theirs = make_kind((enum kind)(i % 2), (int64_t)i * PART, PART, d->label, 1);
        is_as_good(kernel, &d->x, &solved[i], &theirs->p);
        free(theirs);
    }
    free_data(d);
}

/* Over one matrix, over rows of each problem's own that all fit, and one after the other: the
 * answer is the same, each time. */
static void several_problems(void **state)
{
    const int64_t left[] = {0, 0, 300000, 200000, 180000};
    struct smo_problem solved[2][PARTS];
    struct made *made[2][PARTS];
    (void)state;
    for (int i = 0; i < 5; i++) {
        srand(2);
        solve_parts(left[i], solved[i > 0], made[i > 0]);
        assert_true((solved[i > 0][0].rows_computed > 0) == (left[i] > 0));
        for (int j = 0; i > 0 && j < PARTS; j++) {
            for (int64_t v = 0; v < PART; v++)
                assert_true(made[0][j]->alpha[v] == made[1][j]->alpha[v] ||
                            (i > 1 && fabs(made[0][j]->alpha[v] - made[1][j]->alpha[v]) < 1e-6));
            free(made[1][j]);
        }
    }
    for (int j = 0; j < PARTS; j++)
        free(made[0][j]);
}

/* ---- Ends ---- */

static void a_given_matrix(void **state)
{
    const struct smo_kernel given = {SMO_PRECOMPUTED, 0, 0, 0};
    struct data *d = make_data(60, 4);
    double *k = malloc(60 * 60 * sizeof *k);
    const struct reference_vectors x = {60, 60, k};
    (void)state;
    for (int i = 0; i < 60 * 60; i++)
        k[i] = reference_kernel(&kernels[2], &d->x, i / 60, i % 60);
    for (int i = 0; i < 2; i++) {
        struct made *ours = make_kind(NU_SVC, 0, 60, d->label, 1);
        struct made *theirs = make_kind(NU_SVC, 0, 60, d->label, 1);
        memory_left = i ? 120000 : 0;
        enum gpu_status status = solve(given, &x, false, &ours->p, 1);
        memory_left = 0;
        assert_int_equal(status, GPU_OK);
        is_as_good(given, &x, &ours->p, &theirs->p);
        free(ours);
        free(theirs);
    }
    free(k);
    free_data(d);
}

/* ---- Decision values ---- */

enum { VECTORS = 23, SUPPORT = 31, OUTPUTS = 3 };

static void decisions_of(struct smo_kernel kernel, bool sparse, const struct data *d)
{
    double coefficient[OUTPUTS * SUPPORT], values[VECTORS * OUTPUTS];
    const struct reference_vectors support = {SUPPORT, d->x.features, d->x.values};
    const struct reference_vectors vectors = {VECTORS, d->x.features,
                                              d->x.values + SUPPORT * d->x.features};
    struct smo s = {.work = &work, .kernel = kernel};
    for (int i = 0; i < OUTPUTS * SUPPORT; i++)
        coefficient[i] = number(-1, 1);
    const struct smo_matrix from = put(&s, &vectors, sparse), to = put(&s, &support, sparse);
    smo_decide(&s, &from, &to, coefficient, OUTPUTS, values);
    assert_int_equal(s.status, GPU_OK);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    for (int i = 0; i < VECTORS * OUTPUTS; i++) {
        double sum = 0;
        for (int j = 0; j < SUPPORT; j++)
            sum += coefficient[i % OUTPUTS * SUPPORT + j] *
                   reference_kernel(&kernel, &d->x, SUPPORT + i / OUTPUTS, j);
        assert_true(fabs(values[i] - sum) < 1e-11);
    }
}

static void decision_values(void **state)
{
    struct data *d = make_data(VECTORS + SUPPORT, 5);
    (void)state;
    for (int k = 0; k < KERNELS; k++)
        for (int sparse = 0; sparse < 2; sparse++)
            decisions_of(kernels[k], sparse, d);
    free_data(d);
}

/* ---- What the driver is asked for ---- */

static int asked, failing;      /* calls so far; the one that fails, or 0 */
static bool failing_was_memory; /* the pool may find some yet */

static bool ask(void)
{
    return ++asked != failing;
}

static CUresult launch(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void **arguments,
                       void **extra)
{
    return ask() ? real.cuLaunchKernel_p(f, x, y, z, bx, by, bz, shared, stream, arguments, extra)
                 : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult launch_together(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                void **arguments)
{
    return ask()
               ? real.cuLaunchCooperativeKernel_p(f, x, y, z, bx, by, bz, shared, stream, arguments)
               : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult allocate(CUdeviceptr *memory, size_t bytes)
{
    failing_was_memory = asked + 1 == failing || failing_was_memory;
    return ask() ? real.cuMemAlloc_p(memory, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult copy_up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return ask() ? real.cuMemcpyHtoDAsync_p(to, from, bytes, stream) : CUDA_ERROR_UNKNOWN;
}

static CUresult copy_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return ask() ? real.cuMemcpyDtoHAsync_p(to, from, bytes, stream) : CUDA_ERROR_UNKNOWN;
}

static CUresult fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream)
{
    return ask() ? real.cuMemsetD8Async_p(to, byte, bytes, stream) : CUDA_ERROR_UNKNOWN;
}

static CUresult wait_for_stream(CUstream stream)
{
    return ask() ? real.cuStreamSynchronize_p(stream) : CUDA_ERROR_UNKNOWN;
}

static CUresult wait_for_event(CUevent event)
{
    return ask() ? real.cuEventSynchronize_p(event) : CUDA_ERROR_UNKNOWN;
}

/* Watches launches and waits. */
static void watch(void)
{
    asked = failing = 0;
    failing_was_memory = false;
    cuda_api.cuLaunchKernel_p = launch;
    cuda_api.cuLaunchCooperativeKernel_p = launch_together;
    cuda_api.cuStreamSynchronize_p = wait_for_stream;
    cuda_api.cuEventSynchronize_p = wait_for_event;
}

static void note_progress(void *context, int64_t iterations)
{
    *(int64_t *)context += iterations;
}

/* However many iterations there are, the host does little. */
static void few_launches(void **state)
{
    struct data *d = make_data(60, 2);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct made *ours = make_kind(EPSILON_SVR, 0, 60, d->label, 20);
        ours->p.eps = 1e-3;
        int64_t progress = 0;
        struct smo s = {
            .work = &work, .kernel = kernels[0], .progress = note_progress, .context = &progress};
        const struct smo_matrix x = put(&s, &d->x, false);
        const int64_t budget = device->budget;
        gpu_memory(&work)->trim(&work);
        if (i > 0)
            device->budget -= gpu_memory(&work)->available(&work) - 140000;
        watch();
        smo_solve(&s, &x, &ours->p, 1);
        device->budget = budget;
        assert_int_equal(s.status, GPU_OK);
        assert_true((ours->p.rows_computed > 0) == (i > 0));
        assert_true(ours->p.iterations > 1000);
        assert_in_range(asked, 1, ours->p.iterations / 50);
        assert_int_equal(progress, ours->p.iterations);
        cuda_api = real;
        assert_int_equal(gpu_work_give_back(&work), GPU_OK);
        free(ours);
    }
    free_data(d);
}

/* ---- Real data ---- */

enum { PIXELS = 784, HEADS = 16, LABEL_HEADS = 8 };

/* Reads a file of Debian's dataset-fashion-mnist, or of the folder TEST_IMAGES, without its
 * heading. Returns how many bytes there are; 0: no such file. */
static size_t read_fashion(const char *name, int heading, unsigned char *to, size_t most)
{
    static const char usual[] = "/usr/share/datasets/fashion-mnist";
    const char *given = getenv("TEST_IMAGES");
    char command[4096];
    (void)snprintf(command, sizeof command, "gzip -dc '%s/train-%s-ubyte.gz' 2>/dev/null",
                   given ? given : usual, name);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const bool there = fread(to, 1, (size_t)heading, pipe) == (size_t)heading;
    const size_t bytes = there ? fread(to, 1, most, pipe) : 0;
    (void)pclose(pipe);
    return bytes;
}

/* The first rows of two classes that are hard to tell apart, T-shirts and shirts. Returns NULL if
 * there are no such data. */
static struct data *fashion_data(int64_t rows)
{
    enum { ALL = 60000 };
    unsigned char *label = malloc(ALL), *image = malloc((size_t)ALL * PIXELS);
    struct data *d = calloc(1, sizeof *d);
    d->values = calloc((size_t)(rows * PIXELS), sizeof(double));
    d->x = (struct reference_vectors){0, PIXELS, d->values};
    const size_t labels = read_fashion("labels-idx1", LABEL_HEADS, label, ALL);
    const size_t images = read_fashion("images-idx3", HEADS, image, (size_t)ALL * PIXELS) / PIXELS;
    for (size_t i = 0; i < labels && i < images && d->x.rows < rows; i++) {
        if (label[i] != 0 && label[i] != 6)
            continue;
        d->label[d->x.rows] = label[i] ? 1 : -1;
        for (size_t f = 0; f < PIXELS; f++)
            d->values[(size_t)d->x.rows * PIXELS + f] = image[i * PIXELS + f] / 255.0;
        d->x.rows++;
    }
    free(label);
    free(image);
    if (d->x.rows == rows)
        return d;
    free_data(d);
    return NULL;
}

/* Fashion-MNIST, where the kernel matrix does not fit: few rows are computed in vain, and the host
 * does little. */
static void rows_of_fashion(void **state)
{
    enum { ROWS = 160 };
    (void)state;
    struct data *d = fashion_data(ROWS);
    if (!d) {
        print_message("needs Debian's dataset-fashion-mnist\n");
        skip();
    }
    for (int i = test_is_long() ? 0 : 1; i < 2; i++) {
        const struct smo_kernel kernel = {SMO_RBF, 0, i == 0 ? 0.01 : 0.001, 0};
        struct made *ours = make_kind(C_SVC, 0, ROWS, d->label, i == 0 ? 100 : 1e4);
        struct made *theirs = make_kind(C_SVC, 0, ROWS, d->label, i == 0 ? 100 : 1e4);
        ours->p.eps = theirs->p.eps = 1e-3;
        memory_left = 2 * ROWS * ROWS + 250 * ROWS + 90000; /* for half of the rows, or fewer */
        watch();
        assert_int_equal(solve(kernel, &d->x, i == 1, &ours->p, 1), GPU_OK);
        cuda_api = real;
        memory_left = 0;
        print_message(
            "%d rows, C = %g, gamma = %g: %d iterations, %d launches and waits, %d rows used, "
            "%d computed\n",
            ROWS, ours->p.c[0], kernel.gamma, (int)ours->p.iterations, asked,
            (int)ours->p.rows_touched, (int)ours->p.rows_computed);
        assert_true(ours->p.rows_touched > 0);
        assert_true(ours->p.rows_computed <= 2 * ours->p.rows_touched);
        assert_in_range(asked, 1, ours->p.iterations / 50);
        is_as_good(kernel, &d->x, &ours->p, &theirs->p);
        free(ours);
        free(theirs);
    }
    free_data(d);
}

/* Each call of the driver fails in turn. */
static void every_failure_ends_it(void **state)
{
    struct data *d = make_data(30, 3);
    int fails = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        int which = 0;
        do {
            struct made *ours = make_kind(NU_SVC, 0, 30, d->label, 1);
            gpu_memory(&work)->trim(&work);
            watch();
            cuda_api.cuMemAlloc_p = allocate;
            cuda_api.cuMemcpyHtoDAsync_p = copy_up;
            cuda_api.cuMemcpyDtoHAsync_p = copy_down;
            cuda_api.cuMemsetD8Async_p = fill;
            failing = ++which;
            struct smo s = {.work = &work, .kernel = kernels[2]};
            const struct smo_matrix x = put(&s, &d->x, i);
            smo_solve(&s, &x, &ours->p, 1);
            cuda_api = real;
            if (s.status != GPU_OK)
                fails++;
            else
                assert_true(ours->p.converged);
            assert_true(s.status != GPU_OK || which > asked || failing_was_memory);
            stream_ctx_wait(work.ctx);
            gpu_memory(&work)->drop(&work);
            free(ours);
        } while (which <= asked);
    }
    assert_true(fails > 20);
    free_data(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_and_go, begin, end_work),
        cmocka_unit_test_setup_teardown(several_problems, begin, end_work),
        cmocka_unit_test_setup_teardown(a_given_matrix, begin, end_work),
        cmocka_unit_test_setup_teardown(decision_values, begin, end_work),
        cmocka_unit_test_setup_teardown(few_launches, begin, end_work),
        cmocka_unit_test_setup_teardown(rows_of_fashion, begin, end_work),
        cmocka_unit_test_setup_teardown(every_failure_ends_it, begin, end_work),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
