#include "parse.h"

#include <string.h>

#include "abi.h"
#include "base/text/text.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "call/shape.h"
#include "row_major.h"

static bool is_trans(int flag)
{
    return flag == ACCEL_transa || flag == ACCEL_transb || flag == ACCEL_trans;
}

static struct accel_complex load_scalar(const void *p, enum accel_dtype dtype)
{
    struct accel_complex z = {0, 0};
    float f[2];
    switch (dtype) {
    case ACCEL_FLOAT32:
        memcpy(f, p, 4);
        z.re = f[0];
        break;
    case ACCEL_FLOAT64:
        memcpy(&z.re, p, 8);
        break;
    case ACCEL_COMPLEX64:
        memcpy(f, p, 8);
        z.re = f[0];
        z.im = f[1];
        break;
    default:
        memcpy(&z, p, 16);
    }
    return z;
}

/*
 * The order of reading. BLAS and LAPACK read their flags and sizes first. If one of these is wrong,
 * or there is nothing to compute, they read no more, and the other references may be NULL.
 */
enum reading_step {
    READ_NEVER,  /* the interface has no such argument */
    READ_FIRST,  /* flags, sizes, and the operands' addresses */
    READ_SHAPES, /* leading dimensions, increments, strides */
    READ_VALUES  /* scalars, which only a call that computes something reads */
};

static enum reading_step reading_of(const struct accel_arg *arg)
{
    switch (arg->kind) {
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        return READ_VALUES;
    case ACCEL_ARG_LD:
    case ACCEL_ARG_INC:
    case ACCEL_ARG_STRIDE:
        return READ_SHAPES;
    case ACCEL_ARG_INTEGER:
        return arg->slot == ACCEL_il || arg->slot == ACCEL_iu ? READ_VALUES : READ_SHAPES;
    default:
        return READ_FIRST;
    }
}

/* Where a caller's arguments are. The addresses in `word` may lead nowhere: see enum reading_step.
 */
struct arguments {
    const struct accel_routine *routine;
    const struct accel_passed *passed;
    int64_t group, before;         /* of a grouped batch: the group, and the products before it */
    uint64_t word[ACCEL_ARGS_MAX]; /* a scalar by value: the address of its register */
    unsigned char step[ACCEL_ARGS_MAX]; /* enum reading_step */
    bool judged, valid;                 /* once judged: whether its flags and shapes are */
};

/* Finds the arguments: words fill their registers, then the stack; real scalars fill vector
 * registers, which no BLAS routine exhausts. */
static void find_words(struct arguments *p)
{
    const enum accel_abi abi = p->passed->abi;
    int words = abi != ACCEL_ABI_FORTRAN ? 1 : 0, reals = 0;
    for (int i = 0; i < p->routine->args; i++) {
        const struct accel_arg *arg = &p->routine->arg[i];
        p->step[i] = READ_NEVER;
        if (!blas_is_passed(abi, arg))
            continue;
        p->step[i] = (unsigned char)reading_of(arg);
        p->word[i] = blas_is_by_value(abi, p->routine, arg) ? (uintptr_t)p->passed->fpr[reals++]
                                                            : accel_passed_word(p->passed, words++);
    }
}

static int64_t read_integer(const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    if (p->passed->abi != ACCEL_ABI_FORTRAN && !arg->array)
        return p->passed->width == 64 ? (int64_t)p->word[i] : (int32_t)p->word[i];
    return blas_load_integer(p->word[i], p->passed->width, arg->array ? p->group : 0);
}

static char read_flag(const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    const uint64_t word = p->word[i];
    char letter;
    if (p->passed->abi == ACCEL_ABI_CBLAS) {
        const char *letters = blas_letters[arg->slot].letters;
        int32_t code =
            (int32_t)(arg->array ? blas_load_integer(word, 32, p->group) : (int64_t)word);
        int64_t value = (int64_t)code - blas_letters[arg->slot].first;
        letter = value >= 0 && value < (int64_t)strlen(letters) ? letters[value] : '?';
    } else {
        letter = p->passed->abi == ACCEL_ABI_LAPACKE
                     ? (char)word
                     : ((const char *)(uintptr_t)word)[arg->array ? p->group : 0];
        letter = text_upper(letter);
    }
    if (letter == 'R' && is_trans(arg->slot))
        return 'R';
    if (letter && strchr(arg->allowed, letter))
        return letter;
    return strchr(arg->allowed, '*') ? '*' : '?';
}

static struct accel_complex read_scalar(const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    enum accel_dtype dtype = blas_scalar_dtype(p->routine, arg->kind);
    const char *at = (const char *)(uintptr_t)p->word[i];
    return load_scalar(at + (arg->array ? p->group * (int64_t)accel_dtype_size(dtype) : 0), dtype);
}

/* ---- From the caller to the canonical call ---- */

int64_t blas_groups(const struct accel_routine *routine, const struct accel_passed *passed)
{
    for (int i = 0; accel_is_batch(routine) && i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_GROUPS) {
            uint64_t word = blas_word_of(passed, i);
            if (passed->abi == ACCEL_ABI_FORTRAN)
                return blas_load_integer(word, passed->width, 0);
            return passed->width == 64 ? (int64_t)word : (int32_t)word;
        }
    return 1;
}

static void read_address(struct accel_call *call, const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    struct accel_span *x = &call->span[arg->slot];
    x->name = arg->name;
    x->ptr = (void *)(uintptr_t)p->word[i];
    x->ld = 1; /* unless one follows */
    x->inc = arg->kind == ACCEL_ARG_VECTOR;
    if (arg->array && x->ptr)
        x->array = (void *const *)x->ptr + p->before;
}

static void read_integer_argument(struct accel_call *call, const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    const int64_t value = read_integer(p, i);
    call->blas.given[i] = *blas_integer_of(call, arg) = value;
    if (arg->kind == ACCEL_ARG_INC)
        call->span[arg->slot].ld = value < 0 ? -(value + (value == INT64_MIN)) : value;
}

static bool is_valid(const struct accel_call *call, struct arguments *p)
{
    if (!p->judged)
        p->valid = !accel_call_shape_fault(call);
    p->judged = true;
    return p->valid;
}

/* Reads a scalar, or a bound of a range; one by reference only if the original does. */
static void read_value(struct accel_call *call, struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    struct accel_complex *scalar = &call->blas.scalar[arg->slot];
    bool by_reference = p->passed->abi == ACCEL_ABI_FORTRAN || arg->array ||
                        (arg->kind == ACCEL_ARG_SCALAR && accel_is_complex(p->routine->dtype));
    if (by_reference && !(is_valid(call, p) && accel_call_looks_at(call, arg))) {
        if (arg->kind != ACCEL_ARG_INTEGER && arg->slot == ACCEL_beta)
            scalar->re = 1; /* the output stays as it is */
        return;
    }
    if (arg->kind == ACCEL_ARG_INTEGER) {
        read_integer_argument(call, p, i);
        return;
    }
    *scalar = read_scalar(p, i);
    /* In row-major order, C = C^H. */
    if (call->blas.layout == ACCEL_ROW_MAJOR && arg->slot == ACCEL_alpha &&
        p->routine->row_major == ACCEL_FLIP_TRANS && accel_is_hermitian(p->routine))
        scalar->im = -scalar->im;
}

static void read_argument(struct accel_call *call, const struct arguments *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        call->blas.given[i] = call->blas.flag[arg->slot] = read_flag(p, i);
        break;
    case ACCEL_ARG_WORK:
    case ACCEL_ARG_INFO:
    case ACCEL_ARG_EXTRA:
        call->blas.given[i] = (int64_t)p->word[i];
        break;
    case ACCEL_ARG_MATRIX:
    case ACCEL_ARG_VECTOR:
        read_address(call, p, i);
        break;
    default:
        read_integer_argument(call, p, i);
    }
}

static void read_arguments(struct accel_call *call, struct arguments *p, enum reading_step which)
{
    for (int i = 0; i < p->routine->args; i++) {
        if (p->step[i] != which)
            continue;
        if (which == READ_VALUES)
            read_value(call, p, i);
        else
            read_argument(call, p, i);
    }
}

/* Returns whether a flag or a size is wrong whatever the others are. */
static bool is_wrong_at_once(const struct accel_call *call)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if ((arg->kind == ACCEL_ARG_FLAG && call->blas.flag[arg->slot] == '?') ||
            (arg->kind == ACCEL_ARG_SIZE && call->blas.size[arg->slot] < 0))
            return true;
    }
    return false;
}

/* Fills in a batch of no groups, or fewer, whose arrays may not be read. */
static void read_no_groups(struct accel_call *call)
{
    call->batch = 0;
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG)
            call->blas.given[i] = call->blas.flag[arg->slot] = arg->allowed[0];
        if (arg->kind == ACCEL_ARG_LD)
            call->span[arg->slot].ld = 1;
        if (arg->kind == ACCEL_ARG_GROUPS)
            call->blas.given[i] = call->parts;
    }
}

/* Reads all but the values. */
static void read_shapes(struct accel_call *call, struct arguments *p)
{
    memset(call, 0, sizeof *call);
    call->routine = p->routine;
    call->op = accel_op_of(p->routine);
    call->blas.layout = ACCEL_COLUMN_MAJOR;
    call->blas.width = p->passed->width;
    call->blas.has_work = p->passed->abi == ACCEL_ABI_FORTRAN;
    call->batch = 1;
    call->part = p->group;
    call->blas.before = p->before;
    call->parts = blas_groups(p->routine, p->passed);
    if (p->passed->abi != ACCEL_ABI_FORTRAN) {
        int32_t layout = (int32_t)accel_passed_word(p->passed, 0);
        call->blas.layout = layout == CBLAS_COL_MAJOR   ? ACCEL_COLUMN_MAJOR
                            : layout == CBLAS_ROW_MAJOR ? ACCEL_ROW_MAJOR
                                                        : ACCEL_NO_LAYOUT;
    }
    find_words(p);
    if (call->parts < 1) {
        read_no_groups(call);
    } else {
        read_arguments(call, p, READ_FIRST);
        if (!is_wrong_at_once(call))
            read_arguments(call, p, READ_SHAPES);
    }
    if (call->blas.layout == ACCEL_ROW_MAJOR)
        row_major_exchange(call);
    shape_operands(call);
}

/* The kinds of arguments that are read first, and are no addresses. */
#define SHAPES (1u << ACCEL_ARG_FLAG | 1u << ACCEL_ARG_SIZE | 1u << ACCEL_ARG_LWORK)

static uint64_t shape_word(const struct accel_passed *passed, enum accel_kind kind, uint64_t word)
{
    if (passed->abi == ACCEL_ABI_FORTRAN)
        return kind == ACCEL_ARG_FLAG ? *(const unsigned char *)(uintptr_t)word
                                      : (uint64_t)blas_load_integer(word, passed->width, 0);
    if (kind == ACCEL_ARG_FLAG) /* a letter or a code: a register may have anything above it */
        return passed->abi == ACCEL_ABI_LAPACKE ? (unsigned char)word : (uint32_t)word;
    return passed->width == 64 ? word : (uint32_t)word;
}

int blas_shape(uint64_t word[ACCEL_ARGS_MAX + 1], const struct accel_routine *routine,
               const struct accel_passed *passed)
{
    const enum accel_abi abi = passed->abi;
    int count = 0, at = 0;
    if (accel_is_batch(routine))
        return 0;
    if (abi != ACCEL_ABI_FORTRAN)
        word[count++] = (uint32_t)accel_passed_word(passed, at++); /* the order of matrices */
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (!blas_is_passed(abi, arg) || blas_is_by_value(abi, routine, arg))
            continue;
        if (SHAPES >> arg->kind & 1)
            word[count++] = shape_word(passed, arg->kind, accel_passed_word(passed, at));
        at++;
    }
    return count;
}

/* Sets ptr to the first matrix of an operand's array; to NULL if no matrix has elements. */
static void read_first_matrix(const struct accel_call *call, struct accel_span *x)
{
    bool any = call->batch > 0 && x->rows > 0 && x->cols > 0 && !accel_call_shape_fault(call) &&
               !accel_call_touches_nothing(call);
    x->ptr = any ? x->array[0] : NULL;
}

void blas_parse(struct accel_call *call, const struct accel_routine *routine,
                const struct accel_passed *passed)
{
    blas_parse_group(call, routine, passed, 0, 0);
}

void blas_parse_group(struct accel_call *call, const struct accel_routine *routine,
                      const struct accel_passed *passed, int64_t group, int64_t before)
{
    struct arguments p = {.routine = routine, .passed = passed, .group = group, .before = before};
    read_shapes(call, &p);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].array)
            read_first_matrix(call, &call->span[i]);
    if (call->parts >= 1)
        read_arguments(call, &p, READ_VALUES);
    if (call->blas.flag[ACCEL_range] == 'I') /* il and iu tell the number of vectors */
        shape_operands(call);
}

static bool is_integer(enum accel_kind kind)
{
    return kind == ACCEL_ARG_SIZE || kind == ACCEL_ARG_LD || kind == ACCEL_ARG_INC ||
           kind == ACCEL_ARG_STRIDE || kind == ACCEL_ARG_BATCH || kind == ACCEL_ARG_GROUPS ||
           kind == ACCEL_ARG_INTEGER || kind == ACCEL_ARG_LWORK;
}

/* Returns whether the INTEGER is a size or tells where elements are: it is nonsense if it is read
 * too wide. */
static bool is_shape(enum accel_kind kind)
{
    return is_integer(kind) && kind != ACCEL_ARG_INTEGER && kind != ACCEL_ARG_LWORK;
}

static bool has_arrays(const struct accel_routine *routine)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].array)
            return true;
    return false;
}

/* Returns whether 8 bytes of each INTEGER can be read: a 32-bit one may be the last before an
 * unmapped page. */
static bool can_read_wide(const struct accel_routine *routine, const struct accel_passed *passed)
{
    int words = 0;
    if (passed->abi != ACCEL_ABI_FORTRAN)
        return true;
    for (int i = 0; i < routine->args; i++) {
        if (!blas_is_passed(passed->abi, &routine->arg[i]))
            continue;
        uint64_t word = accel_passed_word(passed, words++);
        if (is_integer(routine->arg[i].kind) && word % 4096 > 4096 - 8)
            return false;
    }
    return true;
}

bool blas_is_wide(const struct accel_routine *routine, const struct accel_passed *passed)
{
    const int64_t address_space = (int64_t)1 << 47;
    struct accel_call call;
    bool beyond = false;
    /* An array of 32-bit integers, read as 64-bit ones, would lead to other matrices. */
    if (has_arrays(routine) || !can_read_wide(routine, passed))
        return false;
    struct accel_passed wide = *passed;
    wide.width = 64;
    struct arguments p = {.routine = routine, .passed = &wide};
    read_shapes(&call, &p);
    if (accel_call_shape_fault(&call))
        return false;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        int64_t extent = accel_extent(&call.span[i], call.batch);
        if (extent < 0 || extent >= address_space)
            return false;
    }
    /* An increment or a stride does not tell: in a register, a negative one of 32 bits is large,
     * and in memory anything may be behind a one. */
    for (int i = 0; i < routine->args; i++)
        if (is_shape(routine->arg[i].kind) && routine->arg[i].kind != ACCEL_ARG_INC &&
            routine->arg[i].kind != ACCEL_ARG_STRIDE)
            beyond = beyond || call.blas.given[i] > INT32_MAX || call.blas.given[i] < INT32_MIN;
    return beyond;
}
