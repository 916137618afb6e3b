/*
 * Large triangles in host memory go up and come down in strips of columns, so that little of what is beside them does. If there is memory to
 * spare, that is: a strip is packed on the device, because a copy is one run of bytes.
 */
#ifndef ACCEL_STRIPS_H
#define ACCEL_STRIPS_H

#include "solver.h"

/* A triangle has so many, if the square around it has at least so many bytes. */
enum { STRIPS = 16 };
#define STRIPED_BYTES ((int64_t)16 << 20)

/* Returns how a triangle is divided. */
struct gpu_cells strips_cells(const struct lane_rectangle *all);

/* Returns the memory for a strip; 0: the rectangle is not to be copied in strips. */
gpu_address strips_memory(struct solver *s, const struct lane_rectangle *all);

/* Copy a triangle up, with zeros beside it, and down, by that memory. Add to *bytes what has gone. *written: something of it has come to
 * its place. A digest of what comes down is that of these cells; nothing that goes up is digested. */
enum gpu_status strips_upload(struct solver *s, struct array to, const struct lane_rectangle *all,
                              gpu_address memory, int64_t *bytes);
enum gpu_status strips_download(struct solver *s, const struct lane_rectangle *all,
                                struct array from, gpu_address memory, bool *written,
                                int64_t *bytes);

#endif
