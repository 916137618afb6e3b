/* The input or the output of a transform in device memory. */
#ifndef TESTGPU_CUFFT_SIDE_H
#define TESTGPU_CUFFT_SIDE_H

#include "testgpu.h"

enum { DIMENSIONS = 3 };

/* Of a batch of arrays, the batch first; steps are in elements. */
struct side {
    CUdeviceptr address;
    int64_t count[1 + DIMENSIONS], step[1 + DIMENSIONS];
    size_t element; /* bytes */
};

/* From its first byte to its last one, gaps too; of its elements alone. */
size_t side_extent(const struct side *side);
double side_bytes(const struct side *side);
/* Says that an operation reads or writes its elements. */
void touch_side(struct testgpu_run *run, const struct side *side, bool writes);
bool sides_overlap(const struct side *one, const struct side *other);
/* Whether an array of the one side lies in memory as that of the other one, row on row. Elements
 * of half the size make rows twice as long. */
bool rows_agree(const struct side *one, const struct side *other);

#endif
