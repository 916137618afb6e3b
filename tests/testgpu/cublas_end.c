/*
 * The end of libcublas: a device's kernels do not need the process, but the stand-in's are OpenBLAS's functions, whose
 * own destructor must come after the last of them. The last object to be linked is the first to be ended.
 */
#include "testgpu.h"

__attribute__((destructor)) static void end_kernels(void)
{
    testgpu_end_kernels();
}
