/*
 * The precisions in which a device can compute a product: the caller's own, and those that the user
 * has to ask for by name.
 */
#ifndef ACCEL_PRECISION_H
#define ACCEL_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "call/operation.h"

enum gpu_precision {
    GPU_NATIVE,
    GPU_EMULATED, /* double precision, by integers of a fixed point */
    GPU_TF32,     /* single precision, inputs with 10 bits behind the point */
    GPU_BF16X9,   /* single precision, by nine products of bfloat16 */
    GPU_PRECISIONS
};

/* Their names in settings and in the log. */
extern const char *const gpu_precision_names[GPU_PRECISIONS];

/* Returns what a device must have for a precision, for people; native: NULL. */
const char *gpu_precision_needs(enum gpu_precision precision);

/* Returns whether products in single, or in double precision can be asked for in this one. */
bool gpu_precision_suits(enum gpu_precision precision, bool in_double);

/* Returns the precision, as accurate as native, in which products in single, or in double precision
 * may be faster: a hint may propose it, if it is so much faster. TF32 is left to those who know
 * that they want it. */
enum gpu_precision gpu_precision_proposed(bool in_double);
#define GPU_PRECISION_WORTH 1.2

/* Returns whether there is a device that computes these products in this precision. */
bool gpu_precision_exists(enum gpu_precision precision, enum gpu_products products);

/* Returns the bytes of workspace with which cuBLAS emulates so many products of these sizes for
 * certain: less, and it computes in native precision without a word. Source: cuBLAS, "Fixed-Point
 * Workspace Requirements", with dynamic control and the default of at most 79 bits. */
int64_t gpu_emulation_bytes(int64_t m, int64_t n, int64_t k, int64_t batch, bool is_complex);

#endif
