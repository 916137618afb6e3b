#ifndef ACCEL_TEST_ENTRY_COST_H
#define ACCEL_TEST_ENTRY_COST_H

#include <stddef.h>

#define CALL_SITES 256

/* A small dgemm_, called from place number `site`. */
void call_site(int site);

#endif
