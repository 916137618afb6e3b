#define _GNU_SOURCE
#include "cases.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>

enum { ARGUMENTS_MAX = 32, ARRAYS_MAX = 16 };

/* ---- One call ---- */

struct guarded {
    struct array *array;
    enum region region;
    char letter; /* of the spec */
    int argument;
    int64_t asked;  /* workspace: the least, or 0 */
    bool owned;     /* workspace */
    lapack_int *of; /* its length among the arguments */
};

struct arguments {
    struct test *test;
    void *at[ARGUMENTS_MAX];
    int count;
    bool capitals;
    lapack_int integers[ARGUMENTS_MAX], integers_before[ARGUMENTS_MAX];
    double reals[4];
    float floats[4];
    char flags[8];
    int integer_count, real_count, flag_count;
    struct guarded guarded[ARRAYS_MAX];
    struct array work[ARRAYS_MAX]; /* what is owned */
    int guarded_count;
};

static void say(struct test *test, const char *format, ...)
{
    size_t length = strlen(test->call.text);
    va_list list;
    va_start(list, format);
    vsnprintf(test->call.text + length, sizeof test->call.text - length, format, list);
    va_end(list);
}

static lapack_int *add_integer(struct arguments *x, int64_t n)
{
    lapack_int *at = &x->integers[x->integer_count++];
    *at = (lapack_int)n;
    x->at[x->count++] = at;
    return at;
}

static void add_flag(struct arguments *x, char letter)
{
    /* Either case will do for LAPACK. */
    x->flags[x->flag_count] = (char)(letter | (one_of(x->test, 2) && !x->capitals ? 32 : 0));
    x->at[x->count++] = &x->flags[x->flag_count++];
    say(x->test, " %c", letter);
}

static void add_real(struct arguments *x, double z)
{
    x->reals[x->real_count] = z;
    x->floats[x->real_count] = (float)z;
    x->at[x->count++] = accel_is_double(x->test->dtype) ? (void *)&x->reals[x->real_count]
                                                        : (void *)&x->floats[x->real_count];
    x->real_count++;
}

static void add_array(struct arguments *x, struct array *array, enum region region, char letter)
{
    x->guarded[x->guarded_count++] =
        (struct guarded){.array = array, .region = region, .letter = letter, .argument = x->count};
    x->at[x->count++] = (void *)array_data(array);
    if (letter == 'M') {
        say(x->test, " ld=%ld", (long)array->ld);
        add_integer(x, array->ld);
    }
}

static enum accel_dtype real_dtype(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
}

static struct array new_work(struct arguments *x, char letter, int64_t length)
{
    struct test *test = x->test;
    if (letter == 'J' || letter == 'j')
        return array_integers(length, &test->random);
    bool real = letter == 'R' || letter == 'q';
    return array_vector(real ? real_dtype(test->dtype) : test->dtype, length, &test->random);
}

/* For the question, one element; more for those whose length cannot be asked for. */
static void add_work(struct arguments *x, char letter, int64_t asked)
{
    bool sized = letter == 'W' || letter == 'R' || letter == 'J';
    struct array *work = &x->work[x->guarded_count];
    *work = new_work(x, letter, asked < 0 ? 1 : sized ? 1 : most(asked, 1));
    add_array(x, work, WHOLE, letter);
    struct guarded *guarded = &x->guarded[x->guarded_count - 1];
    guarded->asked = asked;
    guarded->owned = true;
    if (sized)
        guarded->of = add_integer(x, -1);
}

static void read_arguments(struct arguments *x, const char *spec, va_list list)
{
    for (; *spec && *spec != '.'; spec++) {
        switch (*spec) {
        case 'c':
            add_flag(x, (char)va_arg(list, int));
            break;
        case 'i':
            add_integer(x, va_arg(list, int64_t));
            say(x->test, " %ld", (long)x->integers[x->integer_count - 1]);
            break;
        case 'r':
            add_real(x, va_arg(list, double));
            break;
        case 'M':
        case 'V': {
            struct array *array = va_arg(list, struct array *);
            add_array(x, array, (enum region)va_arg(list, int), *spec);
            break;
        }
        default:
            add_work(x, *spec, va_arg(list, int64_t));
        }
    }
}

/* Everything that has changed but must not have. A question changes workspace alone. */
static void check(struct arguments *x, bool question)
{
    struct test *test = x->test;
    for (int i = 0; i < x->guarded_count; i++) {
        const struct guarded *guarded = &x->guarded[i];
        bool kept = array_is_kept(guarded->array,
                                  question && !guarded->owned ? UNTOUCHED : guarded->region);
        size_t length = strlen(test->call.touched);
        if (!kept)
            snprintf(test->call.touched + length, sizeof test->call.touched - length, "%s%s%c%d",
                     length ? "," : "", question ? "question:" : "", guarded->letter, i);
    }
    if (memcmp(x->integers, x->integers_before, sizeof x->integers) != 0)
        snprintf(test->call.touched, sizeof test->call.touched, "integers");
}

static void call_with(struct arguments *x, lapack_function *function, bool has_info,
                      struct array *info)
{
    void *at[ARGUMENTS_MAX];
    int count = x->count;
    memcpy(at, x->at, sizeof at);
    if (has_info)
        at[count++] = (void *)array_data(info);
    for (int i = 0; i < x->flag_count; i++)
        at[count++] = (void *)(uintptr_t)1;
    memcpy(x->integers_before, x->integers, sizeof x->integers);
    for (int i = 0; i < x->guarded_count; i++)
        array_keep(x->guarded[i].array);
    library_call(function, at, count);
}

static int64_t first_number(const struct array *work)
{
    return work->integers ? *array_integer(work, 0) : (int64_t)creall(array_get(work, 0, 0));
}

/* Workspace of a length that the documentation allows, after the question. */
static void size_work(struct arguments *x)
{
    struct test *test = x->test;
    int64_t how = random_below(&test->random, 3);
    for (int i = 0; i < x->guarded_count; i++) {
        struct guarded *guarded = &x->guarded[i];
        if (!guarded->owned || (!guarded->of && guarded->asked >= 0))
            continue;
        int64_t best = first_number(guarded->array), length = best;
        if (guarded->of)
            length = how == 0 && guarded->asked >= 0
                         ? guarded->asked
                         : most(best, guarded->asked) + (how == 2 ? 7 : 0);
        if (best < 0 || best > 1 << 26) {
            snprintf(test->call.touched, sizeof test->call.touched, "answer:%ld", (long)best);
            length = most(guarded->asked, 1);
        }
        array_free(guarded->array);
        *guarded->array = new_work(x, guarded->letter, most(length, 1));
        x->at[guarded->argument] = (void *)array_data(guarded->array);
        if (guarded->of)
            *guarded->of = (lapack_int)length;
    }
    say(test, " work=%s", how == 0 ? "least" : how == 1 ? "best" : "more");
}

static lapack_function *find(struct test *test, const char *routine, char *name, size_t size)
{
    char letter = "sdcz"[test->dtype];
    bool renamed =
        is_complex(test) && (strncmp(routine, "or", 2) == 0 || strncmp(routine, "sye", 3) == 0 ||
                             strncmp(routine, "syg", 3) == 0);
    snprintf(name, size, "%c%s", letter, routine);
    if (renamed)
        memcpy(name + 1, routine[0] == 'o' ? "un" : "he", 2);
    lapack_function *function = library_find(&test->options->library, name);
    if (!function) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return function;
}

int64_t call(struct test *test, const char *routine, const char *spec, ...)
{
    struct arguments x = {.test = test,
                          .capitals = has_fault(test, FAULT_TRTRS_LETTERS) &&
                                      strcmp(routine, "trtrs") == 0};
    char name[24];
    va_list list;
    if (test->call.pending)
        judge(test, 0);
    test->call.text[0] = test->call.touched[0] = 0;
    test->call.expected = ANY_INFO;
    lapack_function *function = find(test, routine, name, sizeof name);
    say(test, "%s", name);
    va_start(list, spec);
    read_arguments(&x, spec, list);
    va_end(list);
    bool has_info = !strchr(spec, '.'), has_work = strpbrk(spec, "WRJ");
    struct array info = array_integers(1, &test->random);
    *array_integer(&info, 0) = -77;
    array_keep(&info);
    if (has_work) {
        call_with(&x, function, has_info, &info);
        check(&x, true);
        if (*array_integer(&info, 0) != 0 || !array_is_kept(&info, WHOLE))
            snprintf(test->call.touched, sizeof test->call.touched, "question:info=%ld",
                     (long)*array_integer(&info, 0));
        size_work(&x);
        *array_integer(&info, 0) = -77;
    }
    call_with(&x, function, has_info, &info);
    check(&x, false);
    if (has_info && !array_is_kept(&info, WHOLE))
        snprintf(test->call.touched, sizeof test->call.touched, "info");
    test->call.info = has_info ? *array_integer(&info, 0) : 0;
    test->call.digest = 0xcbf29ce484222325u;
    for (int i = 0; i < x.guarded_count; i++)
        if (!x.guarded[i].owned)
            test->call.digest = array_digest(x.guarded[i].array, test->call.digest);
    for (int i = 0; i < x.guarded_count; i++)
        if (x.guarded[i].owned)
            array_free(x.guarded[i].array);
    array_free(&info);
    test->call.pending = true;
    test->calls++;
    return test->call.info;
}

/* ---- The verdict ---- */

void expect(struct test *test, int64_t info)
{
    test->call.expected = info;
}

void judge(struct test *test, double ratio)
{
    int64_t info = test->call.info, expected = test->call.expected;
    bool right_info =
        expected == ANY_INFO || (expected == POSITIVE_INFO ? info > 0 : info == expected);
    bool right = right_info && !test->call.touched[0] && ratio < CPU_REF_RESIDUAL_THRESHOLD;
    char line[1024];
    if (!test->call.pending)
        return;
    snprintf(line, sizeof line,
             "%s %s %d:%s kind=%s | info=%ld ratio=%.3g touched=%s bits=%016lx%s\n", test->name,
             test->number, test->calls, test->call.text, kind_names[test->kind], (long)info, ratio,
             test->call.touched[0] ? test->call.touched : "no", (unsigned long)test->call.digest,
             right        ? ""
             : right_info ? " WRONG"
                          : " WRONG info");
    if (test->options->report)
        fputs(line, test->options->report);
    if (!right)
        fprintf(stderr, "wrong: %s", line);
    test->wrong += !right;
    test->infos = (test->infos ^ (uint64_t)info) * 0x100000001b3u;
    test->call.pending = false;
}

/* ---- Choices ---- */

int64_t pick_size(struct test *test)
{
    int64_t which = random_below(&test->random, 14), max = test->options->max_size;
    if (which < 2)
        return which;
    /* Small ones have their own ways through LAPACK. */
    return 1 + random_below(&test->random, which < 5 ? least(max, 7) : max);
}

int64_t pick_sides(struct test *test)
{
    return one_of(test, 6) ? random_below(&test->random, 2 * test->options->max_size)
                           : random_below(&test->random, 8);
}

enum kind pick_kind(struct test *test, const enum kind *kinds, int64_t n)
{
    enum kind wanted[KINDS];
    int64_t found = 0, which = random_below(&test->random, INT32_MAX);
    for (int64_t i = 0; i < n; i++)
        if (fnmatch(test->options->kinds, kind_names[kinds[i]], FNM_EXTMATCH) == 0)
            wanted[found++] = kinds[i];
    test->kind = found > 0 ? wanted[which % found] : kinds[0];
    return test->kind;
}

struct array stored(struct test *test, const struct source *source, char uplo)
{
    struct array x = array_new(test->dtype, source->rows, source->cols, &test->random);
    source_store(source, &x, uplo);
    return x;
}
