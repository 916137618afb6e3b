/*
 * What a call puts on the streams: copies and kernels at the same time, each byte once. With
 * TEST_REAL_GPU set, on whatever GPU is found, in ACCEL_CUDA_DIR first: results alone then, as
 * there is no trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread/copy_pool.h"
#include "cpu_ref/judge.h"
#include "gpu/cuda/api/cuda_api.h"
#include "gpu/cuda/device.h"
#include "gpu/device/gpu.h"
#include "ops/op.h"
#include "tests/lib/devices.h"
#include "tests/lib/products.h"
#include "tests/lib/rates.h"
#include "tests/lib/routine.h"

static struct gpu_device *device;
static struct cuda_device *own;

static int start(void **state)
{
    *state = device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    own = cuda_device_of(device);
    if (!device)
        return -1;
    /* A stream context's first call waits for the stream context. */
    struct product p;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 8, 8, 8, 0);
    const enum gpu_status status = gpu_run(device, &p.call, &p.host);
    destroy_product(&p);
    return status == GPU_OK ? 0 : -1;
}

/* ---- Uploads, kernels and downloads at the same time ---- */

/* The test GPU's trace, in which calls are in the order in which they came. */
static const char *trace;

static FILE *open_trace(long at, int whence)
{
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, whence), 0);
    return file;
}

/* What a call has put on the streams. */
struct traced {
    /* Bytes up and down; up before the first kernel, down before the last */
    double up, down, before_kernels, among_kernels;
    int kernels, waits;
};

static struct traced read_trace(long from)
{
    struct traced t = {0};
    char line[512];
    FILE *file = open_trace(from, SEEK_SET);
    while (fgets(line, sizeof line, file)) {
        const char *bytes = strstr(line, "bytes=");
        if (strstr(line, "cuMemcpyHtoDAsync"))
            t.up += bytes ? atof(bytes + 6) : 0;
        if (strstr(line, "cuMemcpyDtoHAsync"))
            t.down += bytes ? atof(bytes + 6) : 0;
        if (strstr(line, " cublasDgemm")) {
            t.before_kernels = t.kernels++ == 0 ? t.up : t.before_kernels;
            t.among_kernels = t.down;
        }
        t.waits += strstr(line, " cuStreamSynchronize") != NULL;
    }
    fclose(file);
    return t;
}

static long trace_length(void)
{
    FILE *file = open_trace(0, SEEK_END);
    const long length = ftell(file);
    fclose(file);
    return length;
}

/* The link takes about as long as the kernels. */
static const struct schedule_rates balanced = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);

/* As long as the link takes about as long as the kernels, each by rates that say so: the first
 * kernel comes with the first tiles, and results go down between kernels. Each byte moves once. */
static void copies_and_kernels_overlap(void **state)
{
    struct product p;
    (void)state;
    make_product(&p, ACCEL_FLOAT64, 'N', 'T', 448, 416, 480, 0.5);
    p.host.rates = balanced;
    const long from = is_real_gpu() ? 0 : trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    const double up = 8.0 * (448 * 480 + 416 * 480 + 448 * 416), down = 8.0 * 448 * 416;
    assert_int_equal(p.host.up_bytes, (int64_t)up);
    assert_int_equal(p.host.down_bytes, (int64_t)down);
    if (!is_real_gpu()) {
        const struct traced t = read_trace(from);
        assert_true(t.up == up && t.down == down);
        assert_true(t.kernels > 8);
        assert_true(t.before_kernels < 0.1 * up);
        assert_true(t.among_kernels > 0.25 * down);
        assert_int_equal(t.waits, 0); /* events tell when all is done */
    }
    destroy_product(&p);
}

/* The bytes of the first two uploads of a call. */
static size_t first_uploads[2];
static int uploads;
static CUresult (*real_upload)(CUdeviceptr, const void *, size_t, CUstream);

static CUresult note_upload(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    if (uploads < 2)
        first_uploads[uploads] = bytes;
    uploads++;
    return real_upload(to, from, bytes, stream);
}

/* The link does not wait until a chunk of some megabytes is packed. A thread that is held up may
 * find it packed, and for a second there may be nobody to help: then a later attempt tells. */
static void the_first_chunk_goes_up_in_parts(void **state)
{
    struct product p;
    int attempts = 0;
    (void)state;
    if (copy_pool_size() == 0) {
        print_message("skipped: this process has one CPU, and nobody to help\n");
        skip();
    }
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 1100, 32, 1000, 0); /* A is one tile, or a few */
    real_upload = CUDA(cuMemcpyHtoDAsync);
    CUDA(cuMemcpyHtoDAsync) = note_upload;
    do {
        if (attempts > 0)
            usleep(30000);
        uploads = 0;
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        right_product(&p);
    } while (first_uploads[0] >= 1 << 20 && ++attempts < 100);
    CUDA(cuMemcpyHtoDAsync) = real_upload;
    destroy_product(&p);
    assert_in_range(uploads, 2, 1000);
    assert_in_range(first_uploads[0], PACK_PART_BYTES / 2, (1 << 20) - 1);
}

/* Returns how many downloads ran before the last kernel did. */
static int downloads_before_last_kernel(long from, int *kernels)
{
    char line[512], ran[64] = "";
    int downloads = 0, before = 0;
    FILE *file = open_trace(from, SEEK_SET);
    for (*kernels = 0; fgets(line, sizeof line, file);) {
        const char *stream = strstr(line, "cuMemcpyDtoHAsync") ? strstr(line, "stream=") : NULL;
        if (stream)
            snprintf(ran, sizeof ran, " run copy %.*s\n", (int)strcspn(stream, ")"), stream);
        downloads += *ran && strstr(line, ran) != NULL;
        if (strstr(line, " run gemm ")) {
            ++*kernels;
            before = downloads;
        }
    }
    fclose(file);
    return before;
}

/* All kernels are put on their stream long before they run. A finished block comes down at once
 * nevertheless, not behind kernels that it does not depend on: there are more of them than
 * events. */
static void results_do_not_wait_for_later_kernels(void **state)
{
    struct product p;
    int kernels;
    (void)state;
    if (is_real_gpu())
        return; /* there is no trace */
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 1280, 1280, 16, 0);
    p.host.rates = (struct schedule_rates)RATES(2, 2, 0.5, 1e-3, 1e-5, 1e-5, 1e-5);
    const long from = trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    const int before = downloads_before_last_kernel(from, &kernels);
    printf("%d downloads before the last of %d kernels\n", before, kernels);
    assert_true(kernels > 300);
    assert_true(before > kernels / 2);
    destroy_product(&p);
}

/* Counts the kernels of a call by their streams, two at most. */
static int kernels_by_stream(long from, int kernels[2])
{
    char line[512], stream[2][32] = {"", ""};
    int streams = 0;
    FILE *file = open_trace(from, SEEK_SET);
    kernels[0] = kernels[1] = 0;
    while (fgets(line, sizeof line, file)) {
        const char *on = strstr(line, " run gemm ") ? strstr(line, "stream=") : NULL;
        int number = 0;
        if (!on)
            continue;
        while (number < streams && strncmp(on, stream[number], strlen(stream[number])) != 0)
            number++;
        assert_true(number < 2);
        if (number == streams)
            snprintf(stream[streams++], sizeof *stream, "%.*s", (int)strcspn(on, "\n"), on);
        kernels[number]++;
    }
    fclose(file);
    return streams;
}

/* The last blocks of a kernel do not fill the device: kernels of other tiles are there meanwhile,
 * on a stream of their own, if cuBLAS has a workspace for that. */
static void kernels_run_beside_each_other(void **state)
{
    enum { N = 512 };
    struct product p;
    int kernels[2];
    (void)state;
    if (is_real_gpu())
        return; /* there is no trace */
    make_product(&p, ACCEL_FLOAT64, 'N', 'T', N, N, N, 0);
    p.host.rates = balanced;
    for (int round = 0; round < 8; round++) {
        const bool alone = round % 4 == 3;
        __typeof__(CUDA(cublasSetWorkspace_v2)) set = CUDA(cublasSetWorkspace_v2);
        if (alone)
            CUDA(cublasSetWorkspace_v2) = NULL;
        const long from = trace_length();
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        CUDA(cublasSetWorkspace_v2) = set;
        right_product(&p);
        assert_int_equal(kernels_by_stream(from, kernels), alone ? 1 : 2);
        assert_true(kernels[0] + kernels[1] > 8);
        assert_true(alone || (kernels[0] >= kernels[1] / 2 && kernels[1] >= kernels[0] / 2));
    }
    destroy_product(&p);
}

/* ---- Batches ---- */

enum { BATCH = 120, ROWS = 96, COLS = 40, DEPTH = 104 };

/* Products of matrices that a stride leads to, or of pointers to them: those of product number i
 * are number i / repeat % distinct. */
static void make_batch(struct product *p, void **array[3], int repeat, int distinct, bool pointers)
{
    make_product(p, ACCEL_FLOAT64, 'T', 'N', ROWS, COLS, DEPTH, 0.5);
    p->call.routine = routine(pointers ? "dgemm_batch" : "dgemm_batch_strided");
    p->call.op = accel_op_of(p->call.routine);
    p->call.batch = BATCH;
    for (int x = 0; x < 3; x++) {
        struct accel_span *span = &p->call.span[x];
        const int64_t gap = x == 1 ? 3 : 0; /* elements between matrices */
        const int count = x == 0 ? distinct : BATCH;
        free(span->ptr);
        span->ptr = random_matrix(span->rows * span->cols + gap, count, ACCEL_FLOAT64);
        span->stride = count == 1 ? 0 : span->rows * span->cols + gap;
        array[x] = malloc(BATCH * sizeof **array);
        for (int64_t i = 0; i < BATCH; i++)
            array[x][i] = (double *)span->ptr + (x == 0 ? i / repeat % distinct : i) * span->stride;
        span->array = pointers ? array[x] : NULL;
    }
    const size_t bytes = sizeof(double) * ROWS * COLS * BATCH;
    free(p->before);
    p->before = malloc(bytes);
    memcpy(p->before, p->call.span[ACCEL_c].ptr, bytes);
}

static void destroy_batch(struct product *p, void **array[3])
{
    for (int x = 0; x < 3; x++)
        free(array[x]);
    destroy_product(p);
}

static void right_batch(const struct product *p)
{
    const char *before = p->before;
    for (int64_t i = 0; i < BATCH; i++) {
        const struct accel_call one = accel_products_of(&p->call, i, 1);
        assert_true(cpu_ref_ratio(&one, ACCEL_COLUMN_MAJOR,
                                  before + i * (int64_t)sizeof(double) * ROWS * COLS) <=
                    CPU_REF_THRESHOLD);
    }
    assert_int_equal(p->original_calls, 0);
}

/* Runs it in groups, then in one kernel: the results are the same, bit for bit. Each byte moves
 * once, a matrix of A for all products that use it. */
static void check_batch(int repeat, int distinct, bool pointers)
{
    const struct schedule_rates rates = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);
    const struct schedule_rates slow_start = RATES(2, 2, 120, 16, 100, 100, 100);
    const double up = 8.0 * (ROWS * DEPTH * distinct + DEPTH * COLS * BATCH + ROWS * COLS * BATCH);
    const double down = 8.0 * ROWS * COLS * BATCH;
    const size_t bytes = (size_t)down;
    const bool regular = distinct == 1 || distinct == BATCH;
    void **array[3];
    struct product p;
    make_batch(&p, array, repeat, distinct, pointers);
    p.host.rates = rates;
    const long from = is_real_gpu() ? 0 : trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_batch(&p);
    assert_int_equal(p.host.up_bytes, (int64_t)up);
    assert_int_equal(p.host.down_bytes, (int64_t)down);
    if (!is_real_gpu()) {
        const struct traced t = read_trace(from);
        const double of_pointers = regular ? 0 : 3.0 * BATCH * sizeof(void *);
        assert_true(t.up == up + of_pointers && t.down == down);
        assert_true(t.kernels > 8);
        assert_true(t.before_kernels <
                    0.1 * up + of_pointers + (distinct == 1 ? 8.0 * ROWS * DEPTH : 0));
        assert_true(t.among_kernels > 0.7 * down);
        assert_int_equal(t.waits, !regular); /* the pointers are on the device */
    }
    void *result = malloc(bytes);
    memcpy(result, p.call.span[ACCEL_c].ptr, bytes);
    memcpy(p.call.span[ACCEL_c].ptr, p.before, bytes);
    p.host.rates = slow_start;
    const long again = is_real_gpu() ? 0 : trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_true(is_real_gpu() || read_trace(again).kernels == 1);
    assert_memory_equal(p.call.span[ACCEL_c].ptr, result, bytes);
    free(result);
    destroy_batch(&p, array);
}

static void batches_overlap(void **state)
{
    (void)state;
    check_batch(1, BATCH, false);
    check_batch(1, BATCH, true);
    check_batch(1, 1, false);
    check_batch(1, 1, true);
    check_batch(6, 10, true);
    check_batch(1, 20, true);
    check_batch(3, 5, true);
}

/* Memory for some products, for one, and for none: for less than a tenth, the shared matrices stay,
 * and so nothing goes up twice. */
static void batches_short_of_memory(void **state)
{
    const int64_t budget = own->budget;
    const int64_t one = 8 * (ROWS * DEPTH + DEPTH * COLS + ROWS * COLS);
    (void)state;
    for (int i = 0; i < 12; i += is_short() ? 3 : 1) {
        const int distinct = i % 2 ? 3 : BATCH, times = i / 4 == 0 ? 6 : i / 4 == 1 ? 3 : 1;
        void **array[3];
        struct product p;
        gpu_trim(device);
        make_batch(&p, array, i % 2 ? 20 : 1, distinct, i % 4 > 0);
        own->budget = one * times + (one / 4);
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        right_batch(&p);
        if (times == 6)
            assert_int_equal(p.host.up_bytes, 8 * (ROWS * DEPTH * distinct + DEPTH * COLS * BATCH +
                                                   ROWS * COLS * BATCH));
        destroy_batch(&p, array);
    }
    own->budget = budget;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_kernels_overlap),
        cmocka_unit_test(the_first_chunk_goes_up_in_parts),
        cmocka_unit_test(results_do_not_wait_for_later_kernels),
        cmocka_unit_test(kernels_run_beside_each_other),
        cmocka_unit_test(batches_overlap),
        cmocka_unit_test(batches_short_of_memory),
    };
    (void)argc;
    trace = traced_gpu(argv);
    const int failed = cmocka_run_group_tests(tests, start, stop_device);
    unlink(trace);
    return failed;
}
