/*
 * gpu/ by itself, on the test GPU: results, tiles, places, memory that is kept and given back. With TEST_REAL_GPU set, on
 * whatever GPU is found, in ACCEL_CUDA_DIR first.
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

#include "cpu_ref/judge.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/gpu.h"
#include "gpu/cuda/device.h"
#include "ops/names.h"
#include "ops/op.h"
#include "tests/lib/devices.h"
#include "tests/lib/long.h"
#include "tests/lib/rates.h"

/* libaccel calls no such function: this one is linked. Its prototype is that of CUDA's driver API. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);

static struct gpu_device *device;
static struct cuda_device *own;

static int start(void **state)
{
    *state = device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    own = cuda_device_of(device);
    return device ? 0 : -1;
}

/* A real GPU has all cases: they take no time there. */
static bool is_short(void)
{
    return !test_is_long() && !is_real_gpu();
}

static void device_is_described(void **state)
{
    const struct gpu_info info = *gpu_info(device);
    (void)state;
    if (is_real_gpu()) {
        assert_true(info.name[0] && info.memory_bytes > 0);
        assert_true(info.nominal.gflops[0] > 0 && info.nominal.gflops[1] > 0);
        return;
    }
    assert_string_equal(info.name, "Test GPU");
    assert_int_equal(info.index, 0);
    assert_int_equal(info.memory_bytes, 512 << 20); /* half of its 1 GiB, as configured */
    /* Its attributes are those of an H100. */
    assert_true(info.nominal.gflops[0] > 66000 && info.nominal.gflops[0] < 68000);
    assert_true(info.nominal.gflops[1] == info.nominal.gflops[0]);
    assert_true(info.nominal.memory_gbps > 3300 && info.nominal.memory_gbps < 3400);
}

/* ---- Products ---- */

struct product {
    struct accel_call call;
    void *before;
    struct gpu_host host;
    int original_calls, allocated, in_place;
};

static bool on_original(void *context, const struct accel_call *part)
{
    struct product *p = context;
    (void)part;
    p->original_calls++;
    return true;
}

static void on_event(void *context, const struct gpu_event *event)
{
    struct product *p = context;
    p->allocated += event->kind == GPU_EVENT_ALLOCATE;
    p->in_place += event->kind == GPU_EVENT_IN_PLACE;
}

static const struct accel_routine *routine(enum accel_dtype dtype)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i]) == &op_gemm && accel_routines[i].dtype == dtype)
            return &accel_routines[i];
    return NULL;
}

static void *random_matrix(int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    size_t count = (size_t)(rows * cols) * (accel_is_complex(dtype) ? 2 : 1);
    void *x = malloc((size_t)(rows * cols) * accel_dtype_size(dtype) + 16);
    for (size_t i = 0; i < count; i++) {
        double value = 2.0 * rand() / RAND_MAX - 1;
        if (accel_is_double(dtype))
            ((double *)x)[i] = value;
        else
            ((float *)x)[i] = (float)value;
    }
    return x;
}

static void make(struct product *p, enum accel_dtype dtype, char ta, char tb, int64_t m, int64_t n,
                 int64_t k, double beta)
{
    memset(p, 0, sizeof *p);
    struct accel_call *call = &p->call;
    call->routine = routine(dtype);
    call->batch = call->parts = 1;
    call->blas.flag[ACCEL_transa] = ta;
    call->blas.flag[ACCEL_transb] = tb;
    call->blas.size[ACCEL_m] = m;
    call->blas.size[ACCEL_n] = n;
    call->blas.size[ACCEL_k] = k;
    call->blas.scalar[ACCEL_alpha] = (struct accel_complex){-1.25, 0};
    call->blas.scalar[ACCEL_beta] = (struct accel_complex){beta, 0};
    int64_t ar = ta == 'N' ? m : k, ac = ta == 'N' ? k : m, br = tb == 'N' ? k : n,
            bc = tb == 'N' ? n : k;
    call->span[ACCEL_a] = (struct accel_span){.name = "a",
                                              .ptr = random_matrix(ar, ac, dtype),
                                              .rows = ar,
                                              .cols = ac,
                                              .ld = ar,
                                              .dtype = dtype,
                                              .access = ACCEL_READ};
    call->span[ACCEL_b] = (struct accel_span){.name = "b",
                                              .ptr = random_matrix(br, bc, dtype),
                                              .rows = br,
                                              .cols = bc,
                                              .ld = br,
                                              .dtype = dtype,
                                              .access = ACCEL_READ};
    call->span[ACCEL_c] = (struct accel_span){.name = "c",
                                              .ptr = random_matrix(m, n, dtype),
                                              .rows = m,
                                              .cols = n,
                                              .ld = m,
                                              .dtype = dtype,
                                              .access = ACCEL_READWRITE};
    size_t bytes = (size_t)accel_bytes(&call->span[ACCEL_c]);
    p->before = malloc(bytes + 1);
    memcpy(p->before, call->span[ACCEL_c].ptr, bytes);
    p->host = (struct gpu_host){.original = on_original, .event = on_event, .context = p};
}

static void destroy(struct product *p)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(p->call.span[i].ptr);
    free(p->before);
}

static void right(const struct product *p)
{
    assert_true(cpu_ref_ratio(&p->call, ACCEL_COLUMN_MAJOR, p->before) <= CPU_REF_THRESHOLD);
    assert_int_equal(p->original_calls, 0);
}

static void all_types_and_flags(void **state)
{
    static const char flags[] = "NTC";
    (void)state;
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        for (int i = 0; i < 18; i++) {
            struct product p;
            make(&p, (enum accel_dtype)dtype, flags[i % 3], flags[i / 3 % 3], 33, 17, 29, i / 9);
            assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
            right(&p);
            destroy(&p);
        }
}

static void bytes_are_counted(void **state)
{
    struct product p;
    (void)state;
    make(&p, ACCEL_FLOAT64, 'N', 'N', 10, 20, 30, 0);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * (10 * 30 + 30 * 20)); /* beta = 0: C is not read */
    assert_int_equal(p.host.down_bytes, 8 * 10 * 20);
    destroy(&p);
    make(&p, ACCEL_FLOAT64, 'N', 'N', 10, 20, 30, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * (10 * 30 + 30 * 20 + 10 * 20));
    destroy(&p);
}

static void memory_is_kept(void **state)
{
    struct product p;
    (void)state;
    int anew = 1;
    for (int i = 0; i < 20 && anew > 0;
         i++) { /* on a busy machine, a second may pass between two calls */
        make(&p, ACCEL_FLOAT32, 'N', 'T', 200, 210, 220, 0);
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        int before = p.allocated;
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        anew = p.allocated - before;
        right(&p);
        destroy(&p);
    }
    assert_int_equal(anew, 0);
}

/* Columns longer than a staging slot (1 MiB), and many short ones. */
static void long_and_short_columns(void **state)
{
    struct product p;
    (void)state;
    make(&p, ACCEL_FLOAT32, 'N', 'N', 300000, 2, 2, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
    destroy(&p);
    make(&p, ACCEL_COMPLEX128, 'T', 'C', 1, 30000, 3, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
    destroy(&p);
}

/* Operands of some 10 MB with a tenth of that to put them in. */
static void tiles(void **state)
{
    static const char flags[] = "NTC";
    const int64_t budget = own->budget;
    (void)state;
    gpu_trim(device);
    for (int i = 0; i < 9; i++) {
        struct product p;
        if (is_short() && i != 0 && i != 5 && i != 7) /* each flag on each side */
            continue;
        own->budget = 400 << 10;
        make(&p, ACCEL_FLOAT64, flags[i % 3], flags[i / 3], i % 2 ? 700 : 150, i % 2 ? 90 : 260,
             i % 4 ? 240 : 1100, 0.5);
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        right(&p);
        /* More went up than the operands have: they went in parts. */
        assert_true(p.host.up_bytes > 400 << 10);
        destroy(&p);
    }
    own->budget = budget;
}

static void a_stays_while_columns_pass(void **state)
{
    const int64_t budget = own->budget;
    struct product p;
    (void)state;
    gpu_trim(device);
    own->budget = 300 << 10;
    make(&p, ACCEL_FLOAT64, 'N', 'N', 100, 1000, 100, 0); /* A: 80 kB, B and C: 800 kB each */
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
    assert_int_equal(p.host.up_bytes, 8 * (100 * 100 + 100 * 1000)); /* each byte once */
    destroy(&p);
    own->budget = budget;
}

/* ---- Uploads, kernels and downloads at the same time ---- */

/* The test GPU's trace, in which calls are in the order in which they came. */
static const char *trace;

/* What a call has put on the streams. */
struct traced {
    double up, down, before_kernels,
        among_kernels; /* bytes up and down; up before the first kernel, down before the last */
    int kernels, waits;
};

static struct traced read_trace(long from)
{
    struct traced t = {0};
    char line[512];
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, from, SEEK_SET), 0);
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
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long length = ftell(file);
    fclose(file);
    return length;
}

/* The link takes about as long as the kernels. */
static const struct schedule_rates balanced = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);

/* As long as the link takes about as long as the kernels, each by rates that say so: the first kernel comes with the first cells, and
 * results go down between kernels. Each byte moves once. */
static void copies_and_kernels_overlap(void **state)
{
    struct product p;
    (void)state;
    make(&p, ACCEL_FLOAT64, 'N', 'T', 448, 416, 480, 0.5);
    p.host.rates = balanced;
    const long from = is_real_gpu() ? 0 : trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
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
    destroy(&p);
}

/* Returns how many downloads ran before the last kernel did. */
static int downloads_before_last_kernel(long from, int *kernels)
{
    char line[512], ran[64] = "";
    int downloads = 0, before = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, from, SEEK_SET), 0);
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

/* All kernels are put on their stream long before they run. A finished block comes down at once nevertheless, not behind kernels that it does
 * not depend on: there are more of them than events. */
static void results_do_not_wait_for_later_kernels(void **state)
{
    struct product p;
    int kernels;
    (void)state;
    if (is_real_gpu())
        return; /* there is no trace */
    make(&p, ACCEL_FLOAT64, 'N', 'N', 1280, 1280, 16, 0);
    p.host.rates = (struct schedule_rates)RATES(2, 2, 0.5, 1e-3, 1e-5, 1e-5, 1e-5);
    const long from = trace_length();
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
    const int before = downloads_before_last_kernel(from, &kernels);
    printf("%d downloads before the last of %d kernels\n", before, kernels);
    assert_true(kernels > 300);
    assert_true(before > kernels / 2);
    destroy(&p);
}

/* Counts the kernels of a call by their streams, two at most. */
static int kernels_by_stream(long from, int kernels[2])
{
    char line[512], stream[2][32] = {"", ""};
    int streams = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, from, SEEK_SET), 0);
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

/* The last blocks of a kernel do not fill the device: kernels of other cells are there meanwhile, on a stream of their own, if cuBLAS has a workspace for
 * that. */
static void kernels_run_beside_each_other(void **state)
{
    enum { N = 512 };
    struct product p;
    int kernels[2];
    (void)state;
    if (is_real_gpu())
        return; /* there is no trace */
    make(&p, ACCEL_FLOAT64, 'N', 'T', N, N, N, 0);
    p.host.rates = balanced;
    for (int round = 0; round < 8; round++) {
        const bool alone = round % 4 == 3;
        __typeof__(CUDA(cublasSetWorkspace_v2)) set = CUDA(cublasSetWorkspace_v2);
        if (alone)
            CUDA(cublasSetWorkspace_v2) = NULL;
        const long from = trace_length();
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        CUDA(cublasSetWorkspace_v2) = set;
        right(&p);
        assert_int_equal(kernels_by_stream(from, kernels), alone ? 1 : 2);
        assert_true(kernels[0] + kernels[1] > 8);
        assert_true(alone || (kernels[0] >= kernels[1] / 2 && kernels[1] >= kernels[0] / 2));
    }
    destroy(&p);
}

/* ---- Batches ---- */

enum { BATCH = 120, ROWS = 96, COLS = 40, DEPTH = 104 };

/* Products of matrices that a stride leads to, or of pointers to them: those of product number i are number i / repeat % distinct. */
static void make_batch(struct product *p, void **array[3], int repeat, int distinct, bool pointers)
{
    make(p, ACCEL_FLOAT64, 'T', 'N', ROWS, COLS, DEPTH, 0.5);
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(accel_routines[i].name, pointers ? "dgemm_batch" : "dgemm_batch_strided") == 0)
            p->call.routine = &accel_routines[i];
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
    destroy(p);
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

/* Runs it in groups, then in one kernel: the results are the same, bit for bit. Each byte moves once, a matrix of A for all products that
 * use it. */
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

/* Memory for some products, for one, and for none: for less than a tenth, the shared matrices stay, and so nothing goes up twice. */
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

static void too_little_memory(void **state)
{
    const int64_t budget = own->budget;
    struct product p;
    (void)state;
    gpu_trim(device);
    own->budget = 4096;
    make(&p, ACCEL_FLOAT64, 'N', 'N', 100, 100, 100, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_NO_MEMORY);
    assert_memory_equal(p.call.span[ACCEL_c].ptr, p.before, 8 * 100 * 100);
    destroy(&p);
    own->budget = budget;
    make(&p, ACCEL_FLOAT64, 'N', 'N', 100, 100, 100, 1); /* and the next call is fine */
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right(&p);
    destroy(&p);
}

static void alpha_zero_reads_nothing(void **state)
{
    struct product p;
    (void)state;
    make(&p, ACCEL_FLOAT64, 'N', 'N', 40, 30, 20, 2);
    p.call.blas.scalar[ACCEL_alpha].re = 0;
    void *a = p.call.span[ACCEL_a].ptr, *b = p.call.span[ACCEL_b].ptr;
    p.call.span[ACCEL_a].ptr = p.call.span[ACCEL_b].ptr = NULL;
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * 40 * 30);
    p.call.span[ACCEL_a].ptr = a;
    p.call.span[ACCEL_b].ptr = b;
    right(&p);
    destroy(&p);
}

static void places(void **state)
{
    struct gpu_scope scope;
    CUdeviceptr there = 0, managed = 0;
    int host = 0;
    (void)state;
    assert_int_equal(gpu_enter(own, &scope), GPU_OK);
    CUdeviceptr block;
    bool grew;
    assert_int_equal(pool_get(own, 1000, &block, &grew), GPU_OK);
    assert_int_equal(CUDA(cuMemAlloc)(&there, 1000), CUDA_SUCCESS);
    assert_int_equal(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    struct accel_span x[] = {{.ptr = &host},
                             {.ptr = (void *)(uintptr_t)(there + 500)},
                             {.ptr = (void *)(uintptr_t)(managed + 500)},
                             {.ptr = NULL}};
    gpu_locate(device, x, 4, 1);
    assert_int_equal(x[0].place, ACCEL_HOST);
    assert_int_equal(x[1].place, ACCEL_DEVICE);
    assert_int_equal(x[2].place, ACCEL_MANAGED);
    assert_int_equal(x[3].place, ACCEL_HOST);
    /* A batch's matrices: what serves them all. */
    void *const array[] = {&host, x[2].ptr, x[1].ptr, x[2].ptr};
    struct accel_span batch = {.ptr = array[0], .array = array};
    gpu_locate(device, &batch, 1, 2);
    assert_int_equal(batch.place, ACCEL_HOST);
    gpu_locate(device, &batch, 1, 3);
    assert_int_equal(batch.place, ACCEL_REMOTE);
    batch.array = array + 1;
    gpu_locate(device, &batch, 1, 1);
    assert_int_equal(batch.place, ACCEL_MANAGED);
    gpu_locate(device, &batch, 1, 3);
    assert_int_equal(batch.place, ACCEL_DEVICE);
    CUDA(cuMemFree)(there);
    CUDA(cuMemFree)(managed);
    pool_put(own, block);
    gpu_leave(&scope);
}

static void device_memory_for_the_cpu(void **state)
{
    struct gpu_scope scope;
    CUdeviceptr there = 0;
    double out[12], back[6], expected[] = {0, 1, 4, 5, 8, 9};
    (void)state;
    for (int i = 0; i < 12; i++)
        out[i] = i;
    assert_int_equal(gpu_enter(own, &scope), GPU_OK);
    assert_int_equal(CUDA(cuMemAlloc)(&there, sizeof out), CUDA_SUCCESS);
    assert_int_equal(CUDA(cuMemcpyHtoD)(there, out, sizeof out), CUDA_SUCCESS);
    const struct accel_span x = {.name = "a",
                                 .ptr = (void *)(uintptr_t)there,
                                 .rows = 2,
                                 .cols = 3,
                                 .ld = 4,
                                 .dtype = ACCEL_FLOAT64,
                                 .access = ACCEL_READ,
                                 .place = ACCEL_DEVICE};
    assert_true(gpu_fetch(device, back, &x));
    assert_memory_equal(back, expected, sizeof expected);
    for (int i = 0; i < 6; i++)
        back[i] = -1;
    assert_true(gpu_store(device, &x, back));
    assert_int_equal(CUDA(cuMemcpyDtoH)(out, there, sizeof out), CUDA_SUCCESS);
    for (int i = 0; i < 12; i++)
        assert_true(out[i] == (i % 4 < 2 ? -1 : i)); /* what lies between the columns stays */
    CUDA(cuMemFree)(there);
    gpu_leave(&scope);
}

/* The test GPU reads its settings when it is loaded, which is before main(). */
static void start_with_trace(char **argv)
{
    char path[] = "/tmp/test_gpu.trace.XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || close(file) != 0 || setenv("TESTGPU_TRACE", path, 1) != 0)
        exit(1);
    execv("/proc/self/exe", argv);
    exit(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_described),
        cmocka_unit_test(all_types_and_flags),
        cmocka_unit_test(bytes_are_counted),
        cmocka_unit_test(memory_is_kept),
        cmocka_unit_test(long_and_short_columns),
        cmocka_unit_test(tiles),
        cmocka_unit_test(a_stays_while_columns_pass),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(alpha_zero_reads_nothing),
        cmocka_unit_test(places),
        cmocka_unit_test(device_memory_for_the_cpu),
        cmocka_unit_test(copies_and_kernels_overlap),
        cmocka_unit_test(results_do_not_wait_for_later_kernels),
        cmocka_unit_test(kernels_run_beside_each_other),
        cmocka_unit_test(batches_overlap),
        cmocka_unit_test(batches_short_of_memory),
    };
    (void)argc;
    trace = getenv("TESTGPU_TRACE");
    if (!trace)
        start_with_trace(argv);
    const int failed = cmocka_run_group_tests(tests, start, stop_device);
    unlink(trace);
    return failed;
}
