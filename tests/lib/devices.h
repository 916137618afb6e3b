/*
 * Devices for unit tests of gpu/: the test GPU, or with TEST_REAL_GPU set the GPU that is here.
 */
#ifndef ACCEL_TEST_DEVICES_H
#define ACCEL_TEST_DEVICES_H

#include <stdbool.h>

#include "gpu/device/gpu.h"

bool is_real_gpu(void);

/* Whether a test leaves out cases that take long. A real GPU has them all: they take no time
 * there. */
bool is_short(void);

/* Returns the folder of the device's libraries, in static memory; NULL: where the system has
 * them. */
const char *tested_gpu(void);

/* Returns the file to which the test GPU writes its trace; whoever calls removes it. The test GPU
 * reads its settings when it is loaded, which may be before main(): so the first call runs the
 * program anew, with those that are set by then. */
const char *traced_gpu(char **argv);

/* Returns a device of the libraries in this folder; prints the reason and returns NULL if there is
 * none. The idle thread (gpu/cuda/idle.h) does not look after it: tests replace functions of the
 * driver that it would call. */
struct gpu_device *start_device(const char *cuda_dir, struct gpu_config config);

/* Teardown of a group of tests: stops the device that *state is. */
int stop_device(void **state);

#endif
