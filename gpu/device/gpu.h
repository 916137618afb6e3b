/*
 * gpu/: devices, and the steps that operations are made of. It includes base/ and headers of ops/;
 * gpu/cuda/ alone names CUDA.
 *
 * This header finds a device, starts it, and runs calls on it. A process may have several, each
 * with its own memory and streams; a failure of one says nothing of the others (device.h). CUDA's
 * are the only kind so far. Thread-safe unless said otherwise. No function leaves a trace in the
 * calling thread's CUDA state: contexts are pushed and popped, the capture mode is exchanged and
 * put back.
 */
#ifndef ACCEL_GPU_H
#define ACCEL_GPU_H

#include "base/host/pci.h"
#include "call/call.h"
#include "call/status.h"
#include "gpu/plan/nominal.h"
#include "gpu/plan/precision.h"
#include "gpu/plan/schedule.h"

struct gpu_config {
    const char *cuda_dir; /* the folder that is searched for CUDA's libraries first, or NULL */
    double memory_share;  /* of the device's memory that may be used, if memory_bytes is 0 */
    int64_t memory_bytes; /* that may be used */
    /* CUDA's numbers of the devices that may be used, and their count; 0: all. The processes of one
     * program on this machine take them in turn: this one is number `local_rank` of
     * `local_size`. */
    const int *devices;
    int device_count;
    int local_rank, local_size;
    /* This process may use more than one: its share of them. Each start takes one that it does not
     * use yet. */
    bool several;
    /* Nobody has numbered this process: it takes the device that the fewest of this user's
     * processes use (seats.h). */
    bool spreads;
};

enum { GPU_FAILURE_BYTES = 512 };

/* The versions of CUDA whose interface this was written for (gpu/cuda/api/abi.h): "12 and 13".
 * Constant. */
extern const char gpu_interface[];

struct gpu_info {
    char name[64];
    char id[40];          /* tells this device from others of this machine */
    int index;            /* the device's CUDA ordinal */
    int sharers;          /* processes of this program that use it, at least 1 */
    int share;            /* devices that this process may use, with this one */
    const char *chosen;   /* why it is this device: a word of the log's, or NULL; constant */
    int others;           /* of this user's processes, if it is the one with the fewest */
    int64_t memory_bytes; /* that this process may use */
    struct nominal_rates nominal;
    /* Devices that came before it and cannot be used, and why; empty: none. */
    char passed_over[GPU_FAILURE_BYTES];
    int cuda_version, cublas_version; /* of the driver (13000) and of cuBLAS (130100) */
    /* That it has, as bits 1 << enum gpu_precision, of products of each kind. */
    unsigned char precisions[GPU_PRODUCTS];
    /* Processes use it at the same time, by CUDA's Multi-Process Service; else they take turns. */
    bool mps;
    /* Its kernels reach the program's memory by the host's own page tables (Grace and its like):
     * where it is, whoever allocated it. */
    bool host_page_tables;
    bool integrated; /* its memory is the host's */
    /* Another process owns it (gpu/remote/): nothing is to be loaded for a first call, and forked
     * children may use it */
    bool remote;
    /* The PCI root port that leads to it (base/host/pci.h); empty: it has a link of its own, as far
     * as is known */
    char port[PCI_PORT_BYTES];
};

/* The thing that a failure makes useless. */
enum gpu_blame {
    GPU_BLAME_DEVICE,  /* its stream or context is broken, or cuBLAS does not start */
    GPU_BLAME_LAPACK,  /* cuSOLVER does not start; BLAS goes on */
    GPU_BLAME_ROUTINE, /* a function of a library fails at this routine, and the device is well */
    GPU_BLAME_SERVER   /* the process that owns the device has ended: another one may come */
};

enum gpu_event_kind {
    GPU_EVENT_H2D,      /* host to device */
    GPU_EVENT_D2H,      /* device to host */
    GPU_EVENT_IN_PLACE, /* used where it is: device memory, managed memory, or the host's */
    GPU_EVENT_MIGRATE,  /* pages of host memory are moved to the device */
    GPU_EVENT_PEER,     /* from one device to another: a tile of an operand */
    GPU_EVENT_CACHED,   /* an operand, or a tile of one, that was on the device already */
    GPU_EVENT_ALLOCATE  /* the memory pool grew */
};

struct gpu_event {
    enum gpu_event_kind kind;
    const char *operand; /* "a", "b", "c"; NULL if the event is of no operand */
    int64_t rows, cols, bytes;
};

/* What a call did on the device, and when, by accel_now_ms(). */
enum gpu_step_kind { GPU_STEP_UP, GPU_STEP_COMPUTE, GPU_STEP_DOWN, GPU_STEP_KINDS };
struct gpu_step {
    enum gpu_step_kind kind;
    const char *operand; /* of a copy; NULL: not known */
    int64_t bytes;       /* of a copy */
    double start_ms, end_ms;
};
struct gpu_steps {
    const struct gpu_step *step; /* those of one kind in their order, none within another */
    int count;
    int64_t left_out;                   /* steps beyond these */
    int device;                         /* the device's CUDA ordinal */
    int lane;                           /* a number of the device's: one call at a time has it */
    int64_t device_bytes, cached_bytes; /* device memory that libaccel has; cached inputs in it */
};

/* Whose a call is, in a process that runs those of several users. All zero: the process's own, who
 * may have all of the memory. */
struct gpu_user {
    uint64_t id;
    int64_t memory_most; /* bytes of device memory that the user may have at a time; 0: all */
};

struct packer;
struct peer_tiles;
struct scheduled;
struct solver_shared;
struct told_inputs;

/* A running call's link to the layer above. */
struct gpu_host {
    /* Runs a part of the call on the CPU; no kernel may be writing to its operands. Returns false
     * if that fails: the output is undefined then. NULL: nobody does, and the results are undefined
     * after a failure. */
    bool (*original)(void *context, const struct accel_call *part);
    /* Gets each event; NULL: none is wanted. */
    void (*event)(void *context, const struct gpu_event *event);
    /* Gets the steps of the call at its end; NULL: they are not timed. */
    void (*steps)(void *context, const struct gpu_steps *steps);
    void *context;
    /* Nothing that a call of another user has left on the device is found, or can be read */
    struct gpu_user user;
    bool caches;  /* inputs may be cached on the device for later calls, and be found there */
    bool digests; /* those that no watch knows are looked for by a digest */
    bool weighs;  /* only where that pays by the rates of this call */
    bool tracks;  /* by the kernel's record of writes, too, not by digests alone */
    bool hurries; /* the call may not wait for other calls: GPU_BUSY if they have all stream
                     contexts */
    bool relies;  /* the call pays only if inputs that could be there are: else GPU_CHANGED */
    /* The operand that the call is to bring, for later ones: 1 << gpu_operand_to_prefetch(), or 0.
     */
    unsigned prefetches;
    /* Spans in host memory that kernels read where they are, as bits 1 << enum accel_matrix: of a
     * call of BLAS, on a device with host_page_tables, only those that it reads alone, aligned to
     * their elements. A result always comes down as a copy. */
    unsigned placed;
    bool migrates; /* their pages are moved to the device first, and stay there */
    /* The one that the user has asked for, of a routine with op->traits.products. gpu_run() sets
     * it to native if cuBLAS says that it has computed in native precision, or if there is no
     * memory for its workspace. cuBLAS tells only of GPU_EMULATED. */
    enum gpu_precision precision;
    /* NULL, or: matrices of this call, of Level 2 or 3 or LAPACK, are another process's
     * (gpu/pack/packer.h); `original` is NULL then. */
    struct packer *packer;
    /* NULL, or: what that process tells of its inputs, and is told of them
     * (gpu/cache/told_inputs.h). */
    struct told_inputs *told;
    struct schedule_rates rates; /* of this call, by which its schedule is chosen; 0: not known */
    const struct scheduled *scheduled; /* the description of this very call; NULL: none is made */
    /* NULL, or: several devices share the call, of LAPACK, and this one is member number `member`
     * (solver_shared.h). */
    struct solver_shared *shared;
    /* NULL, or: of Level 3, and these lend each other tiles of its operands (peer_tiles.h). */
    struct peer_tiles *peer_tiles;
    int member;
    /* Filled in by gpu_run(): */
    int64_t up_bytes, down_bytes;
    int64_t peer_bytes;   /* from other devices */
    int64_t cached_bytes; /* of inputs that earlier calls had left in the cache */
    /* The call made handles or copies that later ones use, waited for a library, or ran twice: its
     * time is not a call's */
    bool set_up;
    enum gpu_blame blame;            /* on GPU_ERROR, GPU_FINISHED_ELSE, GPU_LOST */
    char failure[GPU_FAILURE_BYTES]; /* the same, if the blame is not the device's */
    /* Where another process owns the devices: that the call is estimated to take alone there, 0:
     * not known; and, filled in, of the device that has done it, gpu_info.index. */
    double alone_ms;
    int index;
};

/* A device in use. */
struct gpu_device;

/* Opens CUDA and takes the primary context of the first device that can be had: passes over one
 * that is prohibited, taken by another process, failing or short of memory; with config->several,
 * one that this process uses already, without a word. Returns NULL if there is no usable GPU, with
 * the reason in `why`, one line. The device stays until gpu_stop(). Later starts use the libraries
 * of the first, whatever cuda_dir says. From here on exit() waits for threads that are inside CUDA
 * (exit_guard.h); a start then stops after the step that it is at, and all other functions fail.
 * Not thread-safe; the caller should block signals, since CUDA starts threads. */
struct gpu_device *gpu_start(const struct gpu_config *config, char why[GPU_FAILURE_BYTES]);

/* What gpu_start() finds on this machine, for people. */
enum { GPU_PATH_BYTES = 4096, GPU_DEVICES_SHOWN = 16 };
struct gpu_part {
    bool is_there;
    char path[GPU_PATH_BYTES]; /* empty: not known */
    char version[40];          /* the driver's: of the CUDA that it is for; empty: not known */
};
struct gpu_findings {
    struct gpu_part driver, blas, solver;
    bool driver_is_usable;
    /* What is wrong with the driver or with the library of BLAS; empty: nothing */
    char wrong[GPU_FAILURE_BYTES];
    bool may_have_device; /* files of the driver or the PCI bus show one, or nobody can tell */
    char hides[100];      /* the variable that hides devices, and its value; empty: it is not set */
    int devices;
    struct {
        char name[64];
        int64_t memory_bytes;
    } device[GPU_DEVICES_SHOWN]; /* the first */
    /* The service by which processes share a device at the same time: whether it serves the first
     * device; whether its pipe is there; whether a variable asks for it. */
    bool mps_serves, mps_has_pipe, mps_asked;
    char mps_folder[GPU_PATH_BYTES];
};

/* Opens the libraries, as gpu_start() does. Not thread-safe. */
void gpu_examine(struct gpu_findings *findings, const struct gpu_config *config);

/* The libraries of the device's vendor, once each has been opened. */
enum gpu_library { GPU_DRIVER, GPU_BLAS, GPU_SOLVER, GPU_LIBRARIES };
struct gpu_library_file {
    char path[GPU_PATH_BYTES]; /* without symbolic links; empty: not known */
    int version; /* the driver's: of the CUDA that it is for (13000); others: 130100 is 13.1.0; 0:
                    not known */
};

/* Returns the library that is in use, NULL before it has been opened: cuSOLVER is at the first call
 * that needs it. Constant from then on. */
const struct gpu_library_file *gpu_library(enum gpu_library which);

/* Returns the device's properties: constant, and valid as long as the device. */
const struct gpu_info *gpu_info(const struct gpu_device *device);

/* Looks for the driver's device files. Call it when the process starts: a sandbox that the program
 * enters later may kill the process for such a look. Keeps errno. */
void gpu_look_for_devices(void);

/* Returns false if this machine certainly has no GPU. Cheap: loads nothing, and looks for no file.
 * has_cuda_library: a library is loaded for which gpu_is_cuda_library() returns true. After
 * gpu_look_for_devices(). */
bool gpu_may_exist(const struct gpu_config *config, bool has_cuda_library);

/* Returns why the device was given up, or, as long as it was not, why a routine was: one line,
 * valid as long as the device. */
const char *gpu_failure(const struct gpu_device *device);
/* Returns whether the device has failed. */
bool gpu_has_failure(const struct gpu_device *device);

/* Returns whether the program itself has loaded CUDA, and has a context that device pointers could
 * belong to. Works before gpu_start(). loads: a number that changes when something is loaded; looks
 * again for a missing driver only if it has changed. */
bool gpu_program_uses_cuda(unsigned long long loads);

/* Returns whether an operand that has been located so far was in host memory which CUDA has pinned.
 * That is the program's doing, perhaps in a thread that calls no BLAS; its own copies write there
 * without a page fault. Thread-safe. */
bool gpu_program_pins(void);

/* Returns whether the program itself has initialised CUDA, which its forked children then cannot
 * use. Before gpu_start(). */
bool gpu_program_has_initialised(unsigned long long loads);

/* Returns whether a library is the driver, or one through which programs use it. */
bool gpu_is_cuda_library(const char *path);

/* Fills in the place of each span that has a pointer, as the device sees it (of a batch: see struct
 * accel_span). batch: the number of the call's products. device: NULL if none has been started;
 * then asks the program's own copy of the driver, and without one leaves the spans as they are: in
 * host memory. */
void gpu_locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch);
void gpu_program_locate(struct accel_span *spans, int count, int64_t batch);

/* Returns whether the driver has been unloaded, or will be because the process ends: then failures
 * are no news. */
bool gpu_is_gone(void);

/* Ends what a packer's memory is pinned for: no call uses it. One that is lost stays pinned, and
 * its memory must stay where it is. */
void gpu_unpin(struct gpu_device *device, struct packer *packer);

/* Runs a valid, non-empty call. Returns when the result is where the caller expects it. */
enum gpu_status gpu_run(struct gpu_device *device, const struct accel_call *call,
                        struct gpu_host *host);

/* What the calls of other processes cost one, as far as the device's owner tells. */
struct gpu_load {
    double wait_ms; /* until it has a place there */
    double slower;  /* >= 1: so many times as long it takes then, beside others */
};
struct gpu_load gpu_load(struct gpu_device *device, const struct accel_call *call);

/* A call's cached inputs: which, as bits 1 << enum accel_matrix; and their bytes, known by a digest
 * of the program's memory, or by the kernel's record of writes to it. */
struct gpu_cached {
    unsigned operands;
    int64_t digested_bytes, watched_bytes;
    int64_t beside_bytes; /* of A, if it is a triangle: beside that, where a digest does not read */
};

/* Returns those that gpu_run() would find of a valid call, as far as is known without a look; and
 * the rates, in 10^9 bytes a second, at which it sees that they have not changed, one way or the
 * other: measured, or nominal before the first time. */
struct gpu_cached gpu_cached(struct gpu_device *device, const struct accel_call *call);
double gpu_digest_gbps(void);
double gpu_scan_gbps(void);

/* A matrix with fewer bytes is not cached on the device: it is up before a digest of it would be
 * known. */
#define GPU_LEAST_CACHED_BYTES ((int64_t)1 << 20)

/* Returns a valid call's largest input that may be cached on the device, an enum accel_matrix; -1:
 * there is none, or it is a batch. */
int gpu_operand_to_prefetch(const struct accel_call *call);

/* Notes that a valid call runs on the CPU and would have taken gain_ms less, > 0, if that input had
 * been on the device, known by the kernel's record. Returns whether the call had better run on the
 * device with gpu_host.prefetches, at a loss of upload_ms - gain_ms: see prefetch.h. */
bool gpu_is_worth_prefetching(const struct accel_call *call, double gain_ms, double upload_ms);

/* Copy one matrix, wherever it is, to or from packed host memory (ld = rows), for the CPU, if the
 * GPU has refused the call. gpu_store() stores only the triangle of a span that has one. Return
 * false on a failure, or if the device is NULL. */
bool gpu_fetch(struct gpu_device *device, void *host, const struct accel_span *x);
bool gpu_store(struct gpu_device *device, const struct accel_span *x, const void *host);

/* Operands pass through pinned memory in chunks: large ones in a number of them, others in chunks
 * of this many bytes, if they have as many. Which size is the fastest depends on the machine. A new
 * device has GPU_CHUNK_USUAL; gpu_set_chunk() does nothing with a size that is not one of
 * gpu_chunk_sizes. Copies that are digested do not depend on it (chunks.h). */
enum { GPU_CHUNK_USUAL = 1 << 20, GPU_CHUNKS = 4 };
extern const int64_t gpu_chunk_sizes[GPU_CHUNKS];
void gpu_set_chunk(struct gpu_device *device, int64_t bytes);
int64_t gpu_chunk(const struct gpu_device *device);

/* How fast large operands in the program's memory are copied to the device and back, in 10^9 bytes
 * a second; and what short columns of doubles take besides. */
struct gpu_copy_rates {
    double up_gbps, down_gbps;
    struct short_columns short_up, short_down;
};

/* Measures with which size of chunks copies of some megabytes are the fastest, and sets it. Then
 * measures the rates of gpu_run()'s copies: the best of some. Takes a second or two. Returns false
 * on a failure. */
bool gpu_measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates);

/* Measures how fast blocks of some numbers of rows are multiplied, in native precision and the type
 * of a call of ?gemm, of which nothing else is read. Takes about limit_ms at most, and three times
 * PACE_MOST x PACE_WIDEST elements of device memory. Returns false, with all paces 0, if something
 * fails, or it would take far longer. */
bool gpu_measure_paces(struct gpu_device *device, const struct accel_call *product, double limit_ms,
                       struct block_paces *paces);

/* Returns the rate, in 10^9 bytes a second, at which a device copies from another one's memory that
 * has been taken by gpu_memory.take_lent(); 0: it cannot, or not rightly, or something fails, which
 * says nothing of either device. Measured at the first question (some milliseconds, and at most 32
 * MB of each one's memory), some time later again if memory was short; then the same for as long as
 * both devices stay. Rounded to a power of 2 or sqrt(2) times one, so that runs on one machine plan
 * alike. */
double gpu_peer_gbps(struct gpu_device *reader, struct gpu_device *owner);

/* cuSOLVER's algorithms for singular values: QR iteration (Xgesvd), polar decomposition (Xgesvdp),
 * Jacobi rotations (gesvdj). Which is the fastest depends on the device, the type and the order. */
enum gpu_svd { GPU_SVD_GESVD, GPU_SVD_GESVDP, GPU_SVD_GESVDJ, GPU_SVDS };

/* Their names in a calibration. */
extern const char *const gpu_svd_names[GPU_SVDS];

/* Returns the octave of an order (a matrix's smaller size): floor(log2(order)), at most the last
 * octave. */
enum { GPU_SVD_OCTAVES = 32 };
int gpu_svd_octave(int64_t order);

/* Sets the algorithm for matrices of a type (one of BLAS's four) and an octave, with vectors or for
 * their values alone; a new device uses Xgesvd. If the chosen one fails, is missing in this
 * cuSOLVER, or says that it is not accurate, Xgesvd gets the matrix after all. */
void gpu_svd_choose(struct gpu_device *device, enum accel_dtype dtype, bool vectors, int octave,
                    enum gpu_svd algorithm);
enum gpu_svd gpu_svd_chosen(const struct gpu_device *device, enum accel_dtype dtype, bool vectors,
                            int64_t order);

/* From now on, a kernel of our own solves by triangles of this type with so many right-hand sides
 * and more (triangle_solve.h), where the device's BLAS would; 0: never, as on a new device. Whether
 * the kernel computes rightly, and is faster, is measured by `accel calibrate`. Does nothing with
 * types that have no such kernel; one that turns out not to be there is not asked for again.
 * gpu_solves_by_own() returns whether it is asked for if there are so many. */
void gpu_solve_by_own(struct gpu_device *device, enum accel_dtype dtype, int64_t least_nrhs);
bool gpu_solves_by_own(const struct gpu_device *device, enum accel_dtype dtype, int64_t nrhs);

/* Counts the bytes of device memory that calls have, or have left idle: of a user's (gpu_user.id);
 * NULL: of all. *cached: those of them that are in the device cache. */
void gpu_count_memory(struct gpu_device *device, const uint64_t *user, int64_t *held,
                      int64_t *cached);

/* Lists the first words of the keys under which a user's inputs are in the device cache, `most` at
 * most. Returns how many. */
int gpu_list_cached(struct gpu_device *device, uint64_t user, uint64_t *word, int most);

/* Frees idle blocks of the memory pool, idle streams and handles. */
void gpu_trim(struct gpu_device *device);

/* Frees everything, the device too; no call may be running on it. Does nothing with NULL. For
 * tests: a process that ends leaves this to the driver, which may be gone before us. */
void gpu_stop(struct gpu_device *device);

/* Makes sure, in the child of a fork, that no CUDA function is called again, of any device. */
void gpu_fork_child(void);

#endif
