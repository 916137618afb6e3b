/* Known GPUs by any name, compared with a plain version that makes lists of words; and what their
 * figures have in common. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "dispatch/cost/known_gpus.h"

/* ---- The plain version ---- */

enum { WORDS = 64 };

struct words {
    int count;
    char word[WORDS][24];
};

static struct words words_of(const char *text)
{
    struct words words = {.count = 0};
    size_t length = 0;
    for (;; text++) {
        if (isalnum((unsigned char)*text)) {
            words.word[words.count][length++] = (char)tolower((unsigned char)*text);
            continue;
        }
        words.count += length > 0;
        length = 0;
        if (!*text)
            return words;
    }
}

static bool has(const struct words *words, const char *word)
{
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->word[i], word) == 0)
            return true;
    return false;
}

/* The first with the most words, all of which are in the name. */
static const struct known_gpu *plain_find(const char *name)
{
    const struct words said = words_of(name);
    const struct known_gpu *best = NULL;
    int most = 0;
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++) {
        const struct words its = words_of(gpu->name);
        bool all = true;
        for (int i = 0; i < its.count; i++)
            all = all && has(&said, its.word[i]);
        if (all && its.count > most) {
            most = its.count;
            best = gpu;
        }
    }
    return best;
}

/* "80gb", "144g" */
static bool is_memory(const char *word)
{
    const size_t digits = strspn(word, "0123456789");
    return digits > 0 && strtol(word, NULL, 10) > 0 &&
           (strcmp(word + digits, "g") == 0 || strcmp(word + digits, "gb") == 0);
}

static const char decorations[] = "nvidia tesla geforce sxm sxm2 sxm3 sxm4 sxm5 sxm6 pcie hbm2 "
                                  "hbm2e hbm3 hbm3e ac dgxs nvgpu generation "
                                  "blackwell workstation server edition";
static const char others[] =
    "ti super laptop gpu d mig 1g 5g a b z 0 9 q max grid 10c a10g h1 x y Z";

/* All other words of a whole card's name say nothing of what it does. */
static const struct known_gpu *plain_whole(const char *name)
{
    const struct known_gpu *const gpu = plain_find(name);
    const struct words said = words_of(name), plain = words_of(decorations);
    if (!gpu)
        return NULL;
    const struct words its = words_of(gpu->name);
    for (int i = 0; i < said.count; i++)
        if (!has(&its, said.word[i]) && !has(&plain, said.word[i]) && !is_memory(said.word[i]))
            return NULL;
    return gpu;
}

/* ---- Names ---- */

static void add_word(char *name, const char *word)
{
    static const char *const between[] = {" ", "-", "  ", ".", "/", "+",
                                          "_", "@", "[",  "`", "{", ":"};
    strcat(name, *name || rand() % 8 == 0 ? between[rand() % 12] : "");
    for (; *word; word++) {
        const char c[] = {(char)(rand() % 3   ? *word
                                 : rand() % 2 ? toupper(*word)
                                              : tolower(*word)),
                          0};
        strcat(name, c);
    }
}

static void add_one_of(char *name, const struct words *words)
{
    add_word(name, words->word[rand() % words->count]);
}

static int count_known(void)
{
    int count = 0;
    while (known_gpus[count].name[0])
        count++;
    return count;
}

static void any_names(void **state)
{
    const struct words plain = words_of(decorations), odd = words_of(others);
    const int count = count_known();
    int whole = 0, part = 0, unknown = 0;
    (void)state;
    srand(2);
    for (int n = 0; n < 20000; n++) {
        char name[1000] = "";
        const struct words its = words_of(known_gpus[rand() % count].name);
        if (rand() % 3)
            add_one_of(name, &plain);
        for (int i = 0; i < its.count; i++)
            if (rand() % 12)
                add_word(name, its.word[i]);
        for (int more = rand() % 3; more > 0; more--) {
            char memory[24];
            snprintf(memory, sizeof memory, "%d%s", rand() % 500,
                     rand() % 2   ? "gb"
                     : rand() % 4 ? "g"
                                  : "gib");
            if (rand() % 2)
                add_one_of(name, rand() % 4 ? &plain : &odd);
            else
                add_word(name, memory);
        }
        if (rand() % 4 == 0)
            strcat(name, rand() % 2 ? " " : ")");
        const struct known_gpu *const found = known_gpu_find(name);
        if (found != plain_find(name) || known_gpu_whole(name) != plain_whole(name))
            fail_msg("\"%s\" is %s", name, found ? found->name : "not known");
        whole += known_gpu_whole(name) != NULL;
        part += found && !known_gpu_whole(name);
        unknown += !found;
    }
    assert_true(whole > 5000 && part > 2000 && unknown > 500);
}

/* Variants of a card count as the card where the user asks for it, not where CUDA says what there
 * is. */
static void variants_for_the_user(void **state)
{
    static const char *const variants[] = {
        "Jetson AGX Orin", "Jetson Thor", "DGX H100", "HGX H200",  "A10 LS",    "A100 FHHL",
        "H200 NVL H",      "L40S Max-Q",  "B200 HGX", "GH200 200", "A100 PG506"};
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        assert_null(known_gpu_fault(variants[i]));
        assert_non_null(known_gpu_find(variants[i]));
    }
    assert_null(known_gpu_whole("DGX H100"));
    assert_null(known_gpu_whole("Jetson AGX Orin"));
}

/* ---- Instances ---- */

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * fabs(b)))
        fail_msg("%.9g is not %.9g", a, b);
}

/* So many eighths of the multiprocessors, but all for seven; and the bus by the memory, which is
 * not more than the card's. */
static void any_instance(void **state)
{
    static const char *const tails[] = {"g.%dgb", "G.%dGB", "g.%dg", "g.%dgb+me"};
    (void)state;
    srand(4);
    for (const struct known_gpu *card = known_gpus; card->name[0]; card++)
        for (int parts = 1; parts <= 7; parts++)
            for (int n = 0; n < 8; n++) {
                char name[200], tail[50];
                const int memory = 1 + rand() % 150;
                snprintf(tail, sizeof tail, tails[n % 4], memory);
                snprintf(name, sizeof name, "NVIDIA %s %s %d%s", card->name, n % 2 ? "MIG" : "mig",
                         parts, tail);
                const struct known_gpu slice = known_gpu_slice(card, name);
                const double share = parts == 7 ? 1 : parts / 8.0;
                const bool less = memory < card->memory_gb;
                for (int i = 0; i < 2; i++)
                    assert_near(slice.tflops[i], share * card->tflops[i]);
                for (int i = 0; i < 3; i++)
                    assert_near(slice.tensor[i], share * card->tensor[i]);
                assert_near(slice.memory_gb, less ? memory : card->memory_gb);
                assert_near(slice.memory_gbps,
                            (less ? memory / card->memory_gb : 1) * card->memory_gbps);
                assert_true(slice.up_gbps == card->up_gbps && slice.down_gbps == card->down_gbps &&
                            slice.place_gbps == card->place_gbps &&
                            slice.integrated == card->integrated &&
                            strcmp(slice.name, card->name) == 0);
            }
}

/* Without MIG, or without a profile, the figures are the card's. */
static void no_instance(void **state)
{
    static const char *const names[] = {"H200 1g.18gb",       "H200 MIG",      "H200 MIG 1g",
                                        "H200 MIG 1g 18gb",   "H200 MIG 18gb", "H200 MIG g.18gb",
                                        "MIGHTY H200 1g.18gb"};
    const struct known_gpu *const card = known_gpu_find("H200");
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct known_gpu slice = known_gpu_slice(card, names[i]);
        assert_true(slice.tflops[0] == card->tflops[0] && slice.tflops[1] == card->tflops[1] &&
                    slice.tensor[0] == card->tensor[0] && slice.memory_gb == card->memory_gb &&
                    slice.memory_gbps == card->memory_gbps);
    }
}

/* ---- Faults ---- */

static void faults_say_what_is_wrong(void **state)
{
    static const char *const profiles[] = {
        "H100 MIG",         "H100 MIG 8g.80gb",  "H100 MIG 1g.0gb",   "H100 1g.10gb",
        "H100 MIG 1x.10gb", "H100 MIG 10g.10gb", "H100 MIG 1g 10gb x"};
    static const char *const words[] = {"H100 foo", "H100 me", "H100 all",
                                        "H100 1c",  "H100 7",  "H100 zz"};
    static const char *const good[] = {"H100 MIG 1c.2g.20gb",  "H100 MIG 7g.80gb",
                                       "H100 MIG 1g.10gb+gfx", "H100 MIG 1g.10gb.all",
                                       "H100 MIG 1g.10g",      "H100 MIG 1g.1gb"};
    (void)state;
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        const char *const fault = known_gpu_fault(profiles[i]);
        if (!fault || !strstr(fault, "MIG"))
            fail_msg("%s: %s", profiles[i], fault ? fault : "no fault");
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *const fault = known_gpu_fault(words[i]);
        if (!fault || !strstr(fault, "belong to no known GPU"))
            fail_msg("%s: %s", words[i], fault ? fault : "no fault");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (known_gpu_fault(good[i]))
            fail_msg("%s: %s", good[i], known_gpu_fault(good[i]));
}

/* ---- Figures ---- */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What is the same for all: a card with NVLink-C2C has it at one rate and copies by it; the host's
 * own memory serves the others that read it in place. */
static void figures(void **state)
{
    static const char *const c2c[] = {"GB300", "GB200", "GH200"},
                             *const in_place[] = {"GB10", "Thor"},
                             *const integrated[] = {"GB10", "Thor", "Orin"},
                             *const pcie3[] = {"V100 PCIe", "V100", "P100 PCIe", "P100", "T4"};
    (void)state;
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++) {
        const bool by_c2c = is_one_of(gpu->name, c2c, 3),
                   shares = is_one_of(gpu->name, integrated, 3);
        assert_true(gpu->integrated == shares);
        assert_true(gpu->place_gbps == (by_c2c                              ? 450
                                        : is_one_of(gpu->name, in_place, 2) ? gpu->memory_gbps
                                                                            : 0));
        const double staged = by_c2c || shares ? 15 : is_one_of(gpu->name, pcie3, 5) ? 8 : 10;
        assert_true(gpu->up_gbps == staged && gpu->down_gbps == staged);
        /* No tensor core computes faster in more bits. */
        assert_true(gpu->tensor[1] == 0 || gpu->tensor[1] >= gpu->tflops[0]);
        assert_true(gpu->tensor[2] == 0 || gpu->tensor[2] == 2 * gpu->tensor[1]);
        assert_true(gpu->tensor[0] == 0 || gpu->tensor[0] >= 3.9 * gpu->tensor[1]);
        assert_true(gpu->memory_gb >= 16 && gpu->memory_gb <= 279 && gpu->memory_gbps >= 200 &&
                    gpu->memory_gbps <= 8000);
    }
}

/* Returns whether a figure is `times` another one, within the rounding of their last digits. */
static bool is_times(double figure, double times, double other)
{
    return fabs(figure / (times * other) - 1) < 0.0125;
}

/* A generation's chips do everything at fixed ratios; cards that may not be sold everywhere, and
 * Blackwell Ultra, have less in double precision. */
static void ratios_of_chips(void **state)
{
    static const char *const less[] = {"GB300", "B300", "H800", "H20"};
    static const char *const geforce[] = {"RTX 5090", "RTX 4090", "RTX 3090"};
    static const char *const large[] = {"GB300",     "B300",     "GB200", "B200",
                                        "GH200",     "H200 NVL", "H200",  "H100 NVL",
                                        "H100 PCIe", "H100",     "H800",  "H20"};
    (void)state;
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++) {
        const double single = gpu->tflops[0], integers = gpu->tensor[0], tf32 = gpu->tensor[1];
        const bool same = is_times(gpu->tflops[1], 1, single),
                   half = is_times(gpu->tflops[1], 0.5, single) ||
                          is_times(gpu->tflops[1], 37 / 75.0, single);
        if (is_one_of(gpu->name, less, 4))
            assert_true(gpu->tflops[1] < 1.5);
        else if (!same && !half && strcmp(gpu->name, "T4") != 0)
            assert_true(is_times(gpu->tflops[1], 1.0 / 64, single));
        else
            assert_true(same || half || is_times(gpu->tflops[1], 1.0 / 32, single));
        if (tf32 == 0)
            continue;
        if (integers > 0)
            assert_true(is_times(integers, is_one_of(gpu->name, geforce, 3) ? 8 : 4, tf32));
        if (!is_one_of(gpu->name, large, 12))
            assert_true(is_times(tf32, 1, single) || is_times(tf32, 2, single) ||
                        is_times(tf32, 8, single));
    }
}

/* The width of a memory's bus, in bits, and what each of them brings in a second. */
static void rates_of_memories(void **state)
{
    static const struct {
        const char *name;
        double bits, gbit;
        int gigabytes;
    } cards[] = {{"RTX 5090", 512, 28, 32},      {"RTX 4090", 384, 21, 24},
                 {"RTX 3090", 384, 19.5, 24},    {"RTX PRO 6000", 512, 28, 96},
                 {"RTX 6000 Ada", 384, 20, 48},  {"RTX A6000", 384, 16, 48},
                 {"L40S", 384, 18, 48},          {"L40", 384, 18, 48},
                 {"L4", 192, 12.5, 24},          {"A40", 384, 14.5, 48},
                 {"A10", 384, 12.5, 24},         {"T4", 256, 10, 16},
                 {"Orin", 256, 6.4, 64},         {"GB10", 256, 8.533, 128},
                 {"Thor", 256, 8.533, 128},      {"A100 40GB", 5120, 2.43, 40},
                 {"A100 80GB", 5120, 3.024, 80}, {"A100", 5120, 2.43, 40},
                 {"A30", 3072, 2.43, 24},        {"V100", 4096, 1.758, 16},
                 {"V100 PCIe", 4096, 1.758, 16}, {"P100", 4096, 1.43, 16},
                 {"P100 PCIe", 4096, 1.43, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const struct known_gpu *const gpu = known_gpu_find(cards[i].name);
        assert_non_null(gpu);
        if (fabs(gpu->memory_gbps - cards[i].bits * cards[i].gbit / 8) > 0.5)
            fail_msg("%s: %g", gpu->name, gpu->memory_gbps);
        assert_true(gpu->memory_gb == cards[i].gigabytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_names),
        cmocka_unit_test(variants_for_the_user),
        cmocka_unit_test(any_instance),
        cmocka_unit_test(no_instance),
        cmocka_unit_test(faults_say_what_is_wrong),
        cmocka_unit_test(figures),
        cmocka_unit_test(ratios_of_chips),
        cmocka_unit_test(rates_of_memories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
