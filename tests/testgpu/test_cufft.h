/* What the tests of the stand-in for cuFFT share. */
#ifndef TEST_CUFFT_H
#define TEST_CUFFT_H

#include <cufft.h>
#include "test_testgpu.h"

#define FFT_OK(CALL) CHECK((CALL) == CUFFT_SUCCESS)

enum { POINTS = 64, SIDE_BYTES = 2 * POINTS * sizeof(cufftDoubleComplex) };

/* A plan of a complex row of POINTS elements in double precision, and room for two of them on each
 * side. */
struct fft {
    CUstream stream;
    cufftHandle plan;
    CUdeviceptr in, out;
    size_t area_bytes;
};

int fft_set_up(struct fft *fft);
int fft_tear_down(struct fft *fft);
/* A plan without layouts, of rows. */
cufftResult make_rows(cufftHandle plan, long long n, cufftType type, long long batch,
                      size_t *bytes);
cufftResult run_forward(struct fft *fft);
cufftResult run_between(struct fft *fft, CUdeviceptr in, CUdeviceptr out);

/* test_cufft_transform.c */
/* A transform, and where its elements lie; no embeds: closely. */
struct transform {
    cufftType type;
    int rank;
    long long n[3];
    long long batch;
    int sign;
    bool in_place;
    long long inembed[3], istride, idist, onembed[3], ostride, odist;
};
bool from_real(const struct transform *transform);
bool to_real(const struct transform *transform);
/* Whether the result is right, and nothing else has changed that should not. */
int check_transform(const struct transform *transform);

#endif
