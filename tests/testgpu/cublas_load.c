/* How long it takes until libcublas is there. */
#include "testgpu.h"

__attribute__((constructor)) static void load(void)
{
    testgpu_load();
}
