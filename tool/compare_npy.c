/*
 * Compares arrays as NumPy saves them (.npy, versions 1 to 3): element by element, in any order of axes and bytes. The files are
 * mapped, so that they need not fit into memory.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum { DIMENSIONS_MAX = 64, ITEM_MAX = 32 };

struct array {
    struct contents contents;
    const char *data;
    char kind;    /* f, i, u, c, b: as in NumPy's type strings */
    size_t item;  /* bytes of an element */
    bool swapped; /* numbers have the other byte order */
    bool fortran; /* the first axis varies fastest */
    int dimensions;
    size_t shape[DIMENSIONS_MAX];
    size_t count;
};

/* ---- The header: a dictionary in Python's notation ---- */

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\n");
}

static bool skip(const char **at, char c)
{
    skip_blanks(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

/* Reads a string in quotes, which has no escapes. */
static bool read_string(const char **at, char *string, size_t size)
{
    skip_blanks(at);
    char quote = **at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(*at + 1, quote);
    if (!end || (size_t)(end - *at) > size)
        return false;
    memcpy(string, *at + 1, (size_t)(end - *at - 1));
    string[end - *at - 1] = 0;
    *at = end + 1;
    return true;
}

static bool read_bool(const char **at, bool *value)
{
    skip_blanks(at);
    *value = strncmp(*at, "True", 4) == 0;
    if (!*value && strncmp(*at, "False", 5) != 0)
        return false;
    *at += *value ? 4 : 5;
    return true;
}

static bool read_shape(const char **at, struct array *array)
{
    if (!skip(at, '('))
        return false;
    array->count = 1;
    while (!skip(at, ')')) {
        char *end;
        skip_blanks(at);
        if (**at < '0' || **at > '9' || array->dimensions == DIMENSIONS_MAX)
            return false;
        unsigned long long n = strtoull(*at, &end, 10);
        *at = end + (*end == 'L'); /* Python 2's long integers */
        array->shape[array->dimensions++] = (size_t)n;
        if (__builtin_mul_overflow(array->count, (size_t)n, &array->count))
            return false;
        if (!skip(at, ',')) {
            skip_blanks(at);
            if (**at != ')')
                return false;
        }
    }
    return true;
}

static bool read_header(const char *at, struct array *array, char type[16])
{
    bool has_type = false, has_order = false, has_shape = false;
    if (!skip(&at, '{'))
        return false;
    while (!skip(&at, '}')) {
        char key[32];
        if (!read_string(&at, key, sizeof key) || !skip(&at, ':'))
            return false;
        if (strcmp(key, "descr") == 0) {
            skip_blanks(&at);
            if (*at == '[') { /* several fields: read_type() refuses this type */
                strcpy(type, "[...]");
                return true;
            }
            has_type = read_string(&at, type, 16);
        } else if (strcmp(key, "fortran_order") == 0) {
            has_order = read_bool(&at, &array->fortran);
        } else if (strcmp(key, "shape") == 0) {
            has_shape = array->dimensions == 0 && read_shape(&at, array);
        } else {
            return false;
        }
        skip(&at, ',');
    }
    return has_type && has_order && has_shape;
}

/* Reads a type such as "<f8": byte order, kind, bytes. */
static bool read_type(struct array *array, const char *type)
{
    static const struct {
        char kind;
        size_t items[5];
    } known[] = {{'f', {2, 4, 8, 16}},
                 {'c', {8, 16, 32}},
                 {'i', {1, 2, 4, 8}},
                 {'u', {1, 2, 4, 8}},
                 {'b', {1}}};
    if (!type[0] || !strchr("<>|=", type[0]) || !type[1])
        return false;
    array->swapped = type[0] == '>';
    array->kind = type[1];
    array->item = (size_t)atoi(type + 2);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int j = 0; j < 5 && known[i].items[j]; j++)
            if (known[i].kind == array->kind && known[i].items[j] == array->item)
                return true;
    return false;
}

static bool open_array(struct array *array, const struct compared *compared, enum run run)
{
    char type[16] = "";
    *array = (struct array){.count = 0};
    if (!contents_open(&array->contents, compared, run))
        return false;
    const unsigned char *bytes = (const unsigned char *)array->contents.bytes;
    size_t size = array->contents.length, start = 0, length = 0, wanted;
    if (size >= 2 && memcmp(bytes, "PK", 2) == 0)
        return compared_fault(compared, run, "an archive (.npz); allowed: single arrays (.npy)");
    if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return compared_fault(compared, run, "not a .npy file: it does not begin as one");
    if (bytes[6] < 1 || bytes[6] > 3)
        return compared_fault(compared, run, "version %d of .npy; allowed: 1, 2, 3", bytes[6]);
    start = bytes[6] == 1 ? 10 : 12;
    length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return compared_fault(compared, run, "cut short within its header");
    char *header = strndup(array->contents.bytes + start, length);
    bool good = header && read_header(header, array, type);
    free(header);
    if (!good)
        return compared_fault(compared, run, "its header is damaged");
    if (!read_type(array, type))
        return compared_fault(
            compared, run,
            "elements of type %s; allowed: f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 "
            "u2 u4 u8 b1",
            type);
    array->data = array->contents.bytes + start + length;
    if (__builtin_mul_overflow(array->count, array->item, &wanted) ||
        wanted != size - start - length)
        return compared_fault(compared, run, "%zu bytes of data, where %zu elements need %zu",
                              size - start - length, array->count, array->count * array->item);
    return true;
}

/* ---- Elements ---- */

static long double half_value(const char *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, 2);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    long double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                        : exponent == 0 ? ldexpl(fraction, -24)
                                        : ldexpl(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

static long double real_value(const char *bytes, size_t size)
{
    float single;
    double dual;
    long double extended;
    switch (size) {
    case 2:
        return half_value(bytes);
    case 4:
        memcpy(&single, bytes, 4);
        return single;
    case 8:
        memcpy(&dual, bytes, 8);
        return dual;
    default:
        memcpy(&extended, bytes, sizeof extended);
        return extended;
    }
}

static long double integer_value(const char *bytes, size_t size, bool is_signed)
{
    uint64_t bits = 0;
    memcpy(&bits, bytes, size);
    if (!is_signed)
        return (long double)bits;
    int unused = 64 - 8 * (int)size;
    return (long double)((int64_t)(bits << unused) >> unused);
}

/* Returns a number's bytes in this machine's order: in place, or copied. */
static const char *in_order(char copy[ITEM_MAX], const struct array *array, const char *bytes,
                            size_t size)
{
    if (!array->swapped)
        return bytes;
    for (size_t i = 0; i < size; i++)
        copy[i] = bytes[size - 1 - i];
    return copy;
}

static void read_element(struct number *number, const struct array *array, size_t i)
{
    char copy[ITEM_MAX] = "";
    const char *bytes = array->data + i * array->item;
    *number = (struct number){.start = 0};
    if (array->kind == 'c') {
        size_t half = array->item / 2;
        number->complex = true;
        number->part[0].value = real_value(in_order(copy, array, bytes, half), half);
        number->part[1].value = real_value(in_order(copy, array, bytes + half, half), half);
    } else if (array->kind == 'f') {
        number->part[0].value = real_value(in_order(copy, array, bytes, array->item), array->item);
    } else {
        number->integer = true;
        number->part[0].value = integer_value(in_order(copy, array, bytes, array->item),
                                              array->item, array->kind == 'i');
    }
}

static struct precision precision_of(const struct array *array)
{
    switch (array->kind == 'c' ? array->item / 2 : array->item) {
    case 2:
        return precision_half;
    case 4:
        return precision_single;
    case 16:
        return precision_extended;
    default:
        return precision_double;
    }
}

/* ---- Places ---- */

/* Returns the index of the i-th element in the file. */
static void index_of(size_t index[DIMENSIONS_MAX], const struct array *array, size_t i)
{
    for (int d = 0; d < array->dimensions; d++) {
        int axis = array->fortran ? d : array->dimensions - 1 - d;
        index[axis] = i % array->shape[axis];
        i /= array->shape[axis];
    }
}

static size_t place_of(const size_t index[DIMENSIONS_MAX], const struct array *array)
{
    size_t place = 0;
    for (int d = 0; d < array->dimensions; d++) {
        int axis = array->fortran ? array->dimensions - 1 - d : d;
        place = place * array->shape[axis] + index[axis];
    }
    return place;
}

/* Returns the place in the other file of the array's i-th element. */
static size_t same_place(const struct array *other, const struct array *array, size_t i)
{
    size_t index[DIMENSIONS_MAX];
    if (other->fortran == array->fortran)
        return i;
    index_of(index, array, i);
    return place_of(index, other);
}

enum { PLACE_BYTES = DIMENSIONS_MAX * 24 };

/* Appends "1, 2, 3" and an end. */
static void print_axes(char *at, const struct array *array, const size_t *axes, const char *end)
{
    for (int d = 0; d < array->dimensions; d++)
        at += sprintf(at, "%s%zu", d ? ", " : "", axes[d]);
    strcpy(at, end);
}

static void print_kind(char text[PLACE_BYTES], const struct array *array)
{
    print_axes(text + sprintf(text, "%c%zu (", array->kind, array->item), array, array->shape, ")");
}

/* ---- Comparing ---- */

static bool same_kind(const struct array *a, const struct array *b)
{
    return a->kind == b->kind && a->item == b->item && a->dimensions == b->dimensions &&
           memcmp(a->shape, b->shape, (size_t)a->dimensions * sizeof *a->shape) == 0;
}

static void show_element(struct tally *tally, const struct array *array, size_t i,
                         const struct number *a, const struct number *b)
{
    size_t index[DIMENSIONS_MAX];
    char place[PLACE_BYTES] = "[";
    index_of(index, array, i);
    print_axes(place + 1, array, index, "]");
    tally_show_values(tally, place, a, b);
}

static void compare_elements(struct tally *tally, const struct array *a, const struct array *b,
                             const struct array *noise)
{
    struct number x, y, z;
    for (size_t i = 0; i < a->count; i++) {
        read_element(&x, a, i);
        read_element(&y, b, same_place(b, a, i));
        if (noise)
            read_element(&z, noise, same_place(noise, a, i));
        if (tally_number(tally, &x, &y, noise ? &z : NULL))
            show_element(tally, a, i, &x, &y);
    }
}

/* Counts arrays of different types or shapes as one difference. */
static void compare_arrays(struct tally *tally, const struct array *a, const struct array *b,
                           const struct array *noise)
{
    char x[PLACE_BYTES], y[PLACE_BYTES];
    if (same_kind(a, b)) {
        compare_elements(tally, a, b, noise && same_kind(a, noise) ? noise : NULL);
        return;
    }
    if (!tally_text(tally))
        return;
    print_kind(x, a);
    print_kind(y, b);
    tally_show(tally, "%s, %s %s", x, tally_second(tally), y);
}

bool compare_npy(struct tally *tally, const struct compared *compared)
{
    struct array array[RUNS] = {{.count = 0}};
    bool good = true;
    for (int i = 0; i < RUNS && good; i++)
        good = open_array(&array[i], compared, i);
    if (good) {
        const struct array *plain = &array[RUN_PLAIN];
        struct number number;
        tally->precision = precision_of(plain);
        for (size_t i = 0; (plain->kind == 'f' || plain->kind == 'c') && i < plain->count; i++) {
            read_element(&number, plain, i);
            tally_widen(tally, &number);
        }
        compare_arrays(tally, plain, &array[RUN_THREADS], NULL);
        tally->measures_noise = false;
        compare_arrays(tally, plain, &array[RUN_SHIM], &array[RUN_THREADS]);
    }
    for (int i = 0; i < RUNS; i++)
        contents_close(&array[i].contents);
    return good;
}
