/* How long it takes until libcufft is there, and its end; what version it is. */
#include "cufft_plan.h"

struct testgpu_life cufft_life = {.name = "libcufft"};

__attribute__((constructor)) static void load(void)
{
    testgpu_load(&cufft_life);
}

/* Of CUDA 13.0 and 12.9. */
enum { MINOR = TESTGPU_CUBLAS_MAJOR >= 13 ? 0 : 4, PATCH = 0 };

cufftResult CUFFTAPI cufftGetProperty(libraryPropertyType type, int *value)
{
    static const int values[] = {
        [MAJOR_VERSION] = CUFFT_MAJOR, [MINOR_VERSION] = MINOR, [PATCH_LEVEL] = PATCH};
    CUFFT_ENTER(TESTGPU_ANYTIME, "type=%d", (int)type);
    if (value == NULL || (unsigned)type > PATCH_LEVEL)
        TESTGPU_RETURN(CUFFT_INVALID_VALUE);
    *value = values[type];
    TESTGPU_RETURN(CUFFT_SUCCESS);
}

cufftResult CUFFTAPI cufftGetVersion(int *version)
{
    CUFFT_ENTER(TESTGPU_ANYTIME, "-");
    if (version == NULL)
        TESTGPU_RETURN(CUFFT_INVALID_VALUE);
    *version = CUFFT_MAJOR * 1000 + MINOR * 100 + PATCH;
    TESTGPU_RETURN(CUFFT_SUCCESS);
}
