/* What the tests of the stand-in for cuSOLVER work with. */
#include <string.h>
#include "test_solver.h"

int solver_set_up(struct solver *s)
{
    memset(s, 0, sizeof *s);
    begin();
    OK(cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    SOLVER_OK(cusolverDnCreate(&s->handle));
    SOLVER_OK(cusolverDnSetStream(s->handle, s->stream));
    SOLVER_OK(cusolverDnCreateParams(&s->params));
    for (int i = 0; i < SLOTS; i++)
        OK(cuMemAlloc(&s->slot[i], ROOM * sizeof(double complex)));
    OK(cuMemAlloc(&s->info, sizeof(int)));
    return 0;
}

int solver_tear_down(struct solver *s)
{
    SOLVER_OK(cusolverDnDestroyParams(s->params));
    SOLVER_OK(cusolverDnDestroy(s->handle));
    OK(cuStreamDestroy(s->stream));
    for (int i = 0; i < SLOTS; i++)
        OK(cuMemFree(s->slot[i]));
    OK(cuMemFree(s->info));
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

int put(struct solver *s, int slot, const double complex *x, size_t count)
{
    static double complex packed[ROOM];
    OK(cuMemcpyHtoD(s->slot[slot], packed, narrow(s->type, x, packed, count)));
    return 0;
}

int get(struct solver *s, int slot, double complex *x, size_t count)
{
    static double complex packed[ROOM];
    OK(cuStreamSynchronize(s->stream));
    OK(cuMemcpyDtoH(packed, s->slot[slot], count * type_bytes(s->type)));
    for (size_t i = 0; i < count; i++)
        x[i] = widen(s->type, packed, i);
    return 0;
}

int get_real(struct solver *s, int slot, double *x, size_t count)
{
    static double packed[2 * ROOM];
    enum type type = s->type == S || s->type == C ? S : D;
    OK(cuStreamSynchronize(s->stream));
    OK(cuMemcpyDtoH(packed, s->slot[slot], count * type_bytes(type)));
    for (size_t i = 0; i < count; i++)
        x[i] = creal(widen(type, packed, i));
    return 0;
}

cudaDataType data_type(enum type type)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
    return types[type];
}

cudaDataType real_data_type(enum type type)
{
    return type == S || type == C ? CUDA_R_32F : CUDA_R_64F;
}

int for_types(int (*test)(struct solver *))
{
    struct solver s;
    CHECK(solver_set_up(&s) == 0);
    for (s.type = S; s.type <= Z; s.type++)
        CHECK(test(&s) == 0);
    return solver_tear_down(&s);
}

char host_work[SMALL_BYTES];

const double definite[SMALL * SMALL] = {4, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4};

cusolverStatus_t factor_at(struct solver *s, CUdeviceptr a, CUdeviceptr work, size_t bytes)
{
    return cusolverDnXpotrf(s->handle, s->params, CUBLAS_FILL_MODE_LOWER, SMALL, CUDA_R_64F,
                            (void *)a, SMALL, CUDA_R_64F, (void *)work, bytes, host_work,
                            SMALL_BYTES, (int *)s->info);
}

cusolverStatus_t factor(struct solver *s)
{
    return factor_at(s, s->slot[0], s->slot[1], SMALL_BYTES);
}
