/* Versions and names. */
#include "cublas.h"

enum { PATCH = 0 };

static int minor(void)
{
    return testgpu_cublas_minor(TESTGPU_CUBLAS_MAJOR >= 13 ? 1 : 9);
}

int testgpu_cublas_version(void)
{
    return TESTGPU_CUBLAS_MAJOR * 10000 + minor() * 100 + PATCH;
}

/* The real one accepts no handle here too. */
cublasStatus_t CUBLASWINAPI cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    CUBLAS_ENTER(TESTGPU_ANYTIME, "handle=%p", (void *)handle);
    if (version == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    *version = testgpu_cublas_version();
    TESTGPU_RETURN(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t CUBLASWINAPI cublasGetProperty(libraryPropertyType type, int *value)
{
    CUBLAS_ENTER(TESTGPU_ANYTIME, "type=%d", (int)type);
    if (value == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    switch (type) {
    case MAJOR_VERSION:
        *value = TESTGPU_CUBLAS_MAJOR;
        break;
    case MINOR_VERSION:
        *value = minor();
        break;
    case PATCH_LEVEL:
        *value = PATCH;
        break;
    default:
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    }
    TESTGPU_RETURN(CUBLAS_STATUS_SUCCESS);
}

#if TESTGPU_CUBLAS_MAJOR >= 13
static const struct {
    cublasStatus_t status;
    const char *name;
    const char *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires a feature absent from the device architecture"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the GPU program failed to execute"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the requested functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
     "the functionality requested requires some license"},
};

static void count_call(struct testgpu_function *function, cublasStatus_t status)
{
    struct testgpu_call call = {.function = function};
    testgpu_enter(&call, TESTGPU_ANYTIME | TESTGPU_TEXT, "status=%d", (int)status);
    testgpu_leave(&call, 0);
}

const char *CUBLASWINAPI cublasGetStatusName(cublasStatus_t status)
{
    static struct testgpu_function function = {.name = __func__, .library = &cublas_library};
    count_call(&function, status);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "unknown status";
}

const char *CUBLASWINAPI cublasGetStatusString(cublasStatus_t status)
{
    static struct testgpu_function function = {.name = __func__, .library = &cublas_library};
    count_call(&function, status);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "unknown status";
}
#endif
