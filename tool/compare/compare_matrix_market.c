/*
 * Compares Matrix Market files as matrices: entries in any order, a symmetric matrix as a triangle
 * or in full. Holds all entries in memory: 48 to 96 bytes each, twice that if a triangle is stored.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "compare.h"

enum field { FIELD_REAL, FIELD_COMPLEX, FIELD_INTEGER, FIELD_PATTERN };
enum symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN };

struct entry {
    struct array_place place; /* from 1 */
    long double re, im;
};

struct market_matrix {
    struct compared_array array;
    const struct contents *contents;
    const char *at, *end; /* the text still to be read */
    bool coordinate;
    enum field field;
    enum symmetry symmetry;
    int64_t rows, columns;
    struct entry *entry; /* array.count; after reading: by columns, each place once */
    size_t size;
};

/* ---- Reading ---- */

static long long line_of(const struct market_matrix *matrix)
{
    return contents_line(matrix->contents, (size_t)(matrix->at - matrix->contents->bytes));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies the next word. False at the end, or if the word is longer than any of such a file. */
static bool next_word(struct market_matrix *matrix, char word[NUMBER_TEXT_BYTES])
{
    size_t length = 0;
    while (matrix->at < matrix->end && is_blank(*matrix->at))
        matrix->at++;
    while (matrix->at < matrix->end && !is_blank(*matrix->at)) {
        if (length == NUMBER_TEXT_BYTES - 1)
            return false;
        word[length++] = *matrix->at++;
    }
    word[length] = 0;
    return length > 0;
}

static int choose(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcasecmp(word, names[i]) == 0)
            return i;
    return -1;
}

static bool read_banner(struct market_matrix *matrix)
{
    static const char *const layouts[] = {"array", "coordinate"};
    static const char *const fields[] = {"real", "complex", "integer", "pattern"};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
    char banner[NUMBER_TEXT_BYTES] = "", object[NUMBER_TEXT_BYTES] = "",
         word[3][NUMBER_TEXT_BYTES] = {"", "", ""};
    bool words = next_word(matrix, banner) && next_word(matrix, object);
    for (int i = 0; i < 3 && words; i++)
        words = next_word(matrix, word[i]);
    if (!words || strcasecmp(banner, "%%MatrixMarket") != 0 || strcasecmp(object, "matrix") != 0)
        return contents_fault(matrix->contents,
                              "not a Matrix Market file: allowed: %%%%MatrixMarket matrix ...");
    int layout = choose(word[0], layouts, 2), field = choose(word[1], fields, 4),
        symmetry = choose(word[2], symmetries, 4);
    if (layout < 0 || field < 0 || symmetry < 0 || (layout == 0 && field == FIELD_PATTERN))
        return contents_fault(matrix->contents,
                              "line 1: %s %s %s; allowed: coordinate or array (without pattern), "
                              "real, complex, integer or pattern, general, symmetric, "
                              "skew-symmetric or hermitian",
                              word[0], word[1], word[2]);
    matrix->coordinate = layout == 1;
    matrix->field = (enum field)field;
    matrix->symmetry = (enum symmetry)symmetry;
    return true;
}

static void skip_comments(struct market_matrix *matrix)
{
    for (;;) {
        while (matrix->at < matrix->end && is_blank(*matrix->at))
            matrix->at++;
        if (matrix->at == matrix->end || *matrix->at != '%')
            return;
        while (matrix->at < matrix->end && *matrix->at != '\n')
            matrix->at++;
    }
}

static bool damaged(const struct market_matrix *matrix, const char *wanted)
{
    return matrix->at == matrix->end && is_blank(matrix->end[-1])
               ? contents_fault(matrix->contents, "cut short: %s is missing", wanted)
               : contents_fault(matrix->contents, "line %lld: %s is expected here", line_of(matrix),
                                wanted);
}

static bool read_integer(struct market_matrix *matrix, int64_t *value, int64_t least, int64_t most,
                         const char *wanted)
{
    char word[NUMBER_TEXT_BYTES], *end;
    if (!next_word(matrix, word))
        return damaged(matrix, wanted);
    errno = 0;
    *value = strtoll(word, &end, 10);
    if (*end || errno || *value < least || *value > most)
        return damaged(matrix, wanted);
    return true;
}

static bool read_value(struct market_matrix *matrix, long double *value)
{
    char word[NUMBER_TEXT_BYTES];
    struct number number;
    if (!next_word(matrix, word) || !number_is(word, strlen(word), &number) || number.complex ||
        (matrix->field == FIELD_INTEGER && !number.integer))
        return damaged(matrix, matrix->field == FIELD_INTEGER ? "an integer" : "a number");
    *value = number.part[0].value;
    return true;
}

static bool add_entry(struct market_matrix *matrix, struct entry entry)
{
    if (matrix->array.count == matrix->size) {
        size_t size = matrix->size ? 2 * matrix->size : 64;
        struct entry *more = realloc(matrix->entry, size * sizeof *more);
        if (!more)
            return contents_fault(matrix->contents, "%s", strerror(ENOMEM));
        matrix->entry = more;
        matrix->size = size;
    }
    matrix->entry[matrix->array.count++] = entry;
    return true;
}

static bool add_mirrored(struct market_matrix *matrix, struct entry entry)
{
    struct entry mirror = {{entry.place.row, entry.place.column}, entry.re, entry.im};
    if (!add_entry(matrix, entry))
        return false;
    if (matrix->symmetry == GENERAL || entry.place.row == entry.place.column)
        return true;
    if (matrix->symmetry == SKEW)
        mirror.re = -mirror.re;
    if (matrix->symmetry == SKEW || matrix->symmetry == HERMITIAN)
        mirror.im = -mirror.im;
    return add_entry(matrix, mirror);
}

static bool read_entry(struct market_matrix *matrix, int64_t row, int64_t column)
{
    struct entry entry = {{(uint64_t)column, (uint64_t)row}, 1, 0};
    if (matrix->field != FIELD_PATTERN && !read_value(matrix, &entry.re))
        return false;
    if (matrix->field == FIELD_COMPLEX && !read_value(matrix, &entry.im))
        return false;
    return add_mirrored(matrix, entry);
}

static bool read_coordinates(struct market_matrix *matrix)
{
    int64_t count, row, column;
    if (!read_integer(matrix, &count, 0, INT64_MAX, "the number of entries"))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!read_integer(matrix, &row, 1, matrix->rows, "a row within the matrix") ||
            !read_integer(matrix, &column, 1, matrix->columns, "a column within the matrix") ||
            !read_entry(matrix, row, column))
            return false;
    return true;
}

/* Reads by columns: with a symmetry the lower triangle alone, for a skew matrix without the
 * diagonal. */
static bool read_array(struct market_matrix *matrix)
{
    for (int64_t column = 1; column <= matrix->columns; column++) {
        int64_t first = matrix->symmetry == GENERAL ? 1 : column + (matrix->symmetry == SKEW);
        for (int64_t row = first; row <= matrix->rows; row++)
            if (!read_entry(matrix, row, column))
                return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct array_place *x = &((const struct entry *)a)->place,
                             *y = &((const struct entry *)b)->place;
    return place_is_before(y, x) - place_is_before(x, y);
}

/* Sorts the entries. Adds up those of one place, as other readers of such files do. */
static void sort_entries(struct market_matrix *matrix)
{
    size_t kept = 0;
    if (matrix->array.count)
        qsort(matrix->entry, matrix->array.count, sizeof *matrix->entry, by_place);
    for (size_t i = 0; i < matrix->array.count; i++) {
        if (kept && by_place(&matrix->entry[kept - 1], &matrix->entry[i]) == 0) {
            matrix->entry[kept - 1].re += matrix->entry[i].re;
            matrix->entry[kept - 1].im += matrix->entry[i].im;
        } else {
            matrix->entry[kept++] = matrix->entry[i];
        }
    }
    matrix->array.count = kept;
}

static bool read_matrix(struct market_matrix *matrix)
{
    matrix->at = matrix->contents->bytes;
    matrix->end = matrix->at + matrix->contents->length;
    if (!read_banner(matrix))
        return false;
    skip_comments(matrix);
    if (!read_integer(matrix, &matrix->rows, 0, INT64_MAX, "the number of rows") ||
        !read_integer(matrix, &matrix->columns, 0, INT64_MAX, "the number of columns"))
        return false;
    if (matrix->symmetry != GENERAL && matrix->rows != matrix->columns)
        return contents_fault(matrix->contents,
                              "%lld rows and %lld columns; allowed with a symmetry: as many",
                              (long long)matrix->rows, (long long)matrix->columns);
    if (!(matrix->coordinate ? read_coordinates : read_array)(matrix))
        return false;
    char word[NUMBER_TEXT_BYTES];
    if (next_word(matrix, word) || matrix->at < matrix->end)
        return contents_fault(matrix->contents, "line %lld: there is more than the size line says",
                              line_of(matrix));
    sort_entries(matrix);
    return true;
}

/* ---- The array ---- */

static void entry_at(const struct compared_array *array, const struct compared_array *like,
                     size_t i, struct array_place *place, struct number *number)
{
    const struct entry *entry = &((const struct market_matrix *)array)->entry[i];
    (void)like;
    *place = entry->place;
    *number = array->zero;
    number->part[0].value = entry->re;
    number->part[1].value = entry->im;
}

static void print_place(char *text, const struct compared_array *array,
                        const struct array_place *place)
{
    (void)array;
    sprintf(text, "(%llu, %llu)", (unsigned long long)place->row,
            (unsigned long long)place->column);
}

bool matrix_market_read(struct contents *contents)
{
    struct market_matrix *matrix = contents->read = calloc(1, sizeof *matrix);
    if (!matrix)
        return contents_fault(contents, "%s", strerror(errno));
    matrix->contents = contents;
    if (!read_matrix(matrix))
        return false;
    struct compared_array *array = &matrix->array;
    array->precision = precision_double;
    array->zero.integer = matrix->field == FIELD_INTEGER || matrix->field == FIELD_PATTERN;
    array->zero.complex = matrix->field == FIELD_COMPLEX;
    array->at = entry_at;
    array->print = print_place;
    sprintf(array->shape, "%lld x %lld", (long long)matrix->rows, (long long)matrix->columns);
    return true;
}

void matrix_market_free(void *read)
{
    free(((struct market_matrix *)read)->entry);
    free(read);
}
