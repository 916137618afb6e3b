/* The allocation that HPC Challenge's Linpack uses. */
#include <stdlib.h>

#define HPCC_malloc malloc
#define HPCC_free   free
