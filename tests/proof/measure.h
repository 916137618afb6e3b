/*
 * The parts of the measuring program. Each prints its figures, and where one cannot be had, why.
 */
#ifndef ACCEL_PROOF_MEASURE_H
#define ACCEL_PROOF_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

/* A line "NAME<tab>VALUE<tab>UNIT" on stdout, at once: a crash loses nothing that was measured
 * before. */
void report(const char *name, double value, const char *unit);
/* A line "NAME<tab>-<tab>WHY" for what is not measured. why: "" stands for driver_failure(), which
 * is forgotten. */
void report_missing(const char *name, const char *why);

/* So many bytes in so many milliseconds; ms <= 0: it has failed. */
void report_rate(const char *name, double ms, size_t bytes);

/* quick: small sizes, for machines without a GPU. Each expects the calling thread to have the
 * context, except measure_start(), which makes it, and measure_tracking(), which needs none. False
 * where the rest is pointless. */
bool measure_start(void);
void measure_copies(bool quick);
void measure_staged_copies(bool quick);
void measure_pieces(bool quick);
void measure_own_copies(bool quick);
void measure_pinning(bool quick);
void measure_peers(bool quick);
void measure_launches(bool quick);
void measure_products(bool quick);
void measure_blocks(bool quick);
void measure_solves(bool quick);
void measure_solver(bool quick);
void measure_tracking(bool quick);

/* Returns the shorter time; best < 0: there is none yet. */
static inline double measure_best(double best, double ms)
{
    return best < 0 || ms < best ? ms : best;
}

/* Memory of the host, aligned to 2 MiB and with every page touched; huge: whether the kernel is
 * asked for huge pages. NULL where there is none. */
void *touched_memory(size_t size, bool huge);
void touched_memory_free(void *memory, size_t size);

#endif
