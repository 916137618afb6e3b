/*
 * A device in use: its properties, its failures, and its functions, by which gpu.h's functions
 * reach any kind of device. Each kind has a structure of its own that begins with this one. Names
 * no CUDA.
 */
#ifndef ACCEL_DEVICE_H
#define ACCEL_DEVICE_H

#include "gpu/pack/digest.h"
#include "gpu.h"

struct gpu_memory;
struct gpu_copies;
struct gpu_kernels;
struct gpu_own_kernels;
struct solver_library;

/*
 * A kind of device: one structure of functions, which a second kind fills in beside gpu/cuda/. It
 * needs nothing else of operations, executors and the cache, which reach devices by this alone.
 *
 * Each function does what gpu.h says of its namesake. has_cached(): whether a block of memory is
 * cached under a key for a user. peer_gbps may be NULL: such devices do not read each other's
 * memory; load, too: nobody tells. All functions are thread-safe; those of the five structures
 * below are for the thread whose call has the stream context.
 */
struct gpu_device_functions {
    enum gpu_status (*run)(struct gpu_device *device, const struct accel_call *call,
                           struct gpu_host *host);
    void (*locate)(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch);
    bool (*fetch)(struct gpu_device *device, void *host, const struct accel_span *x);
    bool (*store)(struct gpu_device *device, const struct accel_span *x, const void *host);
    bool (*measure_copies)(struct gpu_device *device, struct gpu_copy_rates *rates);
    bool (*measure_paces)(struct gpu_device *device, const struct accel_call *product,
                          double limit_ms, struct block_paces *paces);
    double (*peer_gbps)(struct gpu_device *reader, struct gpu_device *owner); /* of one kind */
    bool (*has_cached)(struct gpu_device *device, const struct gpu_key *key, uint64_t user);
    void (*count_memory)(struct gpu_device *device, const uint64_t *user, int64_t *held,
                         int64_t *cached); /* NULL: it has none */
    int (*list_cached)(struct gpu_device *device, uint64_t user, uint64_t *word,
                       int most); /* NULL: it has none */
    void (*trim)(struct gpu_device *device);
    void (*unpin)(struct gpu_device *device, struct packer *packer);
    void (*stop)(struct gpu_device *device); /* frees the structure, too */
    /* What calls are composed of. */
    const struct gpu_memory *memory;     /* work.h */
    const struct gpu_copies *copies;     /* copies.h */
    const struct gpu_kernels *kernels;   /* kernels.h: BLAS */
    const struct gpu_own_kernels *own;   /* own.h */
    const struct solver_library *solver; /* gpu/exec/lapack/solver.h */
    /* How busy it is, as far as its owner tells. */
    struct gpu_load (*load)(struct gpu_device *device, const struct accel_call *call);
};

/* The first failure of the device, and the first of a library: later ones follow from it. Each is
 * written once, under failure.c's lock. The library's is the reason that is given until the device
 * fails. */
struct gpu_failures {
    char of_device[GPU_FAILURE_BYTES], of_library[GPU_FAILURE_BYTES];
};

struct gpu_device {
    const struct gpu_device_functions *functions;
    struct gpu_info info; /* constant */
    struct gpu_failures failures;
    /* enum gpu_svd: the algorithm for a matrix, by type, with vectors or without, and octave. */
    _Atomic unsigned char svd[ACCEL_DTYPES][2][GPU_SVD_OCTAVES];
    _Atomic int64_t own_solves[ACCEL_DTYPES]; /* least_nrhs of gpu_solve_by_own() */
    _Atomic int64_t chunk;                    /* bytes of gpu_set_chunk(); 0: the usual ones */
};

#endif
