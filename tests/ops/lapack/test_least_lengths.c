/*
 * The least lengths of workspaces, beside LAPACK's reference itself: it must refuse one element
 * less, and no other argument, and accept these. LAPACK reports by xerbla_, which is this
 * program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/names.h"
#include "ops/rules/lapack_rules.h"

enum { ARGUMENTS = 24, MOST = 56, ELEMENTS = 1 << 16 };

static int refused; /* the number of an argument */

void xerbla_(const char *name, const int *argument, size_t length);
void xerbla_(const char *name, const int *argument, size_t length)
{
    (void)name, (void)length;
    refused = *argument;
}

/* A routine's arguments: Z R L Y V T flags, m n r sizes, d leading dimensions, a b s u v matrices
 * and vectors, e one that real routines alone have, w x i workspaces, W X I their lengths, of which
 * complex routines alone have x and X; o a number, f INFO. */
struct routine {
    const char *name, *of_complex, *arguments;
};
static const struct routine routines[] = {
    {"gesdd", "gesdd", "Zmnadsudvd wWxif"},
    {"gesvd", "gesvd", "YVmnadsudvdwWxf"},
    {"gelsd", "gelsd", "mnradbdsokwWxif"},
    {"gelss", "gelss", "mnradbdsokwWxf"},
    {"gels", "gels", "TmnradbdwWf"},
    {"syev", "heev", "ZLnadswWxf"},
    {"syevd", "heevd", "ZLnadswWxXiIf"},
    {"syevr", "heevr", "ZRLnadookkoksudiwWxXiIf"},
    {"syevx", "heevx", "ZRLnadookkoksudwWxiif"},
    {"sygv", "hegv", "1ZLnadbdswWxf"},
    {"sygvd", "hegvd", "1ZLnadbdswWxXiIf"},
    {"geev", "geev", "ZZnadseudvdwWxf"},
};

static _Alignas(16) char matrix[6][ELEMENTS * 16];
static int whole[ELEMENTS];

static void fill(bool is_double)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < MOST * MOST; i++) {
            const double x = i % (MOST + 1) == 0 ? 9 : (double)(i * 7 % 11 - 5) / 50;
            if (is_double)
                ((double *)(void *)matrix[k])[i] = x;
            else
                ((float *)(void *)matrix[k])[i] = (float)x;
        }
}

struct sizes {
    int m, n, nrhs;
    char job, other; /* flags */
};

/* Returns INFO. lengths: of W, X and I. */
static int call_lapack(void *function, const struct routine *r, const struct sizes *z,
                       bool is_complex, const int lengths[3], int *argument_of)
{
    void (*call)(void *, ...);
    static double number;
    static int ld = MOST, one = 1, found, info;
    char job = z->job, other = z->other, range = 'A', uplo = 'L', trans = 'N';
    void *argument[ARGUMENTS] = {NULL};
    int m = z->m, n = z->n, nrhs = z->nrhs, given[3] = {lengths[0], lengths[1], lengths[2]};
    int count = 0, flags = 0, blocks = 0;
    *(void **)&call = function;
    for (const char *a = r->arguments; *a; a++) {
        if (*a == ' ' || ((*a == 'x' || *a == 'X') && !is_complex) || (*a == 'e' && is_complex))
            continue;
        void *to = matrix[2];
        switch (*a) {
        case 'Z':
            to = flags++ ? &other : &job;
            break;
        case 'Y':
            to = &job;
            break;
        case 'V':
            to = &other;
            break;
        case 'R':
            to = &range;
            break;
        case 'L':
            to = &uplo;
            break;
        case 'T':
            to = &trans;
            break;
        case '1':
            to = &one;
            break;
        case 'm':
            to = &m;
            break;
        case 'n':
            to = &n;
            break;
        case 'r':
            to = &nrhs;
            break;
        case 'd':
            to = &ld;
            break;
        case 'a':
            to = matrix[0];
            break;
        case 'b':
            to = matrix[1];
            break;
        case 'w':
            to = matrix[3];
            break;
        case 'x':
            to = matrix[4];
            break;
        case 'u':
            to = matrix[5];
            break;
        case 'i':
            to = whole + (blocks++ ? ELEMENTS / 2 : 0);
            break;
        case 'k':
            to = &found;
            break;
        case 'o':
            to = &number;
            break;
        case 'W':
            to = &given[0];
            break;
        case 'X':
            to = &given[1];
            break;
        case 'I':
            to = &given[2];
            break;
        case 'f':
            to = &info;
            break;
        default:
            break;
        }
        argument_of[0] = *a == 'W' ? count + 1 : argument_of[0];
        argument_of[1] = *a == 'X' ? count + 1 : argument_of[1];
        argument_of[2] = *a == 'I' ? count + 1 : argument_of[2];
        argument[count++] = to;
    }
    found = 1;
    refused = info = 0;
    void *const *p = argument;
    call(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13],
         p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21], p[22], p[23]);
    return info;
}

static void *lapack;
static bool is_newer; /* LAPACK is 3.12 or a later one */

/* Whether LAPACK takes any length. libaccel wants as much as older ones do, and leaves to LAPACK
 * what has less. */
static bool takes_less(const struct routine *r, const struct sizes *z)
{
    return is_newer && strcmp(r->name, "syevr") == 0 && z->n == 1;
}

static void assert_least(void *function, const struct routine *r, const char *name,
                         const struct sizes *z)
{
    struct accel_call call = accel_call_of(accel_name_routine((uint32_t)accel_name_find(name)));
    const enum accel_dtype dtype = call.routine->dtype;
    call.blas.size[ACCEL_m] = r->arguments[1] == 'L' || !strchr(r->arguments, 'm') ? z->n : z->m;
    call.blas.size[ACCEL_n] = z->n;
    call.blas.size[ACCEL_nrhs] = z->nrhs;
    call.blas.size[ACCEL_itype] = 1;
    call.blas.flag[ACCEL_jobz] = call.blas.flag[ACCEL_jobu] = call.blas.flag[ACCEL_jobvl] = z->job;
    call.blas.flag[ACCEL_jobvt] = call.blas.flag[ACCEL_jobvr] = z->other;
    call.blas.flag[ACCEL_range] = 'A';
    call.blas.flag[ACCEL_uplo] = 'L';
    const struct accel_lengths least = lapack_least_lengths(&call);
    const int64_t of[3] = {least.work, least.rwork, least.iwork};
    for (int which = -1; which < 3; which++) {
        int lengths[3], argument_of[3] = {0};
        for (int k = 0; k < 3; k++)
            lengths[k] = (int)of[k] - (k == which);
        if (which >= 0 && lengths[which] < 1)
            continue; /* lengths are 1 at least */
        for (int k = 0; k < 3; k++)
            lengths[k] = lengths[k] < 1 ? 1 : lengths[k];
        fill(accel_is_double(dtype));
        const int info = call_lapack(function, r, z, accel_is_complex(dtype), lengths, argument_of);
        if (which >= 0 && !argument_of[which])
            continue;
        const int expected = which < 0 || takes_less(r, z) ? 0 : argument_of[which];
        if (refused != expected || (which >= 0 && info != -expected))
            fail_msg("%s m %d n %d nrhs %d jobs %c%c: lengths %d %d %d, refused %d, INFO %d", name,
                     z->m, z->n, z->nrhs, z->job, z->other, lengths[0], lengths[1], lengths[2],
                     refused, info);
    }
}

static void assert_routine(const struct routine *r, const char *jobs, const char *others)
{
    static const int orders[] = {1, 2, 3, 13, 26, 27, 53};
    for (const char *type = "sdcz"; *type; type++) {
        char name[16];
        const bool is_complex = *type == 'c' || *type == 'z';
        snprintf(name, sizeof name, "%c%s_", *type, is_complex ? r->of_complex : r->name);
        void *function = dlsym(lapack, name);
        assert_non_null(function);
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            for (const char *job = jobs; *job; job++)
                for (const char *other = others; *other; other++) {
                    struct sizes z = {orders[i], orders[i], 1 + (int)i * 7, *job, *other};
                    if (*job == 'O' && *other == 'O')
                        continue;
                    assert_least(function, r, name, &z);
                    if (!strchr(r->arguments, 'm') || orders[i] > 30)
                        continue;
                    for (int longer = orders[i] * 3 / 2; longer <= MOST;
                         longer += 1 + orders[i] / 2) {
                        z.m = longer;
                        z.n = orders[i];
                        assert_least(function, r, name, &z);
                        z.m = orders[i];
                        z.n = longer;
                        assert_least(function, r, name, &z);
                    }
                }
    }
}

static bool is_3_12(void)
{
    void (*version)(int *, int *, int *);
    int major = 0, minor = 0, patch = 0;
    *(void **)&version = dlsym(lapack, "ilaver_");
    assert_non_null(version);
    version(&major, &minor, &patch);
    return major > 3 || minor >= 12;
}

static void lapack_wants_as_much(void **state)
{
    (void)state;
    if (!lapack)
        skip(); /* the reference is not installed */
    is_newer = is_3_12();
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
        const char *name = routines[i].name;
        const bool svd = strcmp(name, "gesvd") == 0, all = strcmp(name, "gesdd") == 0;
        assert_routine(&routines[i],
                       all   ? "NSOA"
                       : svd ? "NSO"
                             : "NV",
                       svd                         ? "NSO"
                       : strcmp(name, "geev") == 0 ? "NV"
                                                   : "N");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lapack_wants_as_much)};
#ifdef __aarch64__
    lapack = dlopen("/usr/lib/aarch64-linux-gnu/lapack/liblapack.so.3", RTLD_NOW);
#else
    lapack = dlopen("/usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3", RTLD_NOW);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
