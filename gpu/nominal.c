#include "nominal.h"

/*
 * Multiply-adds that a multiprocessor does in a clock, by compute capability: CUDA C++ Programming Guide, table
 * "Throughput of Native Arithmetic Instructions" (32-bit and 64-bit floating-point multiply-add). If tensor cores
 * multiply matrices in double precision, which cuBLAS uses, their rate: the white papers of A100 (64), H100 (128) and
 * Blackwell (64). 10.3 is B300, which has hardly any double precision left.
 */
static const struct {
    int major, minor; /* -1: all others of the major version */
    double single_precision, double_precision;
} capabilities[] = {
    {5, -1, 128, 4},  {6, 0, 64, 32},   {6, -1, 128, 4},  {7, 5, 64, 2},
    {7, -1, 64, 32},  {8, 0, 64, 64},   {8, -1, 128, 2},  {9, -1, 128, 128},
    {10, 0, 128, 64}, {10, -1, 128, 2}, {11, -1, 128, 2}, {12, -1, 128, 2},
};

/* Believes the driver's ratio if the capability is not in the table, or if it makes double precision far slower: cards for
 * restricted markets have the capability of H100, and a sixty-fourth of its double precision. */
static void multiply_adds(const struct nominal_attributes *a, double per_clock[2])
{
    int ratio = a->single_to_double;
    per_clock[0] = 128;
    per_clock[1] = ratio > 0 ? 128.0 / ratio : 2;
    for (unsigned i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        if (capabilities[i].major == a->major &&
            (capabilities[i].minor == a->minor || capabilities[i].minor < 0)) {
            per_clock[0] = capabilities[i].single_precision;
            per_clock[1] = capabilities[i].double_precision;
            if (ratio >= 16 && per_clock[0] / ratio < per_clock[1])
                per_clock[1] = per_clock[0] / ratio;
            return;
        }
}

struct nominal_rates nominal_rates(const struct nominal_attributes *a)
{
    const double slow_khz = 1.2e6, slow_gbps = 8; /* a clock; memory's, for each multiprocessor */
    const double bus_gbps = 10, own_gbps = 15;    /* of a thread: over PCIe; in one memory */
    double processors = a->processors > 0 ? a->processors : 16;
    double clock_khz = a->clock_khz > 0 ? a->clock_khz : slow_khz;
    double per_clock[2];
    struct nominal_rates rates;
    multiply_adds(a, per_clock);
    for (int i = 0; i < 2; i++)
        rates.gflops[i] = 2e-6 * clock_khz * per_clock[i] * processors;
    rates.memory_gbps = 2e-6 * a->memory_clock_khz * a->bus_bits / 8; /* twice a clock */
    if (!(rates.memory_gbps > 0))
        rates.memory_gbps = slow_gbps * processors;
    rates.copy_gbps = bus_gbps;
    if (a->integrated) /* each byte crosses the memory four times: it is packed, and copied */
        rates.copy_gbps = rates.memory_gbps / 4 < own_gbps ? rates.memory_gbps / 4 : own_gbps;
    return rates;
}
