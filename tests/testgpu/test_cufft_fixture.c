/* What the tests of the stand-in for cuFFT work with. */
#include "test_cufft.h"

cufftResult make_rows(cufftHandle plan, long long n, cufftType type, long long batch, size_t *bytes)
{
    return cufftMakePlanMany64(plan, 1, &n, NULL, 0, 0, NULL, 0, 0, type, batch, bytes);
}

cufftResult run_between(struct fft *f, CUdeviceptr in, CUdeviceptr out)
{
    return cufftExecZ2Z(f->plan, (cufftDoubleComplex *)in, (cufftDoubleComplex *)out,
                        CUFFT_FORWARD);
}

cufftResult run_forward(struct fft *f)
{
    return run_between(f, f->in, f->out);
}

int fft_set_up(struct fft *f)
{
    begin();
    OK(cuStreamCreate(&f->stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&f->in, SIDE_BYTES));
    OK(cuMemAlloc(&f->out, SIDE_BYTES));
    OK(cuMemsetD8(f->in, 0, SIDE_BYTES));
    OK(cuMemsetD8(f->out, 0, SIDE_BYTES));
    OK(cuCtxSynchronize());
    FFT_OK(cufftCreate(&f->plan));
    FFT_OK(make_rows(f->plan, POINTS, CUFFT_Z2Z, 1, &f->area_bytes));
    FFT_OK(cufftSetStream(f->plan, f->stream));
    return 0;
}

int fft_tear_down(struct fft *f)
{
    FFT_OK(cufftDestroy(f->plan));
    OK(cuMemFree(f->in));
    OK(cuMemFree(f->out));
    OK(cuStreamDestroy(f->stream));
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}
