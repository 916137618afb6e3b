#include "version.h"

__attribute__((visibility("default"))) const char *accel_version(void)
{
    return ACCEL_VERSION;
}

const char *accel_commit(void)
{
    return ACCEL_COMMIT;
}
