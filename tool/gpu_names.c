#include "gpu_names.h"

#include <stdio.h>
#include <string.h>

#include "dispatch/cost/known_gpus.h"
#include "base/text/spelling.h"
#include "base/text/text.h"

enum { NEAR_MOST = 6 };

/* ---- All names ---- */

/* Goes through the calibration's names, then through the known ones. */
struct gpu_name_walk {
    struct calibration rest;
    const struct known_gpu *known;
    bool measured;
};

static bool next(struct gpu_name_walk *walk, char name[CALIBRATION_KEY_BYTES])
{
    struct calibration_section section;
    if (walk->measured && calibration_next_gpu(&walk->rest, name, &section))
        return true;
    walk->measured = false;
    if (!walk->known->name[0])
        return false;
    snprintf(name, CALIBRATION_KEY_BYTES, "%s", walk->known++->name);
    return true;
}

void gpu_names_print(const struct calibration *file)
{
    struct gpu_name_walk walk = {*file, known_gpus, true};
    char name[CALIBRATION_KEY_BYTES];
    while (next(&walk, name))
        printf("%-24s %s\n", name, walk.measured ? "measured" : "built-in");
}

/* ---- Matching ---- */

static bool is_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Keeps letters and digits alone, in lower case, without the maker's words in front. */
static void squeeze(char squeezed[CALIBRATION_KEY_BYTES], const char *name)
{
    static const char *const makers[] = {"nvidia", "tesla", "geforce", "quadro"};
    size_t n = 0;
    for (; *name && n < CALIBRATION_KEY_BYTES - 1; name++) {
        char c = text_lower(*name);
        if (is_part(c))
            squeezed[n++] = c;
    }
    squeezed[n] = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        size_t length = strlen(makers[i]);
        if (strncmp(squeezed, makers[i], length) == 0 && squeezed[length])
            memmove(squeezed, squeezed + length, strlen(squeezed + length) + 1);
    }
}

enum match { MATCH_WHOLE, MATCH_PART, MATCH_NEAR };

static bool matches(enum match match, const char *given, const char *name)
{
    char squeezed[CALIBRATION_KEY_BYTES];
    squeeze(squeezed, name);
    switch (match) {
    case MATCH_WHOLE:
        return strcmp(squeezed, given) == 0;
    case MATCH_PART:
        return strstr(squeezed, given) != NULL;
    default:
        return spelling_distance(squeezed, given) <= 2;
    }
}

/* Returns how many names match, and the first of them. A name that is both measured and known
 * counts once. */
static int count_matches(enum match match, const char *given, const struct calibration *file,
                         char found[NEAR_MOST][CALIBRATION_KEY_BYTES])
{
    struct gpu_name_walk walk = {*file, known_gpus, true};
    char name[CALIBRATION_KEY_BYTES], squeezed[CALIBRATION_KEY_BYTES];
    int count = 0;
    while (next(&walk, name)) {
        if (!matches(match, given, name))
            continue;
        bool again = false;
        squeeze(squeezed, name);
        for (int i = 0; i < count && i < NEAR_MOST; i++)
            again = again || matches(MATCH_WHOLE, squeezed, found[i]);
        if (again)
            continue;
        if (count < NEAR_MOST)
            strcpy(found[count], name);
        count++;
    }
    return count;
}

static bool refuse_name(const char *given, const char *why,
                        char near[NEAR_MOST][CALIBRATION_KEY_BYTES], int count)
{
    fprintf(stderr, "accel estimate: --gpu %s %s", given, why);
    for (int i = 0; i < count && i < NEAR_MOST; i++)
        fprintf(stderr, "%s%s", i ? ", " : "; near: ", near[i]);
    fprintf(stderr, "%s; allowed: a name that `accel estimate --gpu list` prints\n",
            count > NEAR_MOST ? " ..." : "");
    return false;
}

bool gpu_name_find(char name[CALIBRATION_KEY_BYTES], const char *given,
                   const struct calibration *file)
{
    char squeezed[CALIBRATION_KEY_BYTES], found[NEAR_MOST][CALIBRATION_KEY_BYTES];
    struct calibration_section section;
    squeeze(squeezed, given);
    if (!squeezed[0])
        return refuse_name(given, "is no name", found, 0);
    if (count_matches(MATCH_WHOLE, squeezed, file, found) > 0) {
        strcpy(name, found[0]);
        return true;
    }
    /* Or it is CUDA's name, which may have more words. */
    const struct known_gpu *known = known_gpu_find(given);
    const bool measured =
        strlen(given) < CALIBRATION_KEY_BYTES && calibration_find_gpu(file, given, &section);
    const char *const fault = known && !measured ? known_gpu_fault(given) : NULL;
    if (fault) {
        strcpy(found[0], known->name);
        return refuse_name(given, fault, found, 1);
    }
    if (strlen(given) < CALIBRATION_KEY_BYTES && (known || measured)) {
        strcpy(name, given);
        return true;
    }
    int count = count_matches(MATCH_PART, squeezed, file, found);
    if (count == 1) {
        strcpy(name, found[0]);
        return true;
    }
    if (count > 1)
        return refuse_name(given, "may be several", found, count);
    return refuse_name(given, "is not known", found,
                       count_matches(MATCH_NEAR, squeezed, file, found));
}
