/* Rates of devices that nobody has: what they do in a second, and what each copy, kernel and wait
 * takes besides. Nothing else takes time. */
#ifndef RATES_H
#define RATES_H

#include "gpu/plan/schedule.h"

#define RATES(up_gbps, down_gbps, gflops, half_size, of_copy, of_kernel, of_wait)                  \
    {                                                                                              \
        .up = (up_gbps), .down = (down_gbps), .compute = (gflops), .half = (half_size),            \
        .copy_ms = (of_copy), .kernel_ms = (of_kernel), .wait_ms = (of_wait)                       \
    }
/* The same with what each column of a panel that is factored takes, and with a way to other
 * devices. */
#define RATES_WITH(columns_ms, peer_gbps, up_gbps, down_gbps, gflops, half_size, of_copy,          \
                   of_kernel, of_wait)                                                             \
    {                                                                                              \
        .up = (up_gbps), .down = (down_gbps), .compute = (gflops), .half = (half_size),            \
        .copy_ms = (of_copy), .kernel_ms = (of_kernel), .wait_ms = (of_wait),                      \
        .column_ms = (columns_ms), .peer = (peer_gbps)                                             \
    }

#endif
