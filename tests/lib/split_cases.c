#include "split_cases.h"

#include <string.h>

#include "ops/op.h"
#include "ops/typical.h"

const struct split_machine split_machines[] = {
    {"two RTX", 2, {1300}, 25},
    {"two unequal", 2, {4000, 1300}, 25},
    {"two, one of a tenth", 2, {10000, 1000}, 50},
    {"three unequal", 3, {5000, 3000, 1000}, 25},
    {"four L40S", 4, {1400}, 25},
    {"four A100", 4, {14000}, 50},
    {"five unequal", 5, {8000, 8000, 4000, 2000, 1000}, 50},
    {"eight", 8, {7000}, 50},
    {"eight unequal", 8, {7000, 6000, 5000, 4000, 3000, 2000, 1000, 500}, 50},
    {"four H100", 4, {50000}, 50},
    {"eight H100", 8, {50000}, 50}};
const int split_machine_count = (int)(sizeof split_machines / sizeof *split_machines);

struct split_device split_device_of(double gflops, double gbps)
{
    struct split_device device = {schedule_nominal, INT64_C(80) << 30, 0};
    device.rates.compute = gflops;
    device.rates.up = device.rates.down = gbps;
    device.rates.call_ms = device.rates.chunk_share = device.rates.launch_ms = device.rates.row_ms =
        device.rates.solve = 0; /* each device has a calling thread */
    device.rates.short_up = (struct short_columns){0};
    return device;
}

int split_devices_of(const struct split_machine *machine, struct split_device device[SPLIT_MOST])
{
    double gflops = 0;
    for (int i = 0; i < machine->count; i++) {
        gflops = machine->gflops[i] > 0 ? machine->gflops[i] : gflops;
        device[i] = split_device_of(gflops, machine->gbps);
    }
    return machine->count;
}

bool split_call_of(struct accel_call *call, const char *name, int64_t m, int64_t n, int64_t k)
{
    const int64_t size[ACCEL_DIMENSIONS] = {m, n, k, 0};
    const struct accel_routine *routine = NULL;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(accel_routines[i].name, name) == 0)
            routine = &accel_routines[i];
    if (!routine)
        return false;
    shape_typical(call, routine, size);
    call->blas.scalar[ACCEL_beta].re = 0;
    if (accel_is_batch(routine))
        call->batch = 400;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].access)
            call->span[i].ptr = (void *)(uintptr_t)(0x1000000000 * (i + 1));
    return true;
}
