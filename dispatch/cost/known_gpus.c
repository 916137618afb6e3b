#include "known_gpus.h"

#include <string.h>

#include "base/text/text.h"
#include "gpu/plan/nominal.h"

/*
 * NVIDIA's data sheets and white papers: dense, no sparsity; double precision by tensor cores if
 * there are any (cuBLAS uses them), single precision without (TF32 is not the caller's precision).
 * Copies staged by one thread: PCIe 3 about 8; PCIe 4 and 5 10, the limit of the thread;
 * NVLink-C2C, and a memory that GPU and CPU share (GB10 is DGX Spark's, Thor and Orin are Jetsons),
 * 15. Of these, Orin alone does not use the host's page tables (NVIDIA's blog on CUDA 13.0 for
 * Jetson Thor).
 */
const struct known_gpu known_gpus[] = {
    /* name, {single, double}, {integers, TF32, bfloat16 for bf16x9}, memory GB/s, GB, up, down, in
     * place, integrated */
    {"GB300", {80, 1.3}, {0, 1250, 2500}, 8000, 279, 15, 15, NOMINAL_C2C_GBPS, false},
    {"B300", {75, 1.3}, {0, 1125, 2250}, 8000, 270, 10, 10, 0, false},
    {"GB200", {80, 40}, {5000, 1250, 2500}, 8000, 186, 15, 15, NOMINAL_C2C_GBPS, false},
    {"B200", {75, 37}, {4500, 1125, 2250}, 7700, 180, 10, 10, 0, false},
    {"GH200", {67, 67}, {1979, 494, 0}, 4000, 96, 15, 15, NOMINAL_C2C_GBPS, false},
    {"H200 NVL", {60, 60}, {1670, 417, 0}, 4800, 141, 10, 10, 0, false},
    {"H200", {67, 67}, {1979, 494, 0}, 4800, 141, 10, 10, 0, false},
    {"H100 NVL", {60, 60}, {1670, 417, 0}, 3900, 94, 10, 10, 0, false},
    {"H100 PCIe", {51, 51}, {1513, 378, 0}, 2000, 80, 10, 10, 0, false},
    {"H100", {67, 67}, {1979, 494, 0}, 3350, 80, 10, 10, 0, false},
    {"H800", {67, 1}, {1979, 494, 0}, 3350, 80, 10, 10, 0, false},
    {"H20", {44, 1}, {296, 74, 0}, 4000, 96, 10, 10, 0, false},
    {"A100 80GB", {19.5, 19.5}, {624, 156, 0}, 1935, 80, 10, 10, 0, false},
    {"A100 40GB", {19.5, 19.5}, {624, 156, 0}, 1555, 40, 10, 10, 0, false},
    {"A100", {19.5, 19.5}, {624, 156, 0}, 1555, 40, 10, 10, 0, false},
    {"A30", {10.3, 10.3}, {330, 82, 0}, 933, 24, 10, 10, 0, false},
    {"A40", {37.4, 0.584}, {299, 74.8, 0}, 696, 48, 10, 10, 0, false},
    {"A10", {31.2, 0.487}, {250, 62.5, 0}, 600, 24, 10, 10, 0, false},
    {"L40S", {91.6, 1.43}, {733, 183, 0}, 864, 48, 10, 10, 0, false},
    {"L40", {90.5, 1.41}, {362, 90.5, 0}, 864, 48, 10, 10, 0, false},
    {"L4", {30.3, 0.473}, {242, 60, 0}, 300, 24, 10, 10, 0, false},
    {"V100 PCIe", {14, 7}, {0, 0, 0}, 900, 16, 8, 8, 0, false},
    {"V100", {15.7, 7.8}, {0, 0, 0}, 900, 16, 8, 8, 0, false},
    {"P100 PCIe", {9.3, 4.7}, {0, 0, 0}, 732, 16, 8, 8, 0, false},
    {"P100", {10.6, 5.3}, {0, 0, 0}, 732, 16, 8, 8, 0, false},
    {"T4", {8.1, 0.253}, {0, 0, 0}, 320, 16, 8, 8, 0, false},
    {"RTX 6000 Ada", {91.1, 1.42}, {728, 182, 0}, 960, 48, 10, 10, 0, false},
    {"RTX PRO 6000", {125, 1.95}, {1000, 252, 0}, 1792, 96, 10, 10, 0, false},
    {"RTX A6000", {38.7, 0.605}, {310, 77.4, 0}, 768, 48, 10, 10, 0, false},
    {"RTX 5090", {104.8, 1.64}, {838, 104.8, 0}, 1792, 32, 10, 10, 0, false},
    {"RTX 4090", {82.6, 1.29}, {661, 82.6, 0}, 1008, 24, 10, 10, 0, false},
    {"RTX 3090", {35.6, 0.556}, {284, 35.6, 0}, 936, 24, 10, 10, 0, false},
    {"GB10", {31, 0.484}, {0, 0, 0}, 273, 128, 15, 15, 273, true},
    {"Thor", {8.06, 0.126}, {0, 0, 0}, 273, 128, 15, 15, 273, true},
    {"Orin", {5.32, 0.0831}, {0, 0, 0}, 204.8, 64, 15, 15, 0, true},
    {"", {0, 0}, {0, 0, 0}, 0, 0, 0, 0, 0, false},
};

/* Letters and digits; "A100-SXM4-40GB" is three words. */
static bool is_part(char c)
{
    c = text_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Finds the next word and moves *text behind it. Returns its length, 0 at the end. */
static size_t next_word(const char **text, const char **word)
{
    while (**text && !is_part(**text))
        (*text)++;
    *word = *text;
    while (is_part(**text))
        (*text)++;
    return (size_t)(*text - *word);
}

static bool has_word(const char *text, const char *word, size_t length)
{
    const char *there;
    size_t n;
    while ((n = next_word(&text, &there)) > 0) {
        size_t i = 0;
        while (i < n && i < length && text_lower(there[i]) == text_lower(word[i]))
            i++;
        if (i == n && i == length)
            return true;
    }
    return false;
}

/* Returns how many words a text has, or 0 if one of them is not in the other. */
static int words_in(const char *text, const char *other)
{
    const char *word;
    size_t n;
    int words = 0;
    while ((n = next_word(&text, &word)) > 0) {
        if (!has_word(other, word, n))
            return 0;
        words++;
    }
    return words;
}

const struct known_gpu *known_gpu_find(const char *name)
{
    const struct known_gpu *best = NULL;
    int most = 0;
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++) {
        int words = words_in(gpu->name, name);
        if (words > most) {
            most = words;
            best = gpu;
        }
    }
    return best;
}

/* ---- Whole cards and instances ---- */

/* Returns the number in "80GB", "480GB", "144G"; 0 for another word. */
static double gigabytes(const char *word, size_t length)
{
    double value = 0;
    size_t i = 0;
    for (; i < length && word[i] >= '0' && word[i] <= '9'; i++)
        value = 10 * value + (word[i] - '0');
    bool unit = (length == i + 1 || (length == i + 2 && text_lower(word[i + 1]) == 'b')) &&
                text_lower(word[i]) == 'g';
    return i > 0 && unit ? value : 0;
}

/* Words for makers, mounts and editions, which change little. */
static bool is_decoration(const char *word, size_t length)
{
    static const char words[] =
        "NVIDIA Tesla GeForce SXM SXM2 SXM3 SXM4 SXM5 SXM6 PCIe HBM2 HBM2e HBM3 HBM3e "
        "AC DGXS nvgpu Generation Blackwell Workstation Server Edition";
    return has_word(words, word, length) || gigabytes(word, length) > 0;
}

/* Words for machines and variants, whose figures are only about the card's. */
static bool is_variant(const char *word, size_t length)
{
    static const char words[] = "Jetson AGX DGX HGX NVL FHHL LS H Max Q 3e PG506 PG509 200";
    return has_word(words, word, length);
}

const struct known_gpu *known_gpu_whole(const char *name)
{
    const struct known_gpu *gpu = known_gpu_find(name);
    const char *word;
    size_t length;
    while (gpu && (length = next_word(&name, &word)) > 0)
        if (!has_word(gpu->name, word, length) && !is_decoration(word, length))
            gpu = NULL;
    return gpu;
}

/* Returns the number of a word of a digit and this letter, which a point follows: "3g" in
 * "1c.3g.40gb"; 0: it is none. */
static int slices_of(const char *word, size_t length, char letter)
{
    const bool is = length == 2 && word[0] >= '0' && word[0] <= '9' &&
                    text_lower(word[1]) == letter && word[2] == '.';
    return is ? word[0] - '0' : 0;
}

const char *known_gpu_fault(const char *name)
{
    static const char no_instance[] =
        "is no whole name of a MIG instance, such as H200 MIG 1g.18gb",
                      options[] = "me gfx all"; /* of a profile: "1g.10gb+me" */
    const struct known_gpu *gpu = known_gpu_find(name);
    const bool mig = has_word(name, "MIG", 3);
    bool profile = false;
    const char *word;
    size_t length;
    while (gpu && (length = next_word(&name, &word)) > 0) {
        if (slices_of(word, length, 'g')) {
            const int parts = slices_of(word, length, 'g');
            length = next_word(&name, &word);
            profile = parts <= 7 && gigabytes(word, length) > 0;
            if (!profile)
                return no_instance;
        } else if (!has_word(gpu->name, word, length) && !is_decoration(word, length) &&
                   !is_variant(word, length) &&
                   !(mig && (has_word("MIG", word, length) || has_word(options, word, length) ||
                             slices_of(word, length, 'c'))))
            return mig ? no_instance : "has words that belong to no known GPU";
    }
    return mig == profile ? NULL : no_instance;
}

/* A profile is "3g.71gb": three of seven parts of the multiprocessors, after the cut has cost about
 * an eighth of them, and a memory of its own, with its share of the bus. */
struct known_gpu known_gpu_slice(const struct known_gpu *card, const char *name)
{
    struct known_gpu slice = *card;
    const char *word;
    size_t length;
    if (!has_word(name, "MIG", 3))
        return slice;
    while ((length = next_word(&name, &word)) > 0) {
        double parts = length == 2 && text_lower(word[1]) == 'g' ? gigabytes(word, length) : 0;
        if (!(parts > 0) || *name != '.')
            continue;
        double share = parts < 7 ? parts / 8 : 1;
        for (int i = 0; i < 2; i++)
            slice.tflops[i] *= share;
        for (int i = 0; i < 3; i++)
            slice.tensor[i] *= share;
        length = next_word(&name, &word);
        double memory = gigabytes(word, length);
        if (memory > 0 && memory < card->memory_gb) {
            slice.memory_gbps *= memory / card->memory_gb;
            slice.memory_gb = memory;
        }
    }
    return slice;
}
