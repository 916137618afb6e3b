/*
 * Places whose matrices the GPU gives back: singular or indefinite ones, on which only the
 * program's own LAPACK can report. Such a call has gone up for nothing, and is computed a second
 * time. A place (call_site_key()) where that happens twice without a success between stays on the
 * CPU until some calls in a row have succeeded there: INFO tells. If the GPU gives the next one
 * back too, twice as many must. Thread-safe.
 */
#ifndef ACCEL_NEGATIVE_CACHE_H
#define ACCEL_NEGATIVE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether calls from there stay on the CPU now. */
bool negative_cache_holds(uint64_t place);

/* Notes that the GPU has done a call from there, or has given it back. */
void negative_cache_note_gpu(uint64_t place, bool done);

/* Notes that a call from there has run on the CPU, and whether its INFO was 0. */
void negative_cache_note_cpu(uint64_t place, bool succeeded);

#endif
