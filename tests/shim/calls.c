#define _GNU_SOURCE
#include "calls.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/judge.h"
#include "generator.h"
#include "ops/names.h"
#include "ops/op.h"

/* What a provider gets wrong and is not asked for: letters of -f. */
enum fault {
    FAULT_GROUPS = 'g', /* BLIS 0.9.0: batches of several groups */
    FAULT_SYMV =
        'y', /* OpenBLAS 0.3.21: ssymv of a lower triangle reads memory that it has not written */
    FAULT_CONJUGATE = 'c' /* OpenBLAS 0.3.30: complex gemmt with trans = C */
};

static bool has_fault(const struct test_options *options, enum fault fault)
{
    return strchr(options->faults, fault);
}

/* ---- From a random call to its arguments ---- */

/* The CBLAS value of a flag (the reference cblas.h). */
static int code_of(uint8_t flag, char letter)
{
    switch (flag) {
    case ACCEL_side:
        return letter == 'L' ? 141 : 142;
    case ACCEL_uplo:
        return letter == 'U' ? 121 : 122;
    case ACCEL_diag:
        return letter == 'N' ? 131 : 132;
    default:
        return letter == 'N' ? 111 : letter == 'T' ? 112 : 113;
    }
}

static void put_scalar(struct arguments *x, enum accel_scalar which, int g, enum accel_dtype dtype,
                       struct accel_complex z)
{
    int parts = accel_is_complex(dtype) ? 2 : 1;
    const double part[] = {z.re, z.im};
    for (int i = 0; i < parts; i++)
        if (accel_is_double(dtype))
            x->scalar[which].d[g * parts + i] = part[i];
        else
            x->scalar[which].f[g * parts + i] = (float)part[i];
}

static void put_group(struct arguments *x, const struct random_call *random, int g, unsigned *seed)
{
    const struct accel_call *call = &random->group[g];
    for (int i = 0; i < ACCEL_FLAGS; i++) {
        x->code[i][g] = code_of((uint8_t)i, call->flag[i]);
        x->letter[i][g] = (char)(call->flag[i] | (random_below(seed, 2) ? 32 : 0));
    }
    for (int i = 0; i < ACCEL_SIZES; i++)
        x->size[i][g] = (blas_int)call->size[i];
    for (int i = 0; i < ACCEL_SCALARS; i++)
        put_scalar(x, (enum accel_scalar)i, g, call->routine->dtype, call->scalar[i]);
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        x->ld[i][g] = (blas_int)call->span[i].ld;
        x->inc[i] = (blas_int)call->span[i].inc;
        x->stride[i] = (blas_int)call->span[i].stride;
    }
    x->batch[g] = (blas_int)call->batch;
}

static struct arguments arguments_of(struct random_call *random, unsigned *seed)
{
    struct arguments x = {.groups = random->groups};
    for (int g = 0; g < random->groups; g++)
        put_group(&x, random, g, seed);
    for (int i = 0; random->groups > 0 && i < ACCEL_MATRICES; i++)
        x.matrix[i] = random->group[0].span[i].array ? (void *)random->array[i]
                                                     : random->group[0].span[i].ptr;
    return x;
}

/* ---- One call ---- */

static const char *const interfaces[] = {"fortran", "no-lengths", "cblas-column", "cblas-row"};

static void describe_group(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        const struct accel_span *x = &call->span[arg->slot];
        const struct accel_complex *z = &call->scalar[arg->slot];
        if (arg->kind == ACCEL_ARG_FLAG)
            fprintf(stderr, " %s=%c", arg->name, call->flag[arg->slot]);
        else if (arg->kind == ACCEL_ARG_SCALAR || arg->kind == ACCEL_ARG_REAL)
            fprintf(stderr, " %s=(%g,%g)", arg->name, z->re, z->im);
        else if (arg->kind == ACCEL_ARG_SIZE)
            fprintf(stderr, " %s=%ld", arg->name, (long)call->size[arg->slot]);
        else if (arg->kind == ACCEL_ARG_LD)
            fprintf(stderr, " %s=%ld", arg->name, (long)x->ld);
        else if (arg->kind == ACCEL_ARG_INC)
            fprintf(stderr, " %s=%ld", arg->name, (long)x->inc);
        else if (arg->kind == ACCEL_ARG_STRIDE)
            fprintf(stderr, " %s=%ld", arg->name, (long)x->stride);
        else if (arg->kind == ACCEL_ARG_BATCH)
            fprintf(stderr, " %s=%ld", arg->name, (long)call->batch);
    }
}

static void describe(struct random_call *random, const struct test_options *options, unsigned seed,
                     double ratio, bool right_memory)
{
    flockfile(stderr);
    fprintf(stderr, "wrong: %s %s", interfaces[options->interface], random->routine->name);
    for (int g = 0; g < random->groups; g++) {
        fprintf(stderr, "%s", g ? " |" : "");
        describe_group(&random->group[g]);
    }
    fprintf(stderr, ", -n %d -s %u: ratio %g, memory %s\n", options->max_size, seed, ratio,
            right_memory ? "untouched" : "touched");
    funlockfile(stderr);
}

/* The operands of group g are to be found on the host. */
static void bring_home(struct random_call *random, int g, bool *right_memory)
{
    struct accel_call *call = &random->group[g];
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        const struct matrix *m = random_call_matrix(random, g, (enum accel_matrix)i);
        struct accel_span *x = &call->span[i];
        if (!m)
            continue;
        if (random->same_as[g][i] == (enum accel_matrix)i)
            *right_memory = matrix_is_untouched(&random->matrix[g][i]) && *right_memory;
        x->ptr = m->memory + matrix_offset(m, 0);
        void **array = (void **)x->array;
        for (int64_t p = 0; array && p < call->batch; p++)
            array[p] = m->memory + matrix_offset(m, random->slot[g][i][p]);
    }
}

/* What the output of group g was. */
static char *before_of(struct random_call *random, int g)
{
    const struct accel_call *call = &random->group[g];
    int i = 0;
    while (!random->matrix[g][i].output)
        i++;
    const struct matrix *m = &random->matrix[g][i];
    size_t bytes = (size_t)(m->rows * m->cols) * accel_dtype_size(m->dtype);
    char *packed = malloc(bytes * (size_t)call->batch + 1);
    if (!packed)
        abort();
    for (int64_t p = 0; p < call->batch; p++)
        matrix_pack(m, random->slot[g][i][p], packed + (size_t)p * bytes);
    return packed;
}

static bool one_call(const struct test_options *options, uint32_t routine, blas_function *function,
                     unsigned *seed, const struct test_memory *const memory[ACCEL_MATRICES])
{
    struct random_call random;
    unsigned first_seed = *seed;
    bool row_major = options->interface == TEST_CBLAS_ROW, right_memory = true;
    const struct random_limits limits = {
        .row_major = row_major,
        .max_size = options->max_size,
        .one_group = has_fault(options, FAULT_GROUPS),
        .no_lower_ssymv = has_fault(options, FAULT_SYMV),
        .no_conjugate = has_fault(options, FAULT_CONJUGATE),
    };
    random_call_make(&random, &accel_routines[routine], &limits, memory, seed);
    const struct arguments arguments = arguments_of(&random, seed);
    interface_call(options->interface, routine, function, &arguments);

    double worst = 0;
    for (int g = 0; g < random.groups; g++) {
        char *before = before_of(&random, g);
        bring_home(&random, g, &right_memory);
        double ratio = cpu_ref_ratio(&random.group[g],
                                     row_major ? ACCEL_ROW_MAJOR : ACCEL_COLUMN_MAJOR, before);
        if (!(ratio <= worst))
            worst = ratio;
        free(before);
    }
    bool right = right_memory && worst <= CPU_REF_THRESHOLD;
    if (!right)
        describe(&random, options, first_seed, worst, right_memory);
    random_call_release(&random);
    return right;
}

/* ---- All calls ---- */

static bool is_wanted(const struct test_options *options, uint32_t routine)
{
    if (accel_is_lapack(&accel_routines[routine])) /* tests/lapack has those */
        return false;
    return fnmatch(options->routines, accel_routines[routine].name, FNM_EXTMATCH) == 0;
}

static blas_function *function_of(const struct test_options *options, uint32_t routine)
{
    return is_wanted(options, routine)
               ? provider_find(&options->provider, routine, is_cblas(options->interface))
               : NULL;
}

int test_calls_count(const struct test_options *options)
{
    int n = 0;
    for (uint32_t routine = 0; routine < accel_routine_count; routine++)
        n += function_of(options, routine) ? options->count : 0;
    return n;
}

int test_calls(const struct test_options *options,
               const struct test_memory *const memory[ACCEL_MATRICES])
{
    static const struct test_memory *const host[ACCEL_MATRICES];
    blas_function *functions[accel_routine_count];
    unsigned seed = options->seed;
    int wrong = 0;
    for (uint32_t routine = 0; routine < accel_routine_count; routine++)
        functions[routine] = function_of(options, routine);
    for (int i = 0; i < options->count; i++)
        for (uint32_t routine = 0; routine < accel_routine_count; routine++)
            if (functions[routine])
                wrong +=
                    !one_call(options, routine, functions[routine], &seed, memory ? memory : host);
    return wrong;
}

void test_calls_say_lacking(const struct test_options *options)
{
    bool first = true;
    for (uint32_t routine = 0; routine < accel_routine_count; routine++) {
        if (!is_wanted(options, routine) || function_of(options, routine))
            continue;
        printf("%s %s", first ? "lacks:" : "", accel_routines[routine].name);
        first = false;
    }
    printf("%s", first ? "" : "\n");
}

/* ---- Options ---- */

static enum test_interface interface_of(const char *name)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(interfaces[i], name) == 0)
            return (enum test_interface)i;
    fprintf(stderr, "-i: fortran, no-lengths, cblas-column, cblas-row\n");
    exit(2);
}

int test_options_read(struct test_options *options, int argc, char **argv)
{
    int option;
    *options =
        (struct test_options){TEST_FORTRAN, 1, 10, 40, "*", {.prefix = "", .suffix = ""}, ""};
    while ((option = getopt(argc, argv, "+i:s:c:n:r:l:p:x:f:")) != -1) {
        switch (option) {
        case 'i':
            options->interface = interface_of(optarg);
            break;
        case 's':
            options->seed = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            options->count = atoi(optarg);
            break;
        case 'n':
            options->max_size = atoi(optarg);
            break;
        case 'r':
            options->routines = optarg;
            break;
        case 'l':
            options->provider.library = optarg;
            break;
        case 'p':
            options->provider.prefix = optarg;
            break;
        case 'x':
            options->provider.suffix = optarg;
            break;
        case 'f':
            options->faults = optarg;
            break;
        default:
            exit(2);
        }
    }
    provider_open(&options->provider);
    if (test_calls_count(options) < 1) {
        fprintf(stderr, "no calls: -c %d -r %s\n", options->count, options->routines);
        exit(2);
    }
    return optind;
}
