/*
 * Devices: finding one and starting it, and running canonical calls on it. A process may have several, each with its own memory
 * and streams; a failure of one says nothing of the others (device.h). CUDA's are the only kind so far.
 * Thread-safe unless said otherwise. No function leaves a trace in the calling thread's CUDA state:
 * contexts are pushed and popped, the capture mode is exchanged and put back.
 *
 * Of gpu/, the devices: it includes base/ and the vocabulary of calls (headers of ops/). gpu/cuda/ alone names CUDA.
 */
#ifndef ACCEL_GPU_H
#define ACCEL_GPU_H

#include "ops/call.h"
#include "nominal.h"

struct gpu_config {
    const char *cuda_dir; /* look for the CUDA libraries here first; NULL: nowhere special */
    double memory_share;  /* of the device's memory that may be used, where memory_bytes is 0 */
    int64_t memory_bytes;
    /* CUDA's numbers of the devices that may be used, and how many there are; 0: all. The processes of one program on this
     * machine take them in turn: this one is number `local_rank` of `local_size`. */
    const int *devices;
    int device_count;
    int local_rank, local_size;
};

enum { GPU_FAILURE_BYTES = 512 };

struct gpu_info {
    char name[64];
    char id[40];          /* tells this device from others of this machine */
    int index;            /* the device's CUDA ordinal */
    int sharers;          /* processes of this program that use it, at least 1 */
    int64_t memory_bytes; /* what may be used of it by this process */
    struct nominal_rates nominal;
    char passed_over
        [GPU_FAILURE_BYTES]; /* devices that came before it and cannot be used, and why; empty: none */
    int cuda_version, cublas_version; /* of the driver (13000) and of cuBLAS (130100) */
};

enum gpu_status {
    GPU_OK,
    GPU_NO_MEMORY,   /* nothing was written; may go better another time */
    GPU_UNSUPPORTED, /* nothing was written; this cuBLAS cannot do it */
    GPU_ERROR, /* nothing was written; what gpu_host.blame names is to be left alone from now on */
    GPU_FINISHED_ELSE, /* the same where it failed on the way; what had not been done the original has: the result is
                          complete */
    GPU_SHORT_ELSE, /* the same where memory ran short on the way, which may pass */
    GPU_LOST        /* it failed, and what had been overwritten cannot be made right */
};

/* What is of no more use after a failure. */
enum gpu_blame {
    GPU_BLAME_DEVICE, /* its stream or context is broken, or cuBLAS does not start */
    GPU_BLAME_LAPACK, /* cuSOLVER does not start; BLAS goes on */
    GPU_BLAME_ROUTINE /* a function of a library fails at this routine, and the device is well */
};

enum gpu_event_kind {
    GPU_EVENT_H2D,      /* host to device */
    GPU_EVENT_D2H,      /* device to host */
    GPU_EVENT_IN_PLACE, /* used where it is: device or managed memory */
    GPU_EVENT_KEPT,     /* a tile that was on the device already */
    GPU_EVENT_ALLOCATE  /* the memory pool grew */
};

struct gpu_event {
    enum gpu_event_kind kind;
    const char *operand; /* "a", "b", "c"; NULL where it is none */
    int64_t rows, cols, bytes;
};

/* What a running call needs of the layer above, and what it reports. */
struct gpu_host {
    /* Runs a part of the call on the CPU; no kernel may be writing to its operands. Returns false where that
     * fails; what its output then holds is not known. */
    bool (*original)(void *context, const struct accel_call *part);
    /* NULL: not wanted. */
    void (*event)(void *context, const struct gpu_event *event);
    void *context;
    int64_t up_bytes, down_bytes; /* filled */
    bool set_up; /* filled: the call made handles that later ones use, or waited for a library */
    /* Filled on GPU_ERROR, GPU_FINISHED_ELSE, GPU_LOST: the second where it is not the device. */
    enum gpu_blame blame;
    char failure[GPU_FAILURE_BYTES];
};

/* A device in use. */
struct gpu_device;

/* Opens CUDA and takes the primary context of the first device that can be had: one that is prohibited, taken by another
 * process, failing or short of memory is passed over. From here on exit() waits for threads that are inside CUDA (ending.h): a start
 * goes no further then than the step it is at, and all else here fails. Returns NULL where there is no usable GPU, with the
 * reason in `why`: one line. By one thread at a time, whose signals should be blocked, since CUDA starts threads. Where CUDA is
 * opened from, the first start says for all. The device stays until gpu_stop(). */
struct gpu_device *gpu_start(const struct gpu_config *config, char why[GPU_FAILURE_BYTES]);

/* What is known of it; constant while it is there. */
const struct gpu_info *gpu_info(const struct gpu_device *device);

/* Looks for the driver's devices, at the process's start: a sandbox that the program enters before its first call may end it for such a
 * look. Keeps errno. */
void gpu_look_for_devices(void);

/* Whether this machine may have a GPU: false where there is none for certain. Cheap: nothing is loaded, and no file is looked for. has_cuda_library:
 * one is loaded of which gpu_is_cuda_library() is true. Thread-safe; after gpu_look_for_devices(). */
bool gpu_may_exist(const struct gpu_config *config, bool has_cuda_library);

/* Why the device was given up; before that, why a routine was: one line, which stays as long as the device. */
const char *gpu_failure(const struct gpu_device *device);
bool gpu_has_failure(const struct gpu_device *device); /* whether the device has failed */

/* Whether the program itself has loaded CUDA, and has a context that device pointers could belong
 * to. Works before gpu_start(). loads: a number that changes when something is loaded; without that,
 * what was not there is not looked for again. */
bool gpu_program_uses_cuda(unsigned long long loads);

/* Whether the program itself has initialised CUDA, which its forked children then cannot use. Before gpu_start(). */
bool gpu_program_has_initialised(unsigned long long loads);

/* Whether a library is the driver, or one that programs use it through. */
bool gpu_is_cuda_library(const char *path);

/* Fills in where each span is that has a pointer, as the device sees it; of a batch with pointers of its own, see
 * struct accel_span. batch: products of the call. device NULL: none has been started; then through the program's own copy of the
 * driver; where that is not there either, all are in host memory. */
void gpu_locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch);
void gpu_program_locate(struct accel_span *spans, int count, int64_t batch);

/* Whether the driver has been unloaded, or is going to be: the process is ending, and failures are no news. */
bool gpu_is_gone(void);

/* Runs a valid, non-empty call. Blocks until the result is where the caller expects it. */
enum gpu_status gpu_run(struct gpu_device *device, const struct accel_call *call,
                        struct gpu_host *host);

/* Copies one matrix, wherever it is, to or from packed host memory (ld = rows), for the CPU's use where the
 * GPU has refused it. Of a span with a triangle, that alone is stored. Returns false where that
 * fails, and where the device is NULL. */
bool gpu_fetch(struct gpu_device *device, void *host, const struct accel_span *x);
bool gpu_store(struct gpu_device *device, const struct accel_span *x, const void *host);

/* Rates of copies of large operands from host memory to the device and back, in 10^9 bytes a second: as gpu_run() makes
 * them, the best of some. Takes a tenth of a second. False where that fails. */
bool gpu_measure_copies(struct gpu_device *device, double *up_gbps, double *down_gbps);

/* cuSOLVER's algorithms for singular values: QR iteration (Xgesvd), polar decomposition (Xgesvdp), Jacobi rotations (gesvdj).
 * Which is the fastest depends on the device, the type and the order. */
enum gpu_svd { GPU_SVD_GESVD, GPU_SVD_GESVDP, GPU_SVD_GESVDJ, GPU_SVDS };

/* As a calibration names them. */
extern const char *const gpu_svd_names[GPU_SVDS];

/* Orders (a matrix's smaller size) go by octaves: floor(log2(order)), at most the last. */
enum { GPU_SVD_OCTAVES = 32 };
int gpu_svd_octave(int64_t order);

/* From now on, matrices of this type (one of the four of BLAS) and octave, with vectors or for their values alone, get this
 * algorithm on this device; before, all get Xgesvd. Where the chosen one fails, is not in this cuSOLVER, or says that it is not accurate,
 * Xgesvd has the matrix all the same. */
void gpu_svd_choose(struct gpu_device *device, enum accel_dtype dtype, bool vectors, int octave,
                    enum gpu_svd algorithm);
enum gpu_svd gpu_svd_chosen(const struct gpu_device *device, enum accel_dtype dtype, bool vectors,
                            int64_t order);

/* Frees what lies idle: the memory pool's blocks, streams, handles. */
void gpu_trim(struct gpu_device *device);

/* Frees everything, the device too; no call may be running on it. NULL: nothing happens. For tests: a process that ends leaves it to
 * the driver, which may be gone before us. */
void gpu_stop(struct gpu_device *device);

/* In the child of a fork: no CUDA function is called again, of no device. */
void gpu_fork_child(void);

#endif
