#define _GNU_SOURCE
#include "sizes.h"

#include <stdio.h>
#include <string.h>

#include "ops/blas/abi.h"
#include "ops/op.h"
#include "reads.h"

/* ---- What one function's code tells ---- */

/* Of several arguments, all must tell the same. */
enum { DIFFERENT = -1 };

static void agree(int *told, int size)
{
    if (size)
        *told = *told == 0 || *told == size ? size : DIFFERENT;
}

static int integer_by_reference(const struct accel_read *read)
{
    return read->sizes == ACCEL_READS_4 ? 32 : read->sizes == ACCEL_READS_8 ? 64 : 0;
}

/* A compiler may keep an int in a whole register, and computes with a half of it somewhere. */
static int integer_by_value(const struct accel_read *read)
{
    return read->half == read->whole ? 0 : read->half ? 32 : 64;
}

/* A number of 16 bytes may be copied by halves. */
static int real_size(const struct accel_read *read)
{
    switch (read->sizes) {
    case ACCEL_READS_4:
        return read->end == 4 ? 4 : 0;
    case ACCEL_READS_8:
        return read->end <= 8 ? 8 : read->end == 16 ? 16 : 0;
    case ACCEL_READS_10:
        return 10;
    case ACCEL_READS_16:
        return 16;
    default:
        return 0;
    }
}

/* Both parts may be read at once: then only the size of the whole shows, which a number with
 * larger parts may have in its first one. */
static int part_size(const struct accel_read *read, bool is_double)
{
    switch (read->sizes) {
    case ACCEL_READS_4:
        return 4;
    case ACCEL_READS_8:
        return is_double ? (read->end <= 16 ? 8 : 16) : read->end > 8 ? 8 : 0;
    case ACCEL_READS_10:
        return 10;
    case ACCEL_READS_16:
        return read->end > 16 ? 16 : 0;
    default:
        return 0;
    }
}

/* ---- Functions that are no routines of the table ---- */

/* Their arguments, by their numbers in general registers: INTEGERs, and scalars of the function's
 * type by reference; of CBLAS, INTEGERs by value. */
struct helper {
    const char *name; /* with the letter of double precision */
    uint16_t integers, reals, c_integers, c_reals;
};

#define AT(i) (1u << (i))
static const struct helper helpers[] = {
    {"drotg", 0, AT(0) | AT(1), 0, AT(0) | AT(1)},
    {"dscal", AT(0) | AT(3), AT(1), AT(0) | AT(2), 0},
    {"daxpy", AT(0) | AT(3) | AT(5), AT(1), AT(0) | AT(2) | AT(4), 0},
    {"drot", AT(0) | AT(2) | AT(4), AT(5) | AT(6), AT(0) | AT(2) | AT(4), 0},
    {"zdscal", AT(0) | AT(3), AT(1), AT(0) | AT(2), 0},
    {"zdrot", AT(0) | AT(2) | AT(4), AT(5) | AT(6), 0, 0},
    {"idamax", AT(0) | AT(2), 0, AT(0) | AT(2), 0},
    {"dnrm2", AT(0) | AT(2), 0, AT(0) | AT(2), 0},
    {"ddot", AT(0) | AT(2) | AT(4), 0, AT(0) | AT(2) | AT(4), 0},
    {"dcopy", AT(0) | AT(2) | AT(4), 0, AT(0) | AT(2) | AT(4), 0},
    {"dlartg", 0, AT(0) | AT(1) | AT(2) | AT(3) | AT(4), 0, 0},
    {"dlapy2", 0, AT(0) | AT(1), 0, 0},
    {"dlarfg", AT(0) | AT(3), AT(1), 0, 0},
    {"dlaset", AT(1) | AT(2) | AT(6), AT(3) | AT(4), 0, 0},
    {"ilaver", AT(0) | AT(1) | AT(2), 0, 0, 0},
};

/* Writes a helper's name in the mangling whose isamax is `probe`, in the type of a letter. */
static bool name_helper(char name[64], const char *probe, const char *helper, bool is_double)
{
    char own[16];
    const char *at = strstr(probe, "isamax");
    if (!at)
        return false;
    snprintf(own, sizeof own, "%s", helper);
    if (!is_double) {
        char *letter = own[0] == 'd' ? own : own[1] == 'd' ? own + 1 : NULL;
        if (letter)
            *letter = 's';
        if (own[0] == 'z')
            own[0] = 'c';
    }
    return snprintf(name, 64, "%.*s%s%s", (int)(at - probe), probe, own, at + 6) < 64;
}

static void add_helper(struct accel_sizes *sizes, const struct accel_code *code,
                       const struct accel_mangling *mangling, const struct helper *helper,
                       bool is_double)
{
    struct accel_reads reads;
    char name[64];
    const bool by_value = mangling->abi == ACCEL_ABI_CBLAS;
    const uint16_t integers = by_value ? helper->c_integers : helper->integers,
                   reals = by_value ? helper->c_reals : helper->reals;
    int integer = 0, real = 0, *size = is_double ? &sizes->double_precision : &sizes->real;
    if ((sizes->integer || !integers) && (*size || !reals))
        return;
    const void *function = name_helper(name, mangling->probe, helper->name, is_double)
                               ? accel_code_function(code, name)
                               : NULL;
    if (!function || !accel_reads_of(&reads, code, function))
        return;
    for (int i = 0; i < ACCEL_READS_ARGUMENTS; i++) {
        const struct accel_read *read = &reads.argument[i];
        if (integers >> i & 1)
            agree(&integer, by_value ? integer_by_value(read) : integer_by_reference(read));
        if (reals >> i & 1)
            agree(&real, real_size(read));
    }
    if (!sizes->integer && integer > 0)
        sizes->integer = integer;
    if (!*size && real > 0)
        *size = real;
}

/* ---- Routines of the table ---- */

void accel_sizes_add_function(struct accel_sizes *sizes, const struct accel_code *code,
                              uint32_t entry, const void *function)
{
    const struct accel_routine *routine = accel_name_routine(entry);
    const bool is_double = accel_is_double(routine->dtype);
    enum blas_word word[ACCEL_READS_ARGUMENTS];
    const int words =
        blas_words(word, ACCEL_READS_ARGUMENTS, accel_name_mangling(entry)->abi, routine);
    struct accel_reads reads;
    int integer = 0, real = 0, *size = is_double ? &sizes->double_precision : &sizes->real;
    if (!accel_reads_of(&reads, code, function))
        return;
    for (int i = 0; i < words; i++) {
        const struct accel_read *read = &reads.argument[i];
        if (word[i] == BLAS_WORD_INTEGER)
            agree(&integer, integer_by_reference(read));
        else if (word[i] == BLAS_WORD_INTEGER_VALUE)
            agree(&integer, integer_by_value(read));
        else if (word[i] == BLAS_WORD_REAL)
            agree(&real, real_size(read));
        else if (word[i] == BLAS_WORD_COMPLEX)
            agree(&real, part_size(read, is_double));
    }
    if (!sizes->integer && integer > 0)
        sizes->integer = integer;
    if (!*size && real > 0)
        *size = real;
}

static bool is_done(const struct accel_sizes *sizes, const struct accel_routine *routine)
{
    return sizes->integer && accel_sizes_fit(sizes, routine) >= 0;
}

/* Other routines, of the library's own: some of them, each of which takes some tens of
 * microseconds. */
enum { OTHERS = 24 };

static void add_others(struct accel_sizes *sizes, const struct accel_code *code, uint32_t entry)
{
    const struct accel_routine *routine = accel_name_routine(entry);
    int left = OTHERS;
    for (uint32_t i = entry % accel_mangling_count;
         left > 0 && !is_done(sizes, routine) && i < accel_blas_name_count;
         i += accel_mangling_count) {
        const void *function = accel_code_function(code, accel_names[i].sibling);
        if (!function || accel_name_mangling(i)->abi != accel_name_mangling(entry)->abi)
            continue;
        accel_sizes_add_function(sizes, code, i, function);
        left--;
    }
}

void accel_sizes_add(struct accel_sizes *sizes, const struct accel_code *code, uint32_t entry,
                     const void *function)
{
    const struct accel_routine *routine = accel_name_routine(entry);
    if (function)
        accel_sizes_add_function(sizes, code, entry, function);
    /* Those of the routine's precision, then the others, for INTEGER. */
    for (int other = 0; other < 2; other++)
        for (size_t i = 0; !is_done(sizes, routine) && i < sizeof helpers / sizeof *helpers; i++)
            add_helper(sizes, code, accel_name_mangling(entry), &helpers[i],
                       accel_is_double(routine->dtype) != other);
    add_others(sizes, code, entry);
}

int accel_sizes_fit(const struct accel_sizes *sizes, const struct accel_routine *routine)
{
    const bool is_double = accel_is_double(routine->dtype);
    const int size = is_double ? sizes->double_precision : sizes->real;
    return size == 0 ? -1 : size == (is_double ? 8 : 4);
}
