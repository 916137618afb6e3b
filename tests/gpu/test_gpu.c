/*
 * gpu/ by itself, on the test GPU: results, tiles, places, memory that is kept and given back. With
 * TEST_REAL_GPU set, on whatever GPU is found, in ACCEL_CUDA_DIR first.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/gpu.h"
#include "gpu/cuda/device.h"
#include "tests/lib/devices.h"
#include "tests/lib/products.h"

/* libaccel calls no such functions: these are linked. Their prototypes are those of CUDA's driver
 * API. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *address);

static struct gpu_device *device;
static struct cuda_device *own;

static int start(void **state)
{
    *state = device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    own = cuda_device_of(device);
    return device ? 0 : -1;
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

static void all_types_and_flags(void **state)
{
    static const char flags[] = "NTC";
    (void)state;
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        for (int i = 0; i < 18; i++) {
            struct product p;
            make_product(&p, (enum accel_dtype)dtype, flags[i % 3], flags[i / 3 % 3], 33, 17, 29,
                         i / 9);
            assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
            right_product(&p);
            destroy_product(&p);
        }
}

static void bytes_are_counted(void **state)
{
    struct product p;
    (void)state;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 10, 20, 30, 0);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * (10 * 30 + 30 * 20)); /* beta = 0: C is not read */
    assert_int_equal(p.host.down_bytes, 8 * 10 * 20);
    destroy_product(&p);
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 10, 20, 30, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * (10 * 30 + 30 * 20 + 10 * 20));
    destroy_product(&p);
}

static void memory_is_kept(void **state)
{
    struct product p;
    (void)state;
    int anew = 1;
    for (int i = 0; i < 20 && anew > 0;
         i++) { /* on a busy machine, a second may pass between two calls */
        make_product(&p, ACCEL_FLOAT32, 'N', 'T', 200, 210, 220, 0);
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        int before = p.allocated;
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        anew = p.allocated - before;
        right_product(&p);
        destroy_product(&p);
    }
    assert_int_equal(anew, 0);
}

/* Columns longer than a pinned buffer (1 MiB), and many short ones. */
static void long_and_short_columns(void **state)
{
    struct product p;
    (void)state;
    make_product(&p, ACCEL_FLOAT32, 'N', 'N', 300000, 2, 2, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    destroy_product(&p);
    make_product(&p, ACCEL_COMPLEX128, 'T', 'C', 1, 30000, 3, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    destroy_product(&p);
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
        make_product(&p, ACCEL_FLOAT64, flags[i % 3], flags[i / 3], i % 2 ? 700 : 150,
                     i % 2 ? 90 : 260, i % 4 ? 240 : 1100, 0.5);
        assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
        right_product(&p);
        /* More went up than the operands have: they went in parts. */
        assert_true(p.host.up_bytes > 400 << 10);
        destroy_product(&p);
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
    /* A: 80 kB, B and C: 800 kB each */
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 100, 1000, 100, 0);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    assert_int_equal(p.host.up_bytes, 8 * (100 * 100 + 100 * 1000)); /* each byte once */
    destroy_product(&p);
    own->budget = budget;
}

static void too_little_memory(void **state)
{
    const int64_t budget = own->budget;
    struct product p;
    (void)state;
    gpu_trim(device);
    own->budget = 4096;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 100, 100, 100, 1);
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_NO_MEMORY);
    assert_memory_equal(p.call.span[ACCEL_c].ptr, p.before, 8 * 100 * 100);
    destroy_product(&p);
    own->budget = budget;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 100, 100, 100, 1); /* and the next call is fine */
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    right_product(&p);
    destroy_product(&p);
}

static void alpha_zero_reads_nothing(void **state)
{
    struct product p;
    (void)state;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 40, 30, 20, 2);
    p.call.blas.scalar[ACCEL_alpha].re = 0;
    void *a = p.call.span[ACCEL_a].ptr, *b = p.call.span[ACCEL_b].ptr;
    p.call.span[ACCEL_a].ptr = p.call.span[ACCEL_b].ptr = NULL;
    assert_int_equal(gpu_run(device, &p.call, &p.host), GPU_OK);
    assert_int_equal(p.host.up_bytes, 8 * 40 * 30);
    p.call.span[ACCEL_a].ptr = a;
    p.call.span[ACCEL_b].ptr = b;
    right_product(&p);
    destroy_product(&p);
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

/* ---- Pinned memory ---- */

/* An operand: a matrix, or a batch of them side by side, by a stride or by pointers. */
static const struct pinned {
    const char *name;
    int64_t order, batch;
    bool pointers;
} pinned[] = {{"matrix", 512, 1, false}, {"strided", 128, 16, false}, {"pointers", 128, 16, true}};

/* Returns whether its last page is seen once that is pinned, and not before. */
static bool is_pinned_end_seen(const struct pinned *p)
{
    const size_t page = 4096, one = (size_t)(p->order * p->order) * sizeof(double),
                 bytes = one * (size_t)p->batch;
    struct gpu_scope scope;
    void *array[16];
    char *memory = aligned_alloc(page, bytes + page);
    struct accel_span x = {
        /* a page that is its own ends before the last one that it has a part of */
        .ptr = memory + 16,
        .rows = p->order,
        .cols = p->order,
        .ld = p->order,
        .stride = p->batch > 1 && !p->pointers ? p->order * p->order : 0,
        .array = p->pointers ? array : NULL,
        .dtype = ACCEL_FLOAT64};
    if (!memory)
        return false;
    memset(memory, 0, bytes + page);
    for (int64_t i = 0; i < p->batch; i++)
        array[i] = memory + 16 + (size_t)i * one;
    gpu_locate(device, &x, 1, p->batch);
    bool right = !gpu_program_pins() && gpu_enter(own, &scope) == GPU_OK &&
                 cuMemHostRegister_v2(memory + bytes - page, page, 0) == CUDA_SUCCESS;
    if (right) {
        gpu_locate(device, &x, 1, p->batch);
        right = x.place == ACCEL_HOST && gpu_program_pins() &&
                cuMemHostUnregister(memory + bytes - page) == CUDA_SUCCESS;
        gpu_leave(&scope);
    }
    free(memory);
    return right;
}

/* Who has pinned a part of an operand copies to it without our notice. Each case has a process of
 * its own, as what has been seen is not forgotten. */
static void pinned_operands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        char number[] = {(char)('0' + i), 0}, *arguments[] = {number, number, NULL};
        pid_t child;
        int status;
        assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0)
            fail_msg("%s: the pinned end is not seen", pinned[i].name);
    }
}

static int run_pinned(const struct pinned *p)
{
    void *state = NULL;
    const bool right = start(&state) == 0 && is_pinned_end_seen(p);
    return !(right && stop_device(&state) == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_pinned(&pinned[*argv[1] - '0']);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_described),        cmocka_unit_test(all_types_and_flags),
        cmocka_unit_test(bytes_are_counted),          cmocka_unit_test(memory_is_kept),
        cmocka_unit_test(long_and_short_columns),     cmocka_unit_test(tiles),
        cmocka_unit_test(a_stays_while_columns_pass), cmocka_unit_test(too_little_memory),
        cmocka_unit_test(alpha_zero_reads_nothing),   cmocka_unit_test(places),
        cmocka_unit_test(device_memory_for_the_cpu),  cmocka_unit_test(pinned_operands),
    };
    return cmocka_run_group_tests(tests, start, stop_device);
}
