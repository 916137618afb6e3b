/*
 * Devices of the test GPU, for unit tests of gpu/.
 */
#ifndef ACCEL_TEST_DEVICES_H
#define ACCEL_TEST_DEVICES_H

#include "gpu/gpu.h"

/* Returns the folder of its libraries, in static memory. */
const char *test_gpu(void);

/* Returns a device of the libraries in this folder; prints the reason and returns NULL if there is none. */
struct gpu_device *start_device(const char *cuda_dir, struct gpu_config config);

/* Teardown of a group of tests: stops the device that *state is. */
int stop_device(void **state);

#endif
