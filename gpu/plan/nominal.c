#include "nominal.h"

/*
 * Multiply-adds that a multiprocessor does in a clock, by compute capability: CUDA C++ Programming
 * Guide, table "Throughput of Native Arithmetic Instructions" (32-bit and 64-bit floating-point
 * multiply-add). If tensor cores multiply matrices in double precision, which cuBLAS uses, their
 * rate: the white papers of A100 (64), H100 (128) and Blackwell (64). 10.3 is B300, which has
 * hardly any double precision left. In integers, TF32 and bfloat16: dense rates of the white papers
 * of A100, GA102, Ada, H100 and RTX Blackwell, and of the data sheet of B200.
 */
static const struct {
    int major, minor; /* -1: all others of the major version */
    double single_precision, double_precision;
    /* By tensor cores; integers of 8 bits; bfloat16 where cuBLAS has bf16x9; 0: none, or unknown */
    double integers, tf32, bfloat16;
} capabilities[] = {
    {5, -1, 128, 4, 0, 0, 0},           {6, 0, 64, 32, 0, 0, 0},
    {6, -1, 128, 4, 0, 0, 0},           {7, 5, 64, 2, 0, 0, 0},
    {7, -1, 64, 32, 0, 0, 0},           {8, 0, 64, 64, 2048, 512, 0},
    {8, -1, 128, 2, 1024, 128, 0},      {9, -1, 128, 128, 4096, 1024, 0},
    {10, 0, 128, 64, 8192, 2048, 4096}, {10, -1, 128, 2, 0, 2048, 4096},
    {11, -1, 128, 2, 0, 0, 0},          {12, -1, 128, 2, 1024, 128, 0},
};

struct per_clock {
    double native[2], integers, tf32, bfloat16;
};

/* Believes the driver's ratio if the capability is not in the table, or if it makes double
 * precision far slower: cards for restricted markets have the capability of H100, and a
 * sixty-fourth of its double precision. */
static struct per_clock multiply_adds(const struct nominal_attributes *a)
{
    int ratio = a->single_to_double;
    struct per_clock adds = {.native = {128, ratio > 0 ? 128.0 / ratio : 2}};
    for (unsigned i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        if (capabilities[i].major == a->major &&
            (capabilities[i].minor == a->minor || capabilities[i].minor < 0)) {
            adds = (struct per_clock){
                {capabilities[i].single_precision, capabilities[i].double_precision},
                capabilities[i].integers,
                capabilities[i].tf32,
                capabilities[i].bfloat16};
            if (ratio >= 16 && adds.native[0] / ratio < adds.native[1])
                adds.native[1] = adds.native[0] / ratio;
            break;
        }
    return adds;
}

/* Emulation by fixed point multiplies 8 parts of 8 bits each, those that count: 36 products. (With
 * the conversions, 13.2 times as fast as native precision on an RTX PRO 6000, arXiv 2511.13778; the
 * 36 products alone would be 14.2 times as fast.) */
void nominal_gains(double gain[GPU_PRECISIONS], const double native[2], double integers,
                   double tf32, double bfloat16)
{
    gain[GPU_NATIVE] = 1;
    gain[GPU_EMULATED] = integers / 36 / native[1];
    gain[GPU_TF32] = tf32 / native[0];
    gain[GPU_BF16X9] = bfloat16 / 9 / native[0];
    for (int i = 0; i < GPU_PRECISIONS; i++)
        if (!(gain[i] > 1)) /* cuBLAS computes in native precision where that is faster */
            gain[i] = 1;
}

struct nominal_rates nominal_rates(const struct nominal_attributes *a)
{
    const double slow_khz = 1.2e6, slow_gbps = 8; /* a clock; memory's, for each multiprocessor */
    const double bus_gbps = 10, own_gbps = 15;    /* of a thread: over PCIe; in one memory */
    /* By many threads, of 16 lanes of PCIe 3, 4 and 5: staged copies reach 85 % of what pinned ones
     * do (docs/measurements). */
    const double pcie3_gbps = 10, pcie4_gbps = 21, pcie5_gbps = NOMINAL_LINK_GBPS;
    double processors = a->processors > 0 ? a->processors : 16;
    double clock_khz = a->clock_khz > 0 ? a->clock_khz : slow_khz;
    const struct per_clock adds = multiply_adds(a);
    struct nominal_rates rates;
    for (int i = 0; i < 2; i++)
        rates.gflops[i] = 2e-6 * clock_khz * adds.native[i] * processors;
    nominal_gains(rates.gain, adds.native, adds.integers, adds.tf32, adds.bfloat16);
    rates.memory_gbps = 2e-6 * a->memory_clock_khz * a->bus_bits / 8; /* twice a clock */
    if (!(rates.memory_gbps > 0))
        rates.memory_gbps = slow_gbps * processors;
    rates.copy_gbps = bus_gbps;
    rates.link_gbps = a->major >= 9 ? pcie5_gbps : a->major == 8 ? pcie4_gbps : pcie3_gbps;
    if (a->integrated) /* each byte crosses the memory four times: it is packed, and copied */
        rates.link_gbps = rates.copy_gbps =
            rates.memory_gbps / 4 < own_gbps ? rates.memory_gbps / 4 : own_gbps;
    rates.place_gbps = !a->host_page_tables ? 0
                       : a->integrated      ? rates.memory_gbps
                                            : NOMINAL_C2C_GBPS;
    return rates;
}
