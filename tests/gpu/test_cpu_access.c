/*
 * The CPU's access to operands in device memory, and what is said where the driver refuses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tests/lib/refusing_driver.h"

enum { ROWS = 5, COLS = 4, LD = 7 };

static CUresult another_captures(CUstream stream, CUstreamCaptureStatus *capture)
{
    (void)stream;
    (void)capture;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}
static CUresult no_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_context(CUcontext context)
{
    (void)context;
    return CUDA_ERROR_UNKNOWN;
}
static int pushes_left;
static CUresult push_some(CUcontext context)
{
    return pushes_left-- > 0 ? real.cuCtxPushCurrent_p(context) : CUDA_ERROR_UNKNOWN;
}
static CUresult no_attributes(unsigned count, CUpointer_attribute *which, void **values,
                              CUdeviceptr address)
{
    (void)count;
    (void)which;
    (void)values;
    (void)address;
    return CUDA_ERROR_UNKNOWN;
}
/* As of memory of a pool. */
static CUresult no_owner(unsigned count, CUpointer_attribute *which, void **values,
                         CUdeviceptr address)
{
    const CUresult result = real.cuPointerGetAttributes_p(count, which, values, address);
    for (unsigned i = 0; i < count; i++)
        if (which[i] == CU_POINTER_ATTRIBUTE_CONTEXT)
            *(CUcontext *)values[i] = NULL;
    return result;
}
static int downs_left;
static CUresult some_columns(void *to, CUdeviceptr from, size_t bytes)
{
    return downs_left-- > 0 ? real.cuMemcpyDtoH_p(to, from, bytes) : CUDA_ERROR_UNKNOWN;
}

static struct accel_span span_of(CUdeviceptr memory)
{
    return (struct accel_span){.ptr = (void *)(uintptr_t)memory,
                               .rows = ROWS,
                               .cols = COLS,
                               .ld = LD,
                               .dtype = ACCEL_FLOAT64,
                               .place = ACCEL_DEVICE};
}

static void assert_fetches(const struct accel_span *x, const double *expected)
{
    double packed[ROWS * COLS] = {0};
    assert_true(gpu_fetch(&device->common, packed, x));
    assert_memory_equal(packed, expected, sizeof packed);
}

/* Stores a matrix, then its strict triangle, and reads them. */
static void store_and_fetch(CUdeviceptr memory)
{
    struct accel_span x = span_of(memory);
    double first[ROWS * COLS], second[ROWS * COLS], both[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        first[i] = i + 1;
        second[i] = -i - 1;
        both[i] = i % ROWS < i / ROWS ? second[i] : first[i];
    }
    assert_true(gpu_store(&device->common, &x, first));
    assert_fetches(&x, first);
    x.triangle = 'u';
    assert_true(gpu_store(&device->common, &x, second));
    assert_fetches(&x, both);
}

static void the_cpu_reaches_device_memory(void **state)
{
    const CUdeviceptr memory = memory_of(sizeof(double) * LD * COLS);
    (void)state;
    store_and_fetch(memory);
    CUDA(cuStreamIsCapturing) = another_captures; /* then on a stream of our own */
    store_and_fetch(memory);
    CUDA(cuStreamIsCapturing) = real.cuStreamIsCapturing_p;
    CUDA(cuPointerGetAttributes) = no_owner;
    store_and_fetch(memory);
}

static void assert_no_fetch(const struct accel_span *x)
{
    double packed[ROWS * COLS];
    struct failure before;
    failure_begin(&before);
    assert_false(gpu_fetch(&device->common, packed, x));
    assert_int_equal(failure_noted()->kind, FAILURE_DEVICE);
    failure_end(&before);
    cuda_api = real;
}

static void a_refused_access_is_told(void **state)
{
    const struct accel_span x = span_of(memory_of(sizeof(double) * LD * COLS));
    (void)state;
    CUDA(cuCtxPushCurrent) = no_context;
    assert_no_fetch(&x);
    CUDA(cuCtxPushCurrent) = push_some;
    pushes_left = 1;
    assert_no_fetch(&x);
    CUDA(cuPointerGetAttributes) = no_attributes;
    assert_no_fetch(&x);
    CUDA(cuMemcpyDtoH) = some_columns;
    downs_left = 2;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuStreamCreate) = no_stream;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuStreamSynchronize) = no_wait;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuMemcpyDtoHAsync) = no_copy_down;
    assert_no_fetch(&x);
}

int main(void)
{
    /* The library, which is not loaded yet, reads it as it comes: the CPU's access is to the
     * program's own memory. */
    setenv("TESTGPU_PAGEABLE", "1", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(the_cpu_reaches_device_memory),
        TEST(a_refused_access_is_told),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
