/*
 * Compares Matrix Market files as matrices: entries in any order, a symmetric matrix as a triangle or in full. Holds all entries
 * in memory: 48 to 96 bytes each, twice that if a triangle is stored.
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
    int64_t row, column; /* from 1 */
    long double re, im;
};

struct matrix {
    const struct compared *compared;
    enum run run;
    struct contents contents;
    const char *at, *end; /* the text still to be read */
    bool coordinate;
    enum field field;
    enum symmetry symmetry;
    int64_t rows, columns;
    struct entry *entry; /* after reading: by columns, each place once */
    size_t entries, size;
};

/* ---- Reading ---- */

static long long line_of(const struct matrix *matrix)
{
    return contents_line(&matrix->contents, (size_t)(matrix->at - matrix->contents.bytes));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies the next word. False at the end, or if the word is longer than any of such a file. */
static bool next_word(struct matrix *matrix, char word[NUMBER_TEXT_BYTES])
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

static bool read_banner(struct matrix *matrix)
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
        return compared_fault(matrix->compared, matrix->run,
                              "not a Matrix Market file: allowed: %%%%MatrixMarket matrix ...");
    int layout = choose(word[0], layouts, 2), field = choose(word[1], fields, 4),
        symmetry = choose(word[2], symmetries, 4);
    if (layout < 0 || field < 0 || symmetry < 0 || (layout == 0 && field == FIELD_PATTERN))
        return compared_fault(matrix->compared, matrix->run,
                              "line 1: %s %s %s; allowed: coordinate or array (without pattern), "
                              "real, complex, integer or pattern, general, symmetric, "
                              "skew-symmetric or hermitian",
                              word[0], word[1], word[2]);
    matrix->coordinate = layout == 1;
    matrix->field = (enum field)field;
    matrix->symmetry = (enum symmetry)symmetry;
    return true;
}

static void skip_comments(struct matrix *matrix)
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

static bool damaged(const struct matrix *matrix, const char *wanted)
{
    return matrix->at == matrix->end && is_blank(matrix->end[-1])
               ? compared_fault(matrix->compared, matrix->run, "cut short: %s is missing", wanted)
               : compared_fault(matrix->compared, matrix->run, "line %lld: %s is expected here",
                                line_of(matrix), wanted);
}

static bool read_integer(struct matrix *matrix, int64_t *value, int64_t least, int64_t most,
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

static bool read_value(struct matrix *matrix, long double *value)
{
    char word[NUMBER_TEXT_BYTES];
    struct number number;
    if (!next_word(matrix, word) || !number_is(word, strlen(word), &number) || number.complex ||
        (matrix->field == FIELD_INTEGER && !number.integer))
        return damaged(matrix, matrix->field == FIELD_INTEGER ? "an integer" : "a number");
    *value = number.part[0].value;
    return true;
}

static bool add_entry(struct matrix *matrix, struct entry entry)
{
    if (matrix->entries == matrix->size) {
        size_t size = matrix->size ? 2 * matrix->size : 64;
        struct entry *more = realloc(matrix->entry, size * sizeof *more);
        if (!more)
            return compared_fault(matrix->compared, matrix->run, "%s", strerror(ENOMEM));
        matrix->entry = more;
        matrix->size = size;
    }
    matrix->entry[matrix->entries++] = entry;
    return true;
}

static bool add_mirrored(struct matrix *matrix, struct entry entry)
{
    struct entry mirror = {entry.column, entry.row, entry.re, entry.im};
    if (!add_entry(matrix, entry))
        return false;
    if (matrix->symmetry == GENERAL || entry.row == entry.column)
        return true;
    if (matrix->symmetry == SKEW)
        mirror.re = -mirror.re;
    if (matrix->symmetry == SKEW || matrix->symmetry == HERMITIAN)
        mirror.im = -mirror.im;
    return add_entry(matrix, mirror);
}

static bool read_entry(struct matrix *matrix, int64_t row, int64_t column)
{
    struct entry entry = {row, column, 1, 0};
    if (matrix->field != FIELD_PATTERN && !read_value(matrix, &entry.re))
        return false;
    if (matrix->field == FIELD_COMPLEX && !read_value(matrix, &entry.im))
        return false;
    return add_mirrored(matrix, entry);
}

static bool read_coordinates(struct matrix *matrix)
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

/* Reads by columns: with a symmetry the lower triangle alone, for a skew matrix without the diagonal. */
static bool read_array(struct matrix *matrix)
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
    const struct entry *x = a, *y = b;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sorts the entries. Adds up those of one place, as other readers of such files do. */
static void sort_entries(struct matrix *matrix)
{
    size_t kept = 0;
    if (matrix->entries)
        qsort(matrix->entry, matrix->entries, sizeof *matrix->entry, by_place);
    for (size_t i = 0; i < matrix->entries; i++) {
        if (kept && by_place(&matrix->entry[kept - 1], &matrix->entry[i]) == 0) {
            matrix->entry[kept - 1].re += matrix->entry[i].re;
            matrix->entry[kept - 1].im += matrix->entry[i].im;
        } else {
            matrix->entry[kept++] = matrix->entry[i];
        }
    }
    matrix->entries = kept;
}

static bool read_matrix(struct matrix *matrix)
{
    if (!contents_open(&matrix->contents, matrix->compared, matrix->run))
        return false;
    matrix->at = matrix->contents.bytes;
    matrix->end = matrix->at + matrix->contents.length;
    if (!read_banner(matrix))
        return false;
    skip_comments(matrix);
    if (!read_integer(matrix, &matrix->rows, 0, INT64_MAX, "the number of rows") ||
        !read_integer(matrix, &matrix->columns, 0, INT64_MAX, "the number of columns"))
        return false;
    if (matrix->symmetry != GENERAL && matrix->rows != matrix->columns)
        return compared_fault(matrix->compared, matrix->run,
                              "%lld rows and %lld columns; allowed with a symmetry: as many",
                              (long long)matrix->rows, (long long)matrix->columns);
    if (!(matrix->coordinate ? read_coordinates : read_array)(matrix))
        return false;
    char word[NUMBER_TEXT_BYTES];
    if (next_word(matrix, word) || matrix->at < matrix->end)
        return compared_fault(matrix->compared, matrix->run,
                              "line %lld: there is more than the size line says", line_of(matrix));
    sort_entries(matrix);
    return true;
}

/* ---- Comparing ---- */

static struct number number_of(const struct matrix *matrix, const struct entry *entry)
{
    struct number number = {
        .integer = matrix->field == FIELD_INTEGER || matrix->field == FIELD_PATTERN,
        .complex = matrix->field == FIELD_COMPLEX,
    };
    if (entry) {
        number.part[0].value = entry->re;
        number.part[1].value = entry->im;
    }
    return number;
}

/* Returns the entry at `place`, or NULL: an entry that is not stored is 0. Moves *next on to the first entry that is not before
 * `place`. */
static const struct entry *entry_at(const struct matrix *matrix, size_t *next,
                                    const struct entry *place)
{
    while (*next < matrix->entries && by_place(&matrix->entry[*next], place) < 0)
        ++*next;
    return *next < matrix->entries && by_place(&matrix->entry[*next], place) == 0
               ? &matrix->entry[*next]
               : NULL;
}

static void compare_entry(struct tally *tally, const struct entry *place, const struct number *a,
                          const struct number *b, const struct number *noise)
{
    char where[64];
    if (!tally_number(tally, a, b, noise))
        return;
    snprintf(where, sizeof where, "(%lld, %lld)", (long long)place->row, (long long)place->column);
    tally_show_values(tally, where, a, b);
}

static void compare_entries(struct tally *tally, const struct matrix *a, const struct matrix *b,
                            const struct matrix *noise)
{
    size_t i = 0, j = 0, k = 0;
    while (i < a->entries || j < b->entries) {
        const struct entry *place = i < a->entries ? &a->entry[i] : &b->entry[j];
        if (j < b->entries && by_place(&b->entry[j], place) < 0)
            place = &b->entry[j];
        struct number x = number_of(a, entry_at(a, &i, place)),
                      y = number_of(b, entry_at(b, &j, place)), z;
        if (noise)
            z = number_of(noise, entry_at(noise, &k, place));
        compare_entry(tally, place, &x, &y, noise ? &z : NULL);
        const struct entry done = *place;
        i += i < a->entries && by_place(&a->entry[i], &done) == 0;
        j += j < b->entries && by_place(&b->entry[j], &done) == 0;
    }
}

static bool same_size(const struct matrix *a, const struct matrix *b)
{
    return a->rows == b->rows && a->columns == b->columns;
}

static void compare_matrices(struct tally *tally, const struct matrix *a, const struct matrix *b,
                             const struct matrix *noise)
{
    if (same_size(a, b))
        compare_entries(tally, a, b, noise && same_size(a, noise) ? noise : NULL);
    else if (tally_text(tally))
        tally_show(tally, "%lld x %lld, %s %lld x %lld", (long long)a->rows, (long long)a->columns,
                   tally_second(tally), (long long)b->rows, (long long)b->columns);
}

bool compare_matrix_market(struct tally *tally, const struct compared *compared)
{
    struct matrix matrix[RUNS] = {{.entries = 0}};
    bool good = true;
    for (int i = 0; i < RUNS && good; i++) {
        matrix[i] = (struct matrix){.compared = compared, .run = i};
        good = read_matrix(&matrix[i]);
    }
    if (good) {
        const struct matrix *plain = &matrix[RUN_PLAIN];
        bool integers = plain->field == FIELD_INTEGER || plain->field == FIELD_PATTERN;
        for (size_t i = 0; !integers && i < plain->entries; i++) {
            struct number number = number_of(plain, &plain->entry[i]);
            tally_widen(tally, &number);
        }
        compare_matrices(tally, plain, &matrix[RUN_THREADS], NULL);
        tally->measures_noise = false;
        compare_matrices(tally, plain, &matrix[RUN_SHIM], &matrix[RUN_THREADS]);
    }
    for (int i = 0; i < RUNS; i++) {
        contents_close(&matrix[i].contents);
        free(matrix[i].entry);
    }
    return good;
}
