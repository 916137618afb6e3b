/* How long it takes until libcusolver is there, and its end. */
#include "solver.h"

struct testgpu_life solver_life = {.name = "libcusolver"};

__attribute__((constructor)) static void load(void)
{
    testgpu_load(&solver_life);
}
