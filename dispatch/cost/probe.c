#include "probe.h"

#include <stdlib.h>

#include "base/thread/spent.h"
#include "ops/op.h"
#include "ops/typical.h"

/* A run that takes longer than this is the last. */
#define PROBE_MOST_MS 5.0

/* Returns the best rate of two products of order n, in 10^9 operations a second; 0 if there is
 * none. */
static double time_product(const struct dispatch_library *library, int64_t n)
{
    const struct accel_routine *routine = accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64);
    double best = 0;
    struct accel_call call;
    double *memory = routine ? calloc((size_t)(3 * n * n), sizeof *memory) : NULL;
    if (!memory)
        return 0;
    for (int64_t i = 0; i < 3 * n * n; i++)
        memory[i] = 1 / (double)(i % 61 + 1);
    shape_of_order(&call, routine, n);
    for (int i = 0; i < 3; i++)
        call.span[i].ptr = memory + i * n * n;
    for (int run = 0; run < 3; run++) { /* the first one warms up */
        const struct spent begin = spent_begin();
        if (!library->run(library, &call))
            break;
        const struct spent end = spent_end();
        /* On a busy machine, time that other processes had tells nothing of the library. */
        const double gflops = accel_flops(&call) * 1e-6 / spent_surely(&begin, &end);
        if (run > 0 && gflops > best)
            best = gflops;
        if (end.wall_ms - begin.wall_ms > PROBE_MOST_MS) {
            best = gflops > best ? gflops : best;
            break;
        }
    }
    free(memory);
    return best;
}

/* Returns the order of a product that takes about a millisecond at the nominal rate: many threads
 * reach their rate only at large sizes. */
static int64_t probe_size(int threads)
{
    int64_t n = 224;
    while (n < 640 && (n + 32) * (n + 32) * (n + 32) < (int64_t)12500000 * threads)
        n += 32;
    return n;
}

double probe_gflops(const struct dispatch_library *library, int threads)
{
    const double gflops = time_product(library, 96);
    /* A slow library would take too long */
    return gflops > 4 ? time_product(library, probe_size(threads)) : gflops;
}
