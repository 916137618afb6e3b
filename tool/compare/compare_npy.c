/*
 * Compares arrays as NumPy saves them (.npy, versions 1 to 3): element by element, in any order of
 * axes and bytes. The files are mapped, so that they need not fit into memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum { DIMENSIONS_MAX = 64 };

struct npy {
    struct compared_array array;
    const char *data;
    char kind;    /* f, i, u, c, b: as in NumPy's type strings */
    size_t item;  /* bytes of an element */
    bool swapped; /* numbers have the other byte order */
    bool fortran; /* the first axis varies fastest */
    int dimensions;
    size_t shape[DIMENSIONS_MAX];
};

/* ---- The header: a dictionary in Python's notation ---- */

/* Skips blanks, then this text. False if another one is there. */
static bool skip(const char **at, const char *text)
{
    const size_t length = strlen(text);
    *at += strspn(*at, " \t\n");
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Reads a string in quotes, which has no escapes. */
static bool read_string(const char **at, char *string, size_t size)
{
    const char *quote = skip(at, "'") ? "'" : "\"";
    if (*quote == '"' && !skip(at, quote))
        return false;
    const size_t length = strcspn(*at, quote);
    if (!(*at)[length] || length >= size)
        return false;
    memcpy(string, *at, length);
    string[length] = 0;
    *at += length + 1;
    return true;
}

static bool read_shape(const char **at, struct npy *npy)
{
    if (!skip(at, "("))
        return false;
    npy->array.count = 1;
    while (!skip(at, ")")) {
        char *end;
        if (**at < '0' || **at > '9' || npy->dimensions == DIMENSIONS_MAX)
            return false;
        const size_t n = strtoull(*at, &end, 10);
        *at = end + (*end == 'L'); /* Python 2's long integers */
        npy->shape[npy->dimensions++] = n;
        if (__builtin_mul_overflow(npy->array.count, n, &npy->array.count) ||
            (!skip(at, ",") && **at != ')'))
            return false;
    }
    return true;
}

static bool read_header(const char *at, struct npy *npy, char type[16])
{
    bool has_type = false, has_order = false, has_shape = false;
    if (!skip(&at, "{"))
        return false;
    while (!skip(&at, "}")) {
        char key[32];
        if (!read_string(&at, key, sizeof key) || !skip(&at, ":"))
            return false;
        if (strcmp(key, "descr") == 0) {
            if (skip(&at, "[")) { /* several fields: read_type() refuses this type */
                strcpy(type, "[...]");
                return true;
            }
            has_type = read_string(&at, type, 16);
        } else if (strcmp(key, "fortran_order") == 0) {
            npy->fortran = skip(&at, "True");
            has_order = npy->fortran || skip(&at, "False");
        } else if (strcmp(key, "shape") == 0) {
            has_shape = npy->dimensions == 0 && read_shape(&at, npy);
        } else {
            return false;
        }
        skip(&at, ",");
    }
    return has_type && has_order && has_shape;
}

/* Reads a type such as "<f8": byte order, kind, bytes. */
static bool read_type(struct npy *npy, const char *type)
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
    npy->swapped = type[0] == '>';
    npy->kind = type[1];
    npy->item = (size_t)atoi(type + 2);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int j = 0; j < 5 && known[i].items[j]; j++)
            if (known[i].kind == npy->kind && known[i].items[j] == npy->item)
                return true;
    return false;
}

static struct float_format precision_of(const struct npy *npy)
{
    const size_t item = npy->kind == 'c' ? npy->item / 2 : npy->item;
    return item == 2    ? precision_half
           : item == 4  ? precision_single
           : item == 16 ? precision_extended
                        : precision_double;
}

/* Appends "1, 2, 3" and an end. */
static void print_axes(char *at, const struct npy *npy, const size_t *axes, const char *end)
{
    for (int d = 0; d < npy->dimensions; d++)
        at += sprintf(at, "%s%zu", d ? ", " : "", axes[d]);
    strcpy(at, end);
}

/* ---- Elements ---- */

static long double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    long double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                        : exponent == 0 ? ldexpl(fraction, -24)
                                        : ldexpl(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* Returns a number of the array's kind that has `size` bytes. */
static long double decode_number(const struct npy *npy, const char *bytes, int size)
{
    union {
        char byte[16];
        uint64_t bits;
        uint16_t half;
        float single;
        double dual;
        long double extended;
    } x = {.byte = ""};
    const int unused = 64 - 8 * size;
    for (int i = 0; i < size; i++)
        x.byte[i] = bytes[npy->swapped ? size - 1 - i : i];
    if (npy->kind == 'i')
        return (long double)((int64_t)(x.bits << unused) >> unused);
    if (npy->kind == 'u' || npy->kind == 'b')
        return (long double)x.bits;
    return size == 2   ? half_value(x.half)
           : size == 4 ? (long double)x.single
           : size == 8 ? (long double)x.dual
                       : x.extended;
}

/* Returns the index of the i-th element in the file. */
static void index_of_element(size_t index[DIMENSIONS_MAX], const struct npy *npy, size_t i)
{
    for (int d = 0; d < npy->dimensions; d++) {
        int axis = npy->fortran ? d : npy->dimensions - 1 - d;
        index[axis] = i % npy->shape[axis];
        i /= npy->shape[axis];
    }
}

/* Returns the place in the file of the element that is the i-th in the other file. */
static size_t same_place(const struct npy *npy, const struct npy *other, size_t i)
{
    size_t index[DIMENSIONS_MAX], place = 0;
    if (npy->fortran == other->fortran)
        return i;
    index_of_element(index, other, i);
    for (int d = 0; d < npy->dimensions; d++) {
        int axis = npy->fortran ? npy->dimensions - 1 - d : d;
        place = place * npy->shape[axis] + index[axis];
    }
    return place;
}

static void element_at(const struct compared_array *array, const struct compared_array *like,
                       size_t i, struct array_place *place, struct number *number)
{
    const struct npy *npy = (const struct npy *)array;
    const int parts = array->zero.complex ? 2 : 1, size = (int)npy->item / parts;
    const char *bytes = npy->data + same_place(npy, (const struct npy *)like, i) * npy->item;
    *place = (struct array_place){0, i};
    *number = array->zero;
    for (int part = 0; part < parts; part++)
        number->part[part].value = decode_number(npy, bytes + part * size, size);
}

static void print_place(char *text, const struct compared_array *array,
                        const struct array_place *place)
{
    const struct npy *npy = (const struct npy *)array;
    size_t index[DIMENSIONS_MAX];
    index_of_element(index, npy, place->row);
    *text = '[';
    print_axes(text + 1, npy, index, "]");
}

/* ---- A file ---- */

bool npy_read(struct contents *contents)
{
    char type[16] = "";
    struct npy *npy = contents->read = calloc(1, sizeof *npy);
    if (!npy)
        return contents_fault(contents, "%s", strerror(errno));
    const unsigned char *bytes = (const unsigned char *)contents->bytes;
    size_t size = contents->length, start = 0, length = 0, wanted;
    if (size >= 2 && memcmp(bytes, "PK", 2) == 0)
        return contents_fault(contents, "an archive (.npz); allowed: single arrays (.npy)");
    if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return contents_fault(contents, "not a .npy file: it does not begin as one");
    if (bytes[6] < 1 || bytes[6] > 3)
        return contents_fault(contents, "version %d of .npy; allowed: 1, 2, 3", bytes[6]);
    start = bytes[6] == 1 ? 10 : 12;
    length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return contents_fault(contents, "cut short within its header");
    char *header = strndup(contents->bytes + start, length);
    bool good = header && read_header(header, npy, type);
    free(header);
    if (!good)
        return contents_fault(contents, "its header is damaged");
    if (!read_type(npy, type))
        return contents_fault(
            contents,
            "elements of type %s; allowed: f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 "
            "u2 u4 u8 b1",
            type);
    npy->data = contents->bytes + start + length;
    if (__builtin_mul_overflow(npy->array.count, npy->item, &wanted) ||
        wanted != size - start - length)
        return contents_fault(contents, "%zu bytes of data, where %zu elements need %zu",
                              size - start - length, npy->array.count,
                              npy->array.count * npy->item);
    npy->array.precision = precision_of(npy);
    npy->array.zero.complex = npy->kind == 'c';
    npy->array.zero.integer = npy->kind != 'c' && npy->kind != 'f';
    npy->array.at = element_at;
    npy->array.print = print_place;
    print_axes(npy->array.shape + sprintf(npy->array.shape, "%c%zu (", npy->kind, npy->item), npy,
               npy->shape, ")");
    return true;
}
