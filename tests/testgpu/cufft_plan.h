/* Inside the stand-in for libcufft: plans. */
#ifndef TESTGPU_CUFFT_PLAN_H
#define TESTGPU_CUFFT_PLAN_H

#include "cufft_side.h"
#include <cufft.h>

extern const struct testgpu_library cufft_library;
extern struct testgpu_life cufft_life;

#define CUFFT_ENTER(FLAGS, ...) TESTGPU_ENTER(cufft_library, FLAGS, __VA_ARGS__)

/* cuFFT is a version behind the CUDA that it comes with. */
enum { CUFFT_MAJOR = TESTGPU_CUBLAS_MAJOR - 1 };

/* Where the elements of one side lie, as a caller of cuFFT says it; of three dimensions always. */
struct layout {
    int64_t embed[DIMENSIONS], stride, dist;
};

/* Of a plan of fewer dimensions, the first sizes are 1. */
struct description {
    cufftType type;
    int64_t n[DIMENSIONS], batch;
    bool packed; /* and neither side has a layout */
    struct layout in, out;
};

struct plan {
    struct testgpu_object object;
    struct description what;
    bool made;
    bool without_area; /* no work area of its own */
    CUstream stream;
    CUdeviceptr own_area, area;
    size_t area_bytes;
    unsigned users; /* threads inside a call with this plan */
};

/* A call takes the plan for its time; two threads in one plan are a fault. */
cufftResult plan_take(cufftHandle handle, struct plan **plan);
void plan_give(struct plan *plan);

/* cufft_describe.c */
bool is_single_type(cufftType type);
bool is_complex_type(cufftType type);
bool goes_to_real(cufftType type);
/* The sides of an execution: a packed one has longer rows of real elements in place. */
struct side input_of(const struct description *what, bool in_place);
struct side output_of(const struct description *what, bool in_place);
/* What cuFFT can do; `narrow`: by the function whose parameters have 32 bits. */
struct parameters {
    int rank;
    const long long *n, *inembed;
    long long istride, idist;
    const long long *onembed;
    long long ostride, odist;
    cufftType type;
    long long batch;
    bool narrow;
};
cufftResult describe(const struct parameters *parameters, struct description *what);
size_t area_needed(const struct description *what);

#endif
