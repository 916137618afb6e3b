#include "pattern.h"

#include <string.h>

#include "base/text/text.h"
#include "ops/op.h"

struct piece {
    const char *at, *end;
};

static struct piece piece_of(const char *s)
{
    return (struct piece){s, s + strlen(s)};
}

static bool is_word(struct piece piece, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(piece.end - piece.at) == length && memcmp(piece.at, word, length) == 0;
}

/* Finds the next item that is not empty. `rest` starts as the list. */
static bool next_item(const char **rest, struct piece *item)
{
    while (*rest && **rest) {
        const char *end = *rest + strcspn(*rest, ",");
        *item = (struct piece){*rest, end};
        *rest = *end ? end + 1 : end;
        while (item->at < item->end && (*item->at == ' ' || *item->at == '\t'))
            item->at++;
        while (item->at < item->end && (item->end[-1] == ' ' || item->end[-1] == '\t'))
            item->end--;
        if (item->at < item->end)
            return true;
    }
    return false;
}

/* Whether the set that starts at `*at` has the character; moves `*at` behind the set. An unclosed
 * bracket stands for itself. */
static bool matches_set(const char **at, const char *end, char c)
{
    const char *p = *at + 1;
    bool negated = p < end && (*p == '!' || *p == '^'), found = false;
    p += negated;
    for (const char *first = p; p < end && (*p != ']' || p == first);) {
        char low = *p++, high = low;
        if (end - p >= 2 && p[0] == '-' && p[1] != ']') {
            high = p[1];
            p += 2;
        }
        found |= low <= c && c <= high;
    }
    if (p == end) {
        ++*at;
        return c == '[';
    }
    *at = p + 1;
    return found != negated;
}

static bool matches_one(const char **at, const char *end, char c)
{
    if (**at == '[')
        return matches_set(at, end, c);
    char want = *(*at)++;
    return want == '?' || want == c;
}

/* Takes at most as many steps as the product of the lengths: only the last star is tried again. */
static bool glob(struct piece pattern, struct piece name)
{
    const char *p = pattern.at, *s = name.at, *star = NULL, *from = NULL;
    while (s < name.end) {
        if (p < pattern.end && *p == '*') {
            star = ++p;
            from = s;
        } else if (p < pattern.end && matches_one(&p, pattern.end, *s)) {
            s++;
        } else if (star) {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.end && *p == '*')
        p++;
    return p == pattern.end;
}

/* ---- Routines ---- */

enum group { NO_GROUP, BLAS, BLAS2, BLAS3, LAPACK, UNKNOWN };

/* An item, in lower case, without what Fortran's and C's interfaces put around a name; the name is
 * empty if it is longer than any routine's. */
struct routine_item {
    enum group group;
    char name[64];
};

static enum group group_of(struct piece word)
{
    static const char *const names[] = {[BLAS] = "blas", "blas2", "blas3", "lapack"};
    for (int group = BLAS; group <= LAPACK; group++)
        if (is_word(word, names[group]))
            return (enum group)group;
    return UNKNOWN;
}

/* Skips cblas_ or lapacke_, which a log's names may have; without a group, BLAS or LAPACK is it. */
static void skip_interface(struct piece *name, enum group *group)
{
    static const struct {
        const char *prefix;
        enum group group;
    } interfaces[] = {{"cblas_", BLAS}, {"lapacke_", LAPACK}};
    for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++) {
        const size_t length = strlen(interfaces[i].prefix);
        if ((size_t)(name->end - name->at) <= length ||
            memcmp(name->at, interfaces[i].prefix, length) != 0)
            continue;
        name->at += length;
        if (*group == NO_GROUP)
            *group = interfaces[i].group;
        return;
    }
}

static struct routine_item routine_item(struct piece item)
{
    struct routine_item found = {.group = NO_GROUP};
    char text[sizeof found.name];
    size_t length = 0;
    if ((size_t)(item.end - item.at) >= sizeof text)
        return found;
    for (const char *c = item.at; c < item.end; c++)
        text[length++] = text_lower(*c);
    struct piece name = {text, text + length};
    const char *colon = memchr(text, ':', length);
    if (colon) {
        found.group = group_of((struct piece){text, colon});
        name.at = colon + 1;
        if (name.at == name.end)
            name = piece_of("*");
    }
    if (name.at < name.end && name.end[-1] == '_')
        name.end--;
    skip_interface(&name, &found.group);
    memcpy(found.name, name.at, (size_t)(name.end - name.at));
    return found;
}

static bool item_matches(const struct routine_item *item, const struct accel_routine *routine)
{
    bool lapack = accel_is_lapack(routine), level2 = accel_is_level2(routine);
    if (item->group != NO_GROUP && !accel_is_blas(routine))
        return false;
    if (item->group == UNKNOWN || (item->group == LAPACK && !lapack) ||
        (item->group != LAPACK && item->group != NO_GROUP && lapack) ||
        (item->group == BLAS2 && !level2) || (item->group == BLAS3 && level2))
        return false;
    return glob(piece_of(item->name), piece_of(routine->name));
}

bool pattern_matches(const struct accel_pattern *pattern, const struct accel_routine *routine)
{
    struct piece item;
    for (const char *rest = pattern->text; next_item(&rest, &item);) {
        struct routine_item wanted = routine_item(item);
        if (item_matches(&wanted, routine))
            return true;
    }
    return false;
}

const char *pattern_fault(const struct accel_pattern *pattern, const struct accel_routine *routines,
                          uint32_t count, char *item, size_t size)
{
    struct piece piece;
    for (const char *rest = pattern->text; next_item(&rest, &piece);) {
        struct routine_item wanted = routine_item(piece);
        uint32_t i = 0;
        while (i < count && !item_matches(&wanted, &routines[i]))
            i++;
        if (i < count)
            continue;
        size_t length = (size_t)(piece.end - piece.at);
        if (length >= size)
            length = size - 1;
        memcpy(item, piece.at, length);
        item[length] = 0;
        return wanted.group == UNKNOWN
                   ? "no such group; there are blas, blas2, blas3 and lapack"
                   : "no routine has that name; allowed: names and globs such as ?gemm";
    }
    return NULL;
}

/* ---- Programs ---- */

bool pattern_lists(const char *list, const char *standard, const char *name)
{
    struct piece item;
    for (const char *rest = list; next_item(&rest, &item);)
        if (standard && is_word(item, "default") ? pattern_lists(standard, NULL, name)
                                                 : glob(item, piece_of(name)))
            return true;
    return false;
}
