/* How long it takes until libcublas is there, and its end. */
#include "cublas.h"

struct testgpu_life cublas_life = {.name = "libcublas"};

__attribute__((constructor)) static void load(void)
{
    testgpu_load(&cublas_life);
}
