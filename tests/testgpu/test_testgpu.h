/* The test GPU's own tests. Each scenario is a process of its own: settings, sticky errors and the
 * report at exit belong to a process. */
#ifndef TEST_TESTGPU_H
#define TEST_TESTGPU_H

#include <complex.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <cuda.h>
#include <cublas_v2.h>

/* CMPLX, which glibc's complex.h has not for clang. */
static inline double complex complex_of(double re, double im)
{
    return __builtin_complex(re, im);
}

struct scenario {
    const char *name;
    int (*run)(void);           /* 0: as it should be */
    const char *environment[5]; /* NAME=value */
    const char *report[6];      /* lines' parts that the report has; with '!': has not */
};

/* What the kernels of mistakes.cu take. */
struct kernel_argument {
    CUdeviceptr x;
    int64_t n;
    CUdeviceptr counter;
};

extern const struct scenario memory_scenarios[];
extern const struct scenario peer_scenarios[];
extern const struct scenario mempool_scenarios[];
extern const struct scenario stream_scenarios[];
extern const struct scenario order_scenarios[];
extern const struct scenario fault_scenarios[];
extern const struct scenario blas_scenarios[];
extern const struct scenario level3_scenarios[];
extern const struct scenario level3_rule_scenarios[];
extern const struct scenario level2_scenarios[];
extern const struct scenario level2_rule_scenarios[];
extern const struct scenario batched_scenarios[];
extern const struct scenario batched_rule_scenarios[];
extern const struct scenario gemm_ex_scenarios[];
extern const struct scenario packed_scenarios[];
extern const struct scenario xt_scenarios[];
extern const struct scenario solver_factor_scenarios[];
extern const struct scenario solver_eigen_scenarios[];
extern const struct scenario solver_rule_scenarios[];
extern const struct scenario solver_stream_scenarios[];
extern const struct scenario solver_handle_scenarios[];
extern const struct scenario cufft_result_scenarios[];
extern const struct scenario cufft_rule_scenarios[];
extern const struct scenario cufft_stream_scenarios[];
extern const struct scenario speed_scenarios[];
extern const struct scenario cost_scenarios[];
extern const struct scenario start_scenarios[];
extern const struct scenario no_data_scenarios[];
extern const struct scenario kernel_scenarios[];

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

/* From any moment on. */
double milliseconds(void);

/* What a test of the BLAS needs: a handle that works on a stream, and room for three matrices. */
enum { ROOM = 32 * 32 }; /* elements, of the largest type */

struct fixture {
    CUstream stream;
    cublasHandle_t handle;
    CUdeviceptr a, b, c;
};
int set_up(struct fixture *fixture);
int tear_down(struct fixture *fixture);

/* Values are kept as the largest type has them, and made a type's own for the device. */
enum type { S, D, C, Z };
double noise(void); /* from -0.5 to 0.5, the same in every run */
double complex value(enum type type);
bool is_real(enum type type);
double rounding(enum type type);
size_t type_bytes(enum type type);
size_t narrow(enum type type, const double complex *x, void *out, size_t count); /* bytes */
double complex widen(enum type type, const void *x, size_t at);

/* The numbers from 0 as a number of digits with these bases; false after the last. */
bool count_up(int *digits, const int *bases, size_t length);

#endif
