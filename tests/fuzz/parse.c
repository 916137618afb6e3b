/*
 * The reading of arguments and the decision, with any arguments of any exported name: what is
 * passed by reference lies in memory of exactly its size, matrices and workspace nowhere. So what
 * reads or writes anything that the routine itself would not touch, or touches a matrix at all, is
 * caught.
 */
#include <math.h>
#include <string.h>

#include "dispatch/decide.h"
#include "ops/rules/lapack_rules.h"
#include "report/log.h"
#include "report/report.h"
#include "dispatch/cost/misprediction.h"
#include "fuzz.h"
#include "ops/blas/parse.h"
#include "ops/blas/pass.h"
#include "ops/names.h"
#include "ops/rules/rules.h"
#include "shim/arch/entry.h"

/* ---- The bytes, one after the other; 0 behind the last ---- */

static const uint8_t *next;
static size_t left;

static unsigned take_byte(void)
{
    return left > 0 ? (left--, *next++) : 0;
}

static uint64_t take_word(void)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | take_byte();
    return word;
}

/* Mostly small; any there is, and those at the limits. */
static int64_t take_integer(int width)
{
    static const int64_t limits[] = {INT32_MAX,        INT32_MIN,        INT64_MAX, INT64_MIN,
                                     (int64_t)1 << 31, (int64_t)1 << 40, -1,        0};
    unsigned kind = take_byte();
    int64_t value = kind < 160   ? (int64_t)kind
                    : kind < 192 ? (int8_t)take_byte()
                    : kind < 224 ? (int64_t)(take_byte() << 8 | take_byte())
                    : kind < 240 ? limits[kind % 8]
                                 : (int64_t)take_word();
    return width == 64 ? value : (int32_t)value;
}

/* ---- Memory of exactly its size, until the call is over ---- */

enum { BLOCKS_MAX = 2 * ACCEL_ARGS_MAX };
static void *blocks[BLOCKS_MAX];
static int block_count;

static void *block(size_t size)
{
    void *memory = calloc(1, size + (size == 0));
    if (!memory || block_count == BLOCKS_MAX)
        abort();
    if (size == 0)
        memory = realloc(memory, 1);
    blocks[block_count++] = memory;
    return memory;
}

static void free_blocks(void)
{
    while (block_count > 0)
        free(blocks[--block_count]);
}

static void *integers(const int64_t *values, int64_t count, int width)
{
    char *memory = block((size_t)count * (size_t)width / 8);
    for (int64_t i = 0; i < count; i++) {
        int32_t narrow = (int32_t)values[i];
        memcpy(memory + i * width / 8, width == 64 ? (const void *)&values[i] : &narrow,
               (size_t)width / 8);
    }
    return memory;
}

/* ---- One call ---- */

enum { GROUPS_MAX = 4, PRODUCTS_MAX = 8 };

struct fuzz_call {
    const struct accel_routine *routine;
    enum accel_abi abi;
    int width;
    int64_t groups;   /* what is passed */
    int64_t stored;   /* groups that the arrays have */
    int64_t products; /* of all groups, that the arrays of matrices have */
    int64_t batch[GROUPS_MAX];
    int words, reals;
    struct accel_frame *frame;
};

static size_t scalar_size(const struct accel_routine *routine, const struct accel_arg *arg)
{
    size_t size = accel_dtype_size(routine->dtype);
    return arg->kind == ACCEL_ARG_REAL && accel_is_complex(routine->dtype) ? size / 2 : size;
}

/* Nobody's memory: the page is not mapped, and any use ends the program. NULL, too. */
static void *nowhere(void)
{
    return (void *)(uintptr_t)(take_byte() % 8 ? ((uint64_t)take_byte() + 16) << 12 : 0);
}

static void put_word(struct fuzz_call *f, uint64_t word)
{
    int i = f->words++;
    if (i < ACCEL_WORD_REGISTERS)
        f->frame->gpr[i] = word;
    else
        f->frame->stack[i - ACCEL_WORD_REGISTERS] = word;
}

/* For each group, where the argument is an array. */
static int64_t length_of(const struct fuzz_call *f, const struct accel_arg *arg)
{
    return arg->array ? f->stored : 1;
}

static void put_integer(struct fuzz_call *f, const struct accel_arg *arg)
{
    int64_t values[GROUPS_MAX] = {0};
    for (int64_t i = 0; i < length_of(f, arg); i++)
        values[i] = arg->kind == ACCEL_ARG_GROUPS                ? f->groups
                    : arg->kind == ACCEL_ARG_BATCH && arg->array ? f->batch[i]
                                                                 : take_integer(f->width);
    if (f->abi == ACCEL_ABI_FORTRAN || arg->array)
        put_word(f, (uintptr_t)integers(values, length_of(f, arg), f->width));
    else /* the upper half of a register is whatever it is */
        put_word(f, f->width == 64 ? (uint64_t)values[0]
                                   : (uint32_t)values[0] | (uint64_t)take_byte() << 32);
}

static void put_flag(struct fuzz_call *f, const struct accel_arg *arg)
{
    static const int cblas[] = {111, 112, 113, 114, 121, 122, 131, 132, 141, 142};
    int64_t count = length_of(f, arg);
    int32_t codes[GROUPS_MAX];
    char letters[GROUPS_MAX];
    for (int64_t i = 0; i < count; i++) {
        unsigned which = take_byte();
        size_t allowed = strlen(arg->allowed);
        letters[i] = which < 224 ? arg->allowed[which % allowed] : (char)take_byte();
        codes[i] = which < 224 ? cblas[which % 10] : (int32_t)take_integer(32);
    }
    if (f->abi == ACCEL_ABI_LAPACKE)
        put_word(f, (unsigned char)letters[0]);
    else if (f->abi == ACCEL_ABI_CBLAS && !arg->array)
        put_word(f, (uint32_t)codes[0]);
    else if (f->abi == ACCEL_ABI_CBLAS)
        put_word(f, (uintptr_t)memcpy(block((size_t)count * 4), codes, (size_t)count * 4));
    else
        put_word(f, (uintptr_t)memcpy(block((size_t)count), letters, (size_t)count));
}

static void put_scalar(struct fuzz_call *f, const struct accel_arg *arg)
{
    static const double values[] = {0, 1, -1, 0.5, 1e300, (double)INFINITY, (double)NAN, -0.0};
    size_t size = scalar_size(f->routine, arg);
    double wide[2] = {values[take_byte() % 8], values[take_byte() % 8]};
    float narrow[2] = {(float)(wide[0] > 1e30 ? 1e30 : wide[0]),
                       (float)(wide[1] > 1e30 ? 1e30 : wide[1])};
    const void *from = accel_is_double(f->routine->dtype) ? (const void *)wide : narrow;
    bool by_value = f->abi != ACCEL_ABI_FORTRAN && !arg->array &&
                    (arg->kind == ACCEL_ARG_REAL || !accel_is_complex(f->routine->dtype));
    if (by_value) {
        memcpy(f->frame->fpr[f->reals++], from, size);
        return;
    }
    char *memory = block((size_t)length_of(f, arg) * size);
    for (int64_t i = 0; i < length_of(f, arg); i++)
        memcpy(memory + (size_t)i * size, from, size);
    put_word(f, (uintptr_t)memory);
}

static void put_matrix(struct fuzz_call *f, const struct accel_arg *arg)
{
    if (!arg->array) {
        put_word(f, (uintptr_t)nowhere());
        return;
    }
    void **array = block((size_t)f->products * sizeof *array);
    for (int64_t i = 0; i < f->products; i++)
        array[i] = nowhere();
    put_word(f, (uintptr_t)array);
}

static void put_argument(struct fuzz_call *f, const struct accel_arg *arg)
{
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        put_flag(f, arg);
        break;
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        put_scalar(f, arg);
        break;
    case ACCEL_ARG_MATRIX:
    case ACCEL_ARG_VECTOR:
        put_matrix(f, arg);
        break;
    case ACCEL_ARG_WORK: /* its first element is written on success */
        put_word(f, (uintptr_t)block(16));
        break;
    case ACCEL_ARG_INFO:
        put_word(f, (uintptr_t)block((size_t)f->width / 8));
        break;
    case ACCEL_ARG_EXTRA:
        put_word(f, (uintptr_t)nowhere());
        break;
    default:
        put_integer(f, arg);
    }
}

/* Groups of a batch, and the products of each; arrays have no elements where a count is not
 * positive. */
static void choose_groups(struct fuzz_call *f)
{
    f->groups = take_byte() % 8 ? (int64_t)(take_byte() % GROUPS_MAX) : take_integer(f->width);
    f->groups = f->groups > GROUPS_MAX ? GROUPS_MAX : f->groups;
    f->stored = f->groups > 0 ? f->groups : 0;
    for (int64_t i = 0; i < f->stored; i++) {
        f->batch[i] = take_integer(f->width);
        if (f->batch[i] > PRODUCTS_MAX)
            f->batch[i] = PRODUCTS_MAX;
        f->products += f->batch[i] > 0 ? f->batch[i] : 0;
    }
}

static void make_call(struct fuzz_call *f)
{
    uint32_t entry = (take_byte() << 8 | take_byte()) % accel_blas_name_count;
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    *f = (struct fuzz_call){.routine = accel_name_routine(entry), .abi = mangling->abi};
    f->width = mangling->width ? mangling->width : take_byte() % 2 ? 64 : 32;
    f->frame = block(sizeof *f->frame + 8 * blas_stack_words(f->routine, f->abi));
    choose_groups(f);
    if (f->abi != ACCEL_ABI_FORTRAN)
        put_word(f, take_byte() % 8 ? 101 + take_byte() % 2 : take_word());
    for (int i = 0; i < f->routine->args; i++) {
        const struct accel_arg *arg = &f->routine->arg[i];
        bool passed = f->abi == ACCEL_ABI_LAPACKE ? !accel_is_fortran_only(arg->kind)
                                                  : arg->kind != ACCEL_ARG_EXTRA;
        if (passed)
            put_argument(f, arg);
    }
}

/* ---- What is done with it ---- */

static void nothing(void) {}

static void call_nothing(struct accel_passed passed)
{
    accel_invoke((void *)(uintptr_t)nothing, &passed);
}

/* What the GPU's side relies on. */
static void check_shapes(const struct accel_call *call)
{
    FUZZ_CHECK(!accel_call_fault(call));
    FUZZ_CHECK(call->batch >= 0);
    for (int i = 0; i < ACCEL_SIZES; i++)
        FUZZ_CHECK(call->blas.size[i] >= 0 || i > ACCEL_DIMENSIONS);
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        const struct accel_span *x = &call->span[accel_span_of(arg)];
        if (arg->kind != ACCEL_ARG_MATRIX && arg->kind != ACCEL_ARG_VECTOR)
            continue;
        FUZZ_CHECK(x->rows >= 0 && x->cols >= 0 && x->ld >= 1 && x->ld >= x->rows);
        FUZZ_CHECK(accel_extent(x, x->array ? 1 : call->batch) >= 0);
        FUZZ_CHECK(accel_bytes(x) >= 0);
    }
}

static void decide(struct accel_call *call)
{
    static const char *const routines[] = {NULL, "blas:", "lapack:*", "?gemm,[sd]*"};
    const struct model_rates cpu_rates = model_cpu_rates(4), gpu_rates = model_gpu_rates();
    struct model_curve cpu, gpu;
    struct accel_machine machine;
    struct accel_settings settings = {.on = true, .memory_share = 0.8};
    model_nominal_cpu(&cpu, call->routine, &cpu_rates);
    model_nominal_gpu(&gpu, call->routine, &gpu_rates);
    accel_machine_init(&machine, &cpu, &gpu);
    unsigned choice = take_byte();
    machine.gpu = (enum device_state)(choice % 6);
    machine.gpu_memory = choice & 64 ? 1 << 20 : INT64_MAX;
    machine.lost = choice & 128;
    choice = take_byte();
    settings.policy = (enum accel_policy)(choice % 3);
    settings.require_gpu = choice & 4;
    settings.gpu_routines.text = routines[choice >> 3 & 3];
    settings.cpu_routines.text = routines[choice >> 5 & 3];
    for (int i = 0; i < ACCEL_SPANS; i++) {
        unsigned place = take_byte();
        if (place >= 192)
            call->span[i].place = (enum accel_place)(place % 4);
    }

    struct problem problem;
    problem_of(&problem, call);
    const struct accel_decision decision = accel_decide(&problem, &machine, &settings);
    FUZZ_CHECK(decision.why < ACCEL_WHYS);
    /* LAPACKE's rows are the original's, whatever their sizes are. */
    if (!accel_is_rows_of_lapack(call))
        FUZZ_CHECK(decision.est_cpu_ms >= 0 && decision.est_gpu_ms >= 0);
    if (decision.gpu)
        check_shapes(call);
    else
        accel_is_fallback(&problem, &machine, &settings, decision.why);
    lapack_gpu_bytes(call);
    call_site_key(1, call);
    const struct accel_record record = record_of(call, "symbol", 0, decision);
    if (!report_is_on()) {
        log_start(ACCEL_LOG_DECISIONS, NULL, 0);
        log_start(ACCEL_LOG_JSON, NULL, 0);
    }
    report_decision(&record); /* to nowhere: output_start() has noted no stderr */
}

static bool has_groups(const struct accel_routine *routine)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_GROUPS)
            return true;
    return false;
}

/* As accel_enter() and its batches of several groups go about it. */
static void use(struct fuzz_call *f)
{
    const struct accel_passed passed = {.gpr = f->frame->gpr,
                                        .fpr = (const double(*)[2])f->frame->fpr,
                                        .stack = f->frame->stack,
                                        .abi = f->abi,
                                        .width = f->width};
    struct accel_words words;
    struct accel_call call;
    blas_parse(&call, f->routine, &passed);
    if (accel_is_batch(f->routine))
        accel_op_of(f->routine)->rules->largest(f->routine, &passed);
    do {
        struct accel_call part = call;
        FUZZ_CHECK(call.parts == (has_groups(f->routine) ? f->groups : 1));
        bool wrong = accel_call_fault(&part) != NULL;
        decide(&part);
        if (!wrong && call.parts >= 1)
            call_nothing(blas_pass(&words, f->abi, f->width, &part));
    } while (accel_is_batch(f->routine) && accel_op_of(f->routine)->rules->next(&call, &passed));
    FUZZ_CHECK(call.parts <= 1 || call.part + 1 == call.parts);
    if (f->width == 64) /* its integers are as long as it reads them */
        blas_is_wide(f->routine, &passed);
    call_nothing(blas_repeat(&words, f->routine, &passed));
    struct accel_result result = {0};
    blas_complete(&call, &passed, NULL, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_call f;
    next = data;
    left = size;
    make_call(&f);
    use(&f);
    free_blocks();
    return 0;
}
