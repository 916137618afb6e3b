/*
 * The calibration on disk. Text, for people to read:
 *
 *     accel-model 1 [cpu "AMD EPYC 9654 96-Core Processor" threads=16
 *     library="libopenblasp-r0.3.21.so 36384320"] ROUTINE 64x64x64:0.0101 512x512x512:1.02 [gpu
 *     "NVIDIA H200" cuda=13.0 cublas=130100] up_gbps=21.3 down_gbps=19.9 piece_kb=512
 *     short_up_bytes=6650 short_up_ms=0.000065 short_down_bytes=1 kernels_ms=31.2 solver_ms=740
 *     start_ms=381
 *     schedule_ratio=1.08 solve_d_blas_gbps=71.4 solve_d_blas_row_ms=0.0004 solve_d_own_gbps=310
 *     solve_d_own_row_ms=0.0002 solve_d_own_nrhs=1024 gain_emulated=8.1 pace_d 640:1.02 768:0.98
 *     svd_d_vectors 48:gesvdj 800:gesvdp ROUTINE 64x64x64:0.0210 512x512x512:0.0324
 *     checksum=0123456789abcdef
 *
 * The first line is the format's version. A section's header is its key: curves of another machine,
 * library or thread count are another section, and sections of several machines stand side by side.
 * Its lines are values, and for a routine the calls that were measured: the sizes m, n, k, nrhs
 * that the routine has, and milliseconds (on the GPU without the copies of operands). `piece_kb` is
 * the size of chunks with which copies are the fastest. `short_` values, each way, are what columns
 * of fewer bytes take besides (gpu/plan/short_columns.h), of one byte: none does. `kernels_ms` is
 * the time in which a routine's first call loads its kernels, `solver_ms` that in which the first
 * call of LAPACK opens cuSOLVER, `start_ms` CUDA's start; `schedule_ratio` is by how much calls of
 * Level 3 take longer than their schedules say (gpu/plan/schedule.h); `gain_` values, by how much
 * products are faster in other precisions. `solve_` values, of a type (s d), are what solving by a
 * triangle takes apart from the operations, by cuBLAS and by a kernel of our own: 10^9 bytes of
 * right-hand sides a second, where there are many, and where there are few, the time of each row.
 * Those of our own are there only if it is right, and faster, from so many right-hand sides on.
 * `pace_` lines say how fast blocks of so many rows are multiplied, in a type (s d c z), over those
 * of 3200 rows (gpu/plan/block_paces.h). `svd_` lines name the fastest accurate algorithm at each
 * order, for a type (s d c z), with singular vectors or for the values alone. The checksum is XXH3,
 * 64 bits, of all before its line.
 *
 * Not thread-safe, except for different files.
 */
#ifndef ACCEL_CALIBRATION_H
#define ACCEL_CALIBRATION_H

#include "gpu/device/gpu.h"
#include "base/text/string_buffer.h"
#include "calibration_file.h"
#include "model.h"

enum { CALIBRATION_KEY_BYTES = 320 };

/* Write the key of a section: of a library on this CPU with this number of threads; of a GPU, with
 * the versions as the driver (13000) and cuBLAS (130100) say them. */
void calibration_cpu_key(char key[CALIBRATION_KEY_BYTES], const char *library, int threads);
void calibration_gpu_key(char key[CALIBRATION_KEY_BYTES], const char *name, int cuda_version,
                         int cublas_version);

/* Writes the beginning of the key of every section for this CPU. */
void calibration_cpu_prefix(char key[CALIBRATION_KEY_BYTES]);

/* Finds the next section for this CPU (its prefix) and a library, with any number of threads.
 * `rest` as in calibration_next_section(). */
bool calibration_next_cpu(struct calibration *rest, const char *prefix, const char *library,
                          int *threads, struct calibration_section *section);

/* Finds the next section of a GPU, and its name. `rest` as in calibration_next_section(). */
bool calibration_next_gpu(struct calibration *rest, char name[CALIBRATION_KEY_BYTES],
                          struct calibration_section *section);

/* Finds the section of the GPU of this name, in any case, with or without "NVIDIA"; else the first
 * whose name has it as whole words: "h200" is in "NVIDIA H200 NVL". A slice (MIG) is found only if
 * the name says MIG. */
bool calibration_find_gpu(const struct calibration *file, const char *name,
                          struct calibration_section *section);

/* The names of the values that say by how much products are faster in a precision; native: NULL. */
extern const char *const calibration_gain_names[GPU_PRECISIONS];

/* The name of the value that says by how much calls of Level 3 take longer than their schedules
 * say. */
extern const char calibration_schedule_ratio[];

/* The names of the values that say what short columns take besides, up and down; without `bytes` it
 * is not known. */
struct calibration_short_names {
    const char *bytes, *ms;
};
extern const struct calibration_short_names calibration_short_up, calibration_short_down;

/* Returns the names of the values of solutions by a triangle, by our own kernel or by cuBLAS:
 * "solve_d_own_gbps", "solve_d_own_row_ms", and of our own "solve_d_own_nrhs". */
enum { CALIBRATION_SOLVE_BYTES = 24 };
struct calibration_solve_names {
    char gbps[CALIBRATION_SOLVE_BYTES], row_ms[CALIBRATION_SOLVE_BYTES],
        nrhs[CALIBRATION_SOLVE_BYTES];
};
struct calibration_solve_names calibration_solve_names(enum accel_dtype dtype, bool own);

/* Returns a value of a section, 0 if it has none. */
double calibration_section_value(const struct calibration_section *section, const char *name);

/* Fits a routine's curve to its line. False if the section has none, or one with other sizes than
 * the routine's. */
bool calibration_section_curve(const struct calibration_section *section,
                               const struct accel_routine *routine, struct model_curve *curve);

/* Sets the algorithm of each octave of orders: that of the measured order nearest to it. False if
 * the section has no valid line. */
bool calibration_section_svd(const struct calibration_section *section, enum accel_dtype dtype,
                             bool vectors, enum gpu_svd algorithm[GPU_SVD_OCTAVES]);

/* Writes the name that such a line begins with: "svd_d_vectors". */
enum { CALIBRATION_SVD_BYTES = 16 };
void calibration_svd_name(char name[CALIBRATION_SVD_BYTES], enum accel_dtype dtype, bool vectors);

/* Sets the paces of blocks in a type. False, with none set, if the section has no valid line. */
bool calibration_section_paces(const struct calibration_section *section, enum accel_dtype dtype,
                               struct block_paces *paces);

/* Writes the name that such a line begins with: "pace_d". */
enum { CALIBRATION_PACE_BYTES = 8 };
void calibration_pace_name(char name[CALIBRATION_PACE_BYTES], enum accel_dtype dtype);

/* ---- Writing a section's lines ---- */

/* Appends "name=value". */
void calibration_put_value(struct string_buffer *body, const char *name, double value);

/* Appends a routine's line, with the points of its curve, or nothing if there are none. A batch's
 * points are left out. */
void calibration_put_curve(struct string_buffer *body, const struct accel_routine *routine,
                           const struct model_curve *curve);

/* Appends the lines of a section that only `accel calibrate` writes, as they stand: `calibrated`,
 * `svd_`, `pace_` and `short_`. */
void calibration_put_measured(struct string_buffer *body,
                              const struct calibration_section *section);

#endif
