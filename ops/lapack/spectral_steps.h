/*
 * The steps of spectral divide and conquer (spectral.h): inner calls, the polar factor, orthonormal
 * bases. After a failure, all functions do nothing.
 */
#ifndef ACCEL_LAPACK_SPECTRAL_STEPS_H
#define ACCEL_LAPACK_SPECTRAL_STEPS_H

#include "ops/decompose.h"
#include "packed.h"

struct spectral {
    struct decomposition *c;
    enum gpu_status status; /* the first failure */
    enum accel_dtype dtype;
    int64_t size, order; /* of an element; of the caller's matrix */
    bool vectors;
    double unit;     /* the type's unit roundoff */
    double norm;     /* of the caller's matrix, Frobenius */
    double effort;   /* of the divisions so far, as cubes of their orders */
    uint64_t random; /* the same for each call: its result is repeatable */
};

static inline bool spectral_is_well(const struct spectral *s)
{
    return s->status == GPU_OK;
}

static inline void spectral_note(struct spectral *s, enum gpu_status status)
{
    if (spectral_is_well(s))
        s->status = status;
}

/* Returns whether there is data, and all is well. */
static inline bool spectral_computes(const struct spectral *s)
{
    return spectral_is_well(s) && !s->c->estimates;
}

/* Notes that the decomposition itself reads or writes so many matrices of this order. */
static inline void spectral_note_passes(struct spectral *s, double passes, int64_t order)
{
    s->c->host_bytes += passes * (double)order * (double)order * (double)s->size;
}

/* Begins a call: nothing transposed, lower triangles, beta = 0. `real`, `hermitian`: the routine's
 * name in real and complex types. */
struct accel_call spectral_begin(const struct spectral *s, const char *real, const char *hermitian,
                                 int64_t m, int64_t n, int64_t k);
void spectral_put(struct accel_call *call, enum accel_matrix which, struct matrix x);
/* Runs it; its flags may have changed since spectral_begin(). Notes no failure. */
enum gpu_status spectral_try(struct spectral *s, struct accel_call *call);

/* c := op(a) b, a's adjoint if `across`. */
void spectral_multiply(struct spectral *s, bool across, struct matrix a, struct matrix b,
                       struct matrix c);

/* c := alpha a b + beta c with a Hermitian matrix a. */
void spectral_multiply_hermitian(struct spectral *s, double alpha, struct matrix a, char uplo,
                                 struct matrix b, double beta, struct matrix c);

/* Three matrices of one order. x: Hermitian, all of it. */
struct spectral_iteration {
    struct matrix x, y, t;
};

/* x := its polar factor: eigenvalues -1 and 1. Exchanges x and y. Returns whether that is
 * reached. */
bool spectral_polar(struct spectral *s, struct spectral_iteration *it);

/* v := an orthonormal basis of the eigenspace of u to the eigenvalue `sign`; v must have as many
 * columns as that has dimensions. room: as large as v. */
void spectral_basis(struct spectral *s, struct matrix u, double sign, struct matrix v, char *room);

#endif
