#include "cpu_kernels.h"

#include <stddef.h>
#include <strings.h>

/*
 * OpenBLAS's names of x86 cores (driver/others/dynamic.c, cpuid_x86.c) that are older than
 * Haswell, and of its kernels in C. A build for fewer cores may say "Katmai" where it has
 * Prescott's kernels. Bulldozer and its successors share units of 128 bits. All other names, also
 * those of other architectures, are tuned.
 */
static const struct {
    char core[14]; /* no pointers: they would have to be relocated when a program starts */
    unsigned char kernels;
} cores[] = {
    {"Katmai", KERNELS_SSE},     {"Coppermine", KERNELS_SSE},   {"Northwood", KERNELS_SSE},
    {"Prescott", KERNELS_SSE},   {"Banias", KERNELS_SSE},       {"Yonah", KERNELS_SSE},
    {"Atom", KERNELS_SSE},       {"Core2", KERNELS_SSE},        {"Penryn", KERNELS_SSE},
    {"Dunnington", KERNELS_SSE}, {"Nehalem", KERNELS_SSE},      {"Athlon", KERNELS_SSE},
    {"Opteron", KERNELS_SSE},    {"Opteron_SSE3", KERNELS_SSE}, {"Barcelona", KERNELS_SSE},
    {"Nano", KERNELS_SSE},       {"Bobcat", KERNELS_SSE},       {"Sandybridge", KERNELS_AVX},
    {"Bulldozer", KERNELS_AVX},  {"Piledriver", KERNELS_AVX},   {"Steamroller", KERNELS_AVX},
    {"Excavator", KERNELS_AVX},  {"Generic", KERNELS_LOOPS},
};

enum cpu_kernels kernels_of_core(const char *core)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcasecmp(core, cores[i].core) == 0)
            return (enum cpu_kernels)cores[i].kernels;
    return KERNELS_TUNED;
}
