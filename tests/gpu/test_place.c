/*
 * Whether the program itself uses CUDA, and where its operands are (gpu/cuda/place.c): drivers that
 * lack functions, a process that ends, the child of a fork, and the places of a batch's matrices
 * taken together. This program has loaded the driver itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/cuda/device.h"
#include "gpu/device/exit_guard.h"
#include "tests/lib/devices.h"

/* libaccel calls no such function: this one is linked. Its prototype is that of CUDA's driver
 * API. */
CUresult cuInit(unsigned flags);

static struct gpu_device *device;
static __typeof__(cuda_api) real;

/* ---- What the machine has: the linker sends calls here ---- */

static const char *node;    /* the one device file that there is; NULL: none */
static const char *lacking; /* the function that the driver does not have; NULL: none */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    if (strncmp(path, "/dev/", 5) != 0)
        return __real_access(path, mode);
    return node && strcmp(path, node) == 0 ? 0 : -1;
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    return lacking && strcmp(name, lacking) == 0 ? NULL : __real_dlsym(library, name);
}

static void a_device_file_tells_of_a_device(void **state)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0",    "/dev/dxg",
                                        "/dev/nvgpu",     "/dev/nvhost-gpu", "/dev/nvmap"};
    const struct gpu_config config = {0}, configured = {.cuda_dir = "/none"};
    (void)state;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        node = nodes[i];
        gpu_look_for_devices();
        assert_true(gpu_may_exist(&config, false));
    }
    node = "/dev/null";
    gpu_look_for_devices();
    assert_false(gpu_may_exist(&config, false));
    assert_true(gpu_may_exist(&configured, false));
    assert_true(gpu_may_exist(&config, true)); /* the driver is loaded */
}

/* ---- The program's own driver, before a device of ours is started ---- */

static bool in_child(bool (*test)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(test() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

/* As a program that calls CUDA with such a driver would find itself: without it. */
static void a_driver_that_lacks_a_function_is_none(void **state)
{
    static const char *const functions[] = {"cuCtxGetCurrent", "cuDevicePrimaryCtxGetState",
                                            "cuPointerGetAttributes"};
    char here;
    struct accel_span x = {.ptr = &here, .place = ACCEL_REMOTE};
    unsigned long long loads = 0;
    (void)state;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    for (size_t i = 0; i < 3; i++) {
        lacking = functions[i];
        assert_false(gpu_program_has_initialised(++loads));
        assert_false(gpu_program_uses_cuda(loads));
        gpu_program_locate(&x, 1, 1);
        assert_int_equal(x.place, ACCEL_REMOTE); /* as it was */
    }
    lacking = NULL;
    assert_false(gpu_program_has_initialised(loads)); /* nothing has been loaded since */
    assert_true(gpu_program_has_initialised(++loads));
    assert_false(gpu_program_uses_cuda(loads)); /* it has no context */
    gpu_program_locate(&x, 1, 1);
    assert_int_equal(x.place, ACCEL_HOST);
}

static bool look_at_the_end(void)
{
    char here;
    struct accel_span x = {.ptr = &here, .place = ACCEL_REMOTE};
    gpu_program_locate(&x, 1, 1);
    return exit_guard_has_begun() && !gpu_program_has_initialised(9) && !gpu_program_uses_cuda(9) &&
           x.place == ACCEL_REMOTE;
}

static void end_by_what_is_seen(void)
{
    _exit(look_at_the_end() ? 0 : 1);
}

static bool end_process(void)
{
    atexit(end_by_what_is_seen); /* behind what exit_guard_watch() registers */
    exit_guard_watch();
    exit(2);
}

/* Nobody calls the driver while it is taken down. */
static void a_process_that_ends_asks_nothing(void **state)
{
    (void)state;
    assert_true(in_child(end_process));
}

/* ---- Places ---- */

static int start(void **state)
{
    (void)state;
    device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    real = cuda_api;
    return device ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    cuda_api = real;
    gpu_stop(device);
    return 0;
}

/* Memory of each kind, by its address, as the driver says. */
enum { UNKNOWN = 1, OURS, POOLED, MANAGED, MANAGED_ON_HOST, OTHER_CONTEXT, OTHER_DEVICE, PINNED };

static CUresult say_place(unsigned count, CUpointer_attribute *which, void **values,
                          CUdeviceptr address)
{
    const int kind = (int)(address >> 32);
    for (unsigned i = 0; i < count; i++)
        switch ((int)which[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(CUmemorytype *)values[i] = kind == UNKNOWN ? (CUmemorytype)0
                                         : kind == PINNED || kind == MANAGED_ON_HOST
                                             ? CU_MEMORYTYPE_HOST
                                             : CU_MEMORYTYPE_DEVICE;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned *)values[i] = kind == MANAGED || kind == MANAGED_ON_HOST;
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)values[i] = kind == OTHER_CONTEXT ? (CUcontext)&real
                                      : kind == POOLED      ? NULL
                                      : kind == UNKNOWN     ? NULL
                                                            : cuda_device_of(device)->context;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = kind == OTHER_DEVICE ? 1 : 0;
            break;
        default:
            break;
        }
    return CUDA_SUCCESS;
}

static void *at(int kind)
{
    return (void *)((uintptr_t)kind << 32);
}

static enum accel_place place_of(int kind)
{
    struct accel_span x = {.ptr = at(kind), .rows = 1, .cols = 1, .ld = 1, .dtype = ACCEL_FLOAT64};
    gpu_locate(device, &x, 1, 1);
    return x.place;
}

static enum accel_place place_of_both(int one, int other)
{
    void *array[] = {at(one), at(other)};
    struct accel_span x = {
        .ptr = array[0], .rows = 1, .cols = 1, .ld = 1, .array = array, .dtype = ACCEL_FLOAT64};
    gpu_locate(device, &x, 1, 2);
    return x.place;
}

static void each_kind_of_memory_has_its_place(void **state)
{
    (void)state;
    CUDA(cuPointerGetAttributes) = say_place;
    assert_int_equal(place_of(UNKNOWN), ACCEL_HOST);
    assert_int_equal(place_of(OURS), ACCEL_DEVICE);
    assert_int_equal(place_of(POOLED), ACCEL_DEVICE);
    assert_int_equal(place_of(MANAGED), ACCEL_MANAGED);
    assert_int_equal(place_of(MANAGED_ON_HOST), ACCEL_MANAGED);
    assert_int_equal(place_of(OTHER_CONTEXT), ACCEL_REMOTE);
    assert_int_equal(place_of(OTHER_DEVICE), ACCEL_REMOTE);
    assert_false(gpu_program_pins());
    assert_int_equal(place_of(PINNED), ACCEL_HOST);
    assert_true(gpu_program_pins());
}

/* The host or the device, if it can use both; in no order. */
static void a_batch_is_where_all_of_it_can_be_used(void **state)
{
    static const struct {
        int one, other;
        enum accel_place together;
    } cases[] = {{UNKNOWN, UNKNOWN, ACCEL_HOST},       {UNKNOWN, MANAGED, ACCEL_HOST},
                 {OURS, OURS, ACCEL_DEVICE},           {OURS, MANAGED, ACCEL_DEVICE},
                 {MANAGED, MANAGED, ACCEL_MANAGED},    {OURS, UNKNOWN, ACCEL_REMOTE},
                 {OTHER_DEVICE, OURS, ACCEL_REMOTE},   {OTHER_DEVICE, UNKNOWN, ACCEL_REMOTE},
                 {OTHER_DEVICE, MANAGED, ACCEL_REMOTE}};
    (void)state;
    CUDA(cuPointerGetAttributes) = say_place;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(place_of_both(cases[i].one, cases[i].other), cases[i].together);
        assert_int_equal(place_of_both(cases[i].other, cases[i].one), cases[i].together);
    }
}

static bool look_without_cuda(void)
{
    char here;
    struct accel_span x = {.ptr = &here, .place = ACCEL_REMOTE};
    gpu_fork_child();
    gpu_locate(device, &x, 1, 1);
    return x.place == ACCEL_REMOTE && !gpu_program_uses_cuda(9);
}

static void a_fork_s_child_has_no_cuda(void **state)
{
    (void)state;
    assert_true(in_child(look_without_cuda));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_file_tells_of_a_device),
        cmocka_unit_test(a_driver_that_lacks_a_function_is_none),
        cmocka_unit_test(a_process_that_ends_asks_nothing),
        cmocka_unit_test_setup_teardown(each_kind_of_memory_has_its_place, start, end),
        cmocka_unit_test_setup_teardown(a_batch_is_where_all_of_it_can_be_used, start, end),
        cmocka_unit_test_setup_teardown(a_fork_s_child_has_no_cuda, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
