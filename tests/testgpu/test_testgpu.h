/* The test GPU's own tests. Each scenario is a process of its own: settings, sticky errors and the
 * report at exit belong to a process. */
#ifndef TEST_TESTGPU_H
#define TEST_TESTGPU_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <cuda.h>
#include <cublas_v2.h>

struct scenario {
    const char *name;
    int (*run)(void);           /* 0: as it should be */
    const char *environment[3]; /* NAME=value */
    const char *report[6];      /* lines' parts that the report has; with '!': has not */
};

extern const struct scenario memory_scenarios[];
extern const struct scenario stream_scenarios[];
extern const struct scenario fault_scenarios[];
extern const struct scenario blas_scenarios[];

#define CHECK(CONDITION)                                                                           \
    do {                                                                                           \
        if (!(CONDITION)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION);                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
#define OK(CALL)      CHECK((CALL) == CUDA_SUCCESS)
#define BLAS_OK(CALL) CHECK((CALL) == CUBLAS_STATUS_SUCCESS)

/* Initialises, and makes the first device's primary context current. */
CUcontext begin(void);

/* Holds a stream until it is opened, so that "not yet" needs no clock. */
struct gate {
    sem_t open;
};
CUresult gate_close(struct gate *gate, CUstream stream);
void gate_open(struct gate *gate);

#endif
