/*
 * The calibration on disk. Text, for people to read:
 *
 *     accel-model 1
 *     [cpu "AMD EPYC 9654 96-Core Processor" threads=16 library="libopenblasp-r0.3.21.so 36384320"]
 *     ROUTINE 64x64x64:0.0101 512x512x512:1.02
 *     [gpu "NVIDIA H200" cuda=13.0 cublas=130100]
 *     up_gbps=21.3
 *     down_gbps=19.9
 *     kernels_ms=31.2
 *     solver_ms=740
 *     svd_d_vectors 48:gesvdj 800:gesvdp
 *     ROUTINE 64x64x64:0.0210 512x512x512:0.0324
 *     checksum=0123456789abcdef
 *
 * The first line is the format's version. A section's header is its key: curves of another machine, library or thread
 * count are another section, and sections of several machines stand side by side. Its lines are values, and for a
 * routine the calls that were measured: the sizes m, n, k, nrhs that the routine has, and milliseconds (on the GPU
 * without the copies of operands). `kernels_ms` and `solver_ms` are what a routine's first call takes to load its kernels, and
 * LAPACK's first to open cuSOLVER. `svd_` lines name the algorithm that was the fastest accurate one at each order: of a
 * type (s d c z), with singular vectors or for the values alone. The checksum is XXH3, 64 bits, of all before its line.
 *
 * Not thread-safe, but for different files.
 */
#ifndef ACCEL_MODEL_FILE_H
#define ACCEL_MODEL_FILE_H

#include <stddef.h>

#include "gpu/gpu.h"
#include "base/grown.h"
#include "model.h"

enum { MODEL_KEY_BYTES = 320 };

struct calibration {
    char *text; /* in memory of the file's own */
    size_t length;
};

/* A section's lines, within the file's memory. */
struct calibration_section {
    const char *text;
    size_t length;
};

/* Reads a file. Returns NULL, or what is wrong with it, as constant text: calibration_missing where there is no such file,
 * calibration_closed where this user may not read it. Only a file that is whole is read: calibration_close() it then. */
const char *calibration_open(struct calibration *file, const char *path);
extern const char calibration_missing[], calibration_closed[];
void calibration_close(struct calibration *file);

/* The headers, with what tells this CPU; cuda_version as the driver says it (13000), cublas_version too. */
void model_cpu_key(char key[MODEL_KEY_BYTES], const char *library, int threads);
void model_gpu_key(char key[MODEL_KEY_BYTES], const char *name, int cuda_version,
                   int cublas_version);

/* What the key of every section for this CPU begins with. */
void model_cpu_prefix(char key[MODEL_KEY_BYTES]);

/* The section of a key, or, with `prefix`, the first whose key begins so. False where there is none. */
bool calibration_find(const struct calibration *file, const char *key, bool prefix,
                      struct calibration_section *section);

/* Whether there is any section: a file without one says nothing of any machine. */
bool calibration_has_sections(const struct calibration *file);

/* The next section of this CPU (its prefix) and a library, whatever its threads; `rest` begins as a copy of the file, and is
 * then what follows. */
bool calibration_next_cpu(struct calibration *rest, const char *prefix, const char *library,
                          int *threads, struct calibration_section *section);

/* The next section of a GPU, and its name; `rest` begins as a copy of the file, and is then what follows. */
bool calibration_next_gpu(struct calibration *rest, char name[MODEL_KEY_BYTES],
                          struct calibration_section *section);

/* The section of a GPU of this name, in any case, with the maker's or without; or else the first in whose name it is by whole
 * words: "h200" is in "NVIDIA H200 NVL". A slice (MIG) is meant only where the name says so. */
bool calibration_find_gpu(const struct calibration *file, const char *name,
                          struct calibration_section *section);

/* A value of a section, 0 where it has none. */
double calibration_section_value(const struct calibration_section *section, const char *name);

/* Makes a routine's curve from its line. False where the section has none, or not in the sizes of the routine. */
bool calibration_section_curve(const struct calibration_section *section,
                               const struct accel_routine *routine, struct model_curve *curve);

/* Which algorithm each octave of orders gets: that of the measured order nearest to it. False where the section names none, or
 * not as it should. */
bool calibration_section_svd(const struct calibration_section *section, enum accel_dtype dtype,
                             bool vectors, enum gpu_svd algorithm[GPU_SVD_OCTAVES]);

/* The name that such a line begins with: "svd_d_vectors". */
enum { MODEL_SVD_NAME_BYTES = 16 };
void model_svd_name(char name[MODEL_SVD_NAME_BYTES], enum accel_dtype dtype, bool vectors);

/* Appends such lines as they stand. */
void calibration_section_keep_svd(const struct calibration_section *section, struct grown *body);

/* Replaces or adds sections (keys and bodies, whose lines end in a newline), and keeps the others of a file that is whole. The
 * new file is written aside, and renamed; folders that are missing are made. Returns NULL, or what failed, as constant
 * text, with errno: the old file then stays. Of no sections it tries whether it could, and leaves all as it was, except for
 * folders. patient: another process may be at it, which is waited for up to some
 * seconds, or else 20 ms. */
const char *calibration_put(const char *path, const char *const keys[], const char *const bodies[],
                            int count, bool patient);

#endif
