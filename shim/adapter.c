#include "adapter.h"

#include <float.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/small.h"
#include "ops/shape.h"
#include "ops/op.h"
#include "row_major.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_COL_MAJOR = 102 };

/* Values of the CBLAS enumerations (the reference cblas.h): the letters from `first` on, by flag. R
 * is OpenBLAS's CblasConjNoTrans, 114. */
static const struct {
    int first;
    const char *letters;
} cblas_flags[ACCEL_FLAGS] = {
    [ACCEL_transa] = {111, "NTCR"}, [ACCEL_transb] = {111, "NTCR"}, [ACCEL_trans] = {111, "NTCR"},
    [ACCEL_uplo] = {121, "UL"},     [ACCEL_diag] = {131, "NU"},     [ACCEL_side] = {141, "LR"},
};

static bool is_trans(int flag)
{
    return flag == ACCEL_transa || flag == ACCEL_transb || flag == ACCEL_trans;
}

/* The System V rule for our argument types: INTEGER-class words fill six registers, then the stack;
 * real scalars fill xmm0-7, which no BLAS routine exhausts. */
struct reader {
    const struct accel_frame *frame;
    int words, reals;
};

/* Whether an interface has an argument of that kind. */
static bool is_passed(enum accel_abi abi, const struct accel_arg *arg)
{
    return abi == ACCEL_ABI_LAPACKE ? !accel_is_fortran_only(arg->kind)
                                    : arg->kind != ACCEL_ARG_EXTRA;
}

static uint64_t next_word(struct reader *r)
{
    int i = r->words++;
    return i < 6 ? r->frame->gpr[i] : r->frame->stack[i - 6];
}

/* Whether a scalar comes in a vector register. */
static bool by_value(enum accel_abi abi, const struct accel_routine *routine,
                     const struct accel_arg *arg)
{
    return abi != ACCEL_ABI_FORTRAN && !arg->array &&
           (arg->kind == ACCEL_ARG_REAL ||
            (arg->kind == ACCEL_ARG_SCALAR && !accel_is_complex(routine->dtype)));
}

/* The type in which a scalar argument is passed. */
static enum accel_dtype scalar_dtype(const struct accel_routine *routine, enum accel_kind kind)
{
    if (kind == ACCEL_ARG_REAL)
        return accel_is_double(routine->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
    return routine->dtype;
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

static void store_scalar(void *p, struct accel_complex z, enum accel_dtype dtype)
{
    float f[2] = {(float)z.re, (float)z.im};
    if (accel_is_double(dtype))
        memcpy(p, &z, accel_dtype_size(dtype));
    else
        memcpy(p, f, accel_dtype_size(dtype));
}

/* INTEGER number `index` of an array; a single one is the first of one. */
static int64_t load_integer(uint64_t word, int width, int64_t index)
{
    return accel_integer_at(width == 64 ? ACCEL_INT64 : ACCEL_INT32, (const void *)(uintptr_t)word,
                            index);
}

/* A caller's call: where each argument is found. Behind its words there may be nothing to be read. */
struct passed {
    const struct accel_routine *routine;
    enum accel_abi abi;
    int width;
    struct accel_group group;
    uint64_t word[ACCEL_ARGS_MAX]; /* of a scalar by value, the address of its register */
};

static void find_words(struct passed *p, struct reader *r)
{
    for (int i = 0; i < p->routine->args; i++) {
        const struct accel_arg *arg = &p->routine->arg[i];
        if (!is_passed(p->abi, arg))
            continue;
        p->word[i] =
            by_value(p->abi, p->routine, arg) ? (uintptr_t)r->frame->xmm[r->reals++] : next_word(r);
    }
}

static int64_t read_integer(const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    if (p->abi != ACCEL_ABI_FORTRAN && !arg->array)
        return p->width == 64 ? (int64_t)p->word[i] : (int32_t)p->word[i];
    return load_integer(p->word[i], p->width, arg->array ? p->group.number : 0);
}

static char read_flag(const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    const uint64_t word = p->word[i];
    char letter;
    if (p->abi == ACCEL_ABI_CBLAS) {
        const char *letters = cblas_flags[arg->slot].letters;
        int32_t code =
            (int32_t)(arg->array ? load_integer(word, 32, p->group.number) : (int64_t)word);
        int64_t value = (int64_t)code - cblas_flags[arg->slot].first;
        letter = value >= 0 && value < (int64_t)strlen(letters) ? letters[value] : '?';
    } else {
        letter = p->abi == ACCEL_ABI_LAPACKE
                     ? (char)word
                     : ((const char *)(uintptr_t)word)[arg->array ? p->group.number : 0];
        if (letter >= 'a' && letter <= 'z')
            letter = (char)(letter - 'a' + 'A');
    }
    if (letter == 'R' && is_trans(arg->slot))
        return 'R';
    if (letter && strchr(arg->allowed, letter))
        return letter;
    return strchr(arg->allowed, '*') ? '*' : '?';
}

static struct accel_complex read_scalar(const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    enum accel_dtype dtype = scalar_dtype(p->routine, arg->kind);
    const char *at = (const char *)(uintptr_t)p->word[i];
    return load_scalar(at + (arg->array ? p->group.number * (int64_t)accel_dtype_size(dtype) : 0),
                       dtype);
}

/* ---- From the caller to the canonical call ---- */

/* The caller's word for argument i of a routine that has no scalar by value. */
static uint64_t word_of(const struct accel_frame *frame, enum accel_abi abi, int i)
{
    struct reader r = {frame, i + (abi != ACCEL_ABI_FORTRAN ? 1 : 0), 0};
    return next_word(&r);
}

int64_t accel_adapter_groups(const struct accel_routine *routine, enum accel_abi abi, int width,
                             const struct accel_frame *frame)
{
    for (int i = 0; accel_is_batch(routine) && i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_GROUPS) {
            uint64_t word = word_of(frame, abi, i);
            if (abi == ACCEL_ABI_FORTRAN)
                return load_integer(word, width, 0);
            return width == 64 ? (int64_t)word : (int32_t)word;
        }
    return 1;
}

bool accel_adapter_is_small(const struct accel_routine *routine, enum accel_abi abi, int width,
                            const struct accel_frame *frame, int64_t groups)
{
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_SIZE || arg->slot == ACCEL_k)
            continue;
        uint64_t word = word_of(frame, abi, i);
        for (int64_t g = 0; g < groups; g++)
            if (!small_is_size(load_integer(word, width, g)))
                return false;
    }
    return true;
}

static void read_vector_inc(struct accel_operand *x, int64_t inc)
{
    x->inc = inc;
    x->ld = inc < 0 ? -(inc + (inc == INT64_MIN)) : inc;
}

/*
 * BLAS and LAPACK look at their flags and sizes first. Where one of these is wrong, or there is nothing to compute, they
 * read no more, and what else is passed by reference may be NULL: so everything is read in this order.
 */
enum reading {
    READ_FIRST,  /* flags, sizes, and addresses, which are not followed */
    READ_SHAPES, /* where the elements of operands are */
    READ_VALUES  /* what only a call that computes something looks at */
};

static enum reading reading_of(const struct accel_arg *arg)
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

static void read_address(struct accel_call *call, const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    struct accel_operand *x = &call->operand[arg->slot];
    x->name = arg->name;
    x->ptr = (void *)(uintptr_t)p->word[i];
    x->ld = 1; /* unless one follows */
    x->inc = arg->kind == ACCEL_ARG_VECTOR;
    if (arg->array && x->ptr)
        x->array = (void *const *)x->ptr + p->group.products;
}

/* What is passed by value is there in any case. */
static void read_value(struct accel_call *call, const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    struct accel_complex *scalar = &call->scalar[arg->slot];
    bool by_reference = p->abi == ACCEL_ABI_FORTRAN || arg->array ||
                        (arg->kind == ACCEL_ARG_SCALAR && accel_is_complex(p->routine->dtype));
    if (by_reference && !accel_call_looks_at(call, arg)) {
        if (arg->kind != ACCEL_ARG_INTEGER && arg->slot == ACCEL_beta)
            scalar->re = 1; /* the output stays as it is */
        return;
    }
    if (arg->kind == ACCEL_ARG_INTEGER) {
        call->given[i] = call->size[arg->slot] = read_integer(p, i);
        return;
    }
    *scalar = read_scalar(p, i);
    /* In row-major order, C = C^H. */
    if (call->layout == ACCEL_ROW_MAJOR && arg->slot == ACCEL_alpha &&
        p->routine->row_major == ACCEL_FLIP_TRANS && accel_is_hermitian(p->routine))
        scalar->im = -scalar->im;
}

static void read_integer_argument(struct accel_call *call, const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    struct accel_operand *x = &call->operand[accel_operand_of(arg)];
    int64_t value = read_integer(p, i);
    call->given[i] = value;
    switch (arg->kind) {
    case ACCEL_ARG_SIZE:
    case ACCEL_ARG_INTEGER:
    case ACCEL_ARG_LWORK:
        call->size[arg->slot] = value;
        break;
    case ACCEL_ARG_LD:
        x->ld = value;
        break;
    case ACCEL_ARG_INC:
        read_vector_inc(x, value);
        break;
    case ACCEL_ARG_STRIDE:
        x->stride = value;
        break;
    case ACCEL_ARG_BATCH:
        call->batch = value;
        break;
    default: /* the number of groups is known */
        break;
    }
}

static void read_argument(struct accel_call *call, const struct passed *p, int i)
{
    const struct accel_arg *arg = &p->routine->arg[i];
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        call->given[i] = call->flag[arg->slot] = read_flag(p, i);
        break;
    case ACCEL_ARG_WORK:
    case ACCEL_ARG_INFO:
    case ACCEL_ARG_EXTRA:
        call->given[i] = (int64_t)p->word[i];
        break;
    case ACCEL_ARG_MATRIX:
    case ACCEL_ARG_VECTOR:
        read_address(call, p, i);
        break;
    default:
        read_integer_argument(call, p, i);
    }
}

static void read_arguments(struct accel_call *call, const struct passed *p, enum reading which)
{
    for (int i = 0; i < p->routine->args; i++) {
        const struct accel_arg *arg = &p->routine->arg[i];
        if (!is_passed(p->abi, arg) || reading_of(arg) != which)
            continue;
        if (which == READ_VALUES)
            read_value(call, p, i);
        else
            read_argument(call, p, i);
    }
}

/* Whether a flag or a size is wrong whatever the others are. */
static bool is_wrong_at_once(const struct accel_call *call)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if ((arg->kind == ACCEL_ARG_FLAG && call->flag[arg->slot] == '?') ||
            (arg->kind == ACCEL_ARG_SIZE && call->size[arg->slot] < 0))
            return true;
    }
    return false;
}

/* A batch of no groups, or fewer: its arrays have nothing to be read. */
static void read_no_groups(struct accel_call *call)
{
    call->batch = 0;
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG)
            call->given[i] = call->flag[arg->slot] = arg->allowed[0];
        if (arg->kind == ACCEL_ARG_LD)
            call->operand[arg->slot].ld = 1;
        if (arg->kind == ACCEL_ARG_GROUPS)
            call->given[i] = call->groups;
    }
}

/* All but the values, which may not be there. */
static void read_shapes(struct accel_call *call, struct passed *p, const struct accel_frame *frame)
{
    struct reader r = {frame, 0, 0};
    memset(call, 0, sizeof *call);
    call->routine = p->routine;
    call->layout = ACCEL_COLUMN_MAJOR;
    call->width = p->width;
    call->has_work = p->abi == ACCEL_ABI_FORTRAN;
    call->batch = 1;
    call->group = p->group.number;
    call->groups = accel_adapter_groups(p->routine, p->abi, p->width, frame);
    if (p->abi != ACCEL_ABI_FORTRAN) {
        int32_t layout = (int32_t)next_word(&r);
        call->layout = layout == CBLAS_COL_MAJOR   ? ACCEL_COLUMN_MAJOR
                       : layout == CBLAS_ROW_MAJOR ? ACCEL_ROW_MAJOR
                                                   : ACCEL_NO_LAYOUT;
    }
    find_words(p, &r);
    if (call->groups < 1) {
        read_no_groups(call);
    } else {
        read_arguments(call, p, READ_FIRST);
        if (!is_wrong_at_once(call))
            read_arguments(call, p, READ_SHAPES);
    }
    if (call->layout == ACCEL_ROW_MAJOR)
        row_major_exchange(call);
    shape_operands(call);
}

/* The first of an operand's matrices, where there is one that has elements. */
static void read_first_matrix(const struct accel_call *call, struct accel_operand *x)
{
    bool any = call->batch > 0 && x->rows > 0 && x->cols > 0 && !accel_call_shape_fault(call) &&
               !accel_call_touches_nothing(call);
    x->ptr = any ? x->array[0] : NULL;
}

void accel_adapter_read(struct accel_call *call, const struct accel_routine *routine,
                        enum accel_abi abi, int width, const struct accel_frame *frame,
                        struct accel_group group)
{
    struct passed p = {.routine = routine, .abi = abi, .width = width, .group = group};
    read_shapes(call, &p, frame);
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->operand[i].array)
            read_first_matrix(call, &call->operand[i]);
    if (call->groups >= 1)
        read_arguments(call, &p, READ_VALUES);
    if (call->flag[ACCEL_range] == 'I') /* how many vectors there are is known now */
        shape_operands(call);
}

/* LAPACK leaves in the first element of a workspace what length would be best; what was passed will do. */
static void store_length(void *work, const struct accel_routine *routine,
                         const struct accel_arg *arg, int width, int64_t length)
{
    struct accel_complex z = {(double)length, 0};
    int32_t narrow = (int32_t)length;
    if (arg->slot == ACCEL_liwork) {
        if (width == 64)
            memcpy(work, &length, sizeof length);
        else
            memcpy(work, &narrow, sizeof narrow);
        return;
    }
    /* Rounded up, as a program will round it down. */
    if (!accel_is_double(routine->dtype) && (double)(float)z.re < z.re)
        z.re = z.re * (1 + (double)FLT_EPSILON);
    store_scalar(work, z,
                 arg->slot == ACCEL_lrwork ? accel_real_dtype(routine->dtype) : routine->dtype);
}

void accel_adapter_succeed(const struct accel_routine *routine, enum accel_abi abi, int width,
                           const struct accel_frame *frame, struct accel_result *result)
{
    if (abi == ACCEL_ABI_LAPACKE)
        result->rax = 0;
    for (int i = 0; abi == ACCEL_ABI_FORTRAN && i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_INFO && arg->kind != ACCEL_ARG_LWORK)
            continue; /* which may not be passed at all */
        uint64_t word = word_of(frame, abi, i);
        if (arg->kind == ACCEL_ARG_INFO)
            memset((void *)(uintptr_t)word, 0, (size_t)width / 8);
        else
            store_length((void *)(uintptr_t)word_of(frame, abi, i - 1), routine, arg, width,
                         load_integer(word, width, 0));
    }
}

static bool is_integer(enum accel_kind kind)
{
    return kind == ACCEL_ARG_SIZE || kind == ACCEL_ARG_LD || kind == ACCEL_ARG_INC ||
           kind == ACCEL_ARG_STRIDE || kind == ACCEL_ARG_BATCH || kind == ACCEL_ARG_GROUPS ||
           kind == ACCEL_ARG_INTEGER || kind == ACCEL_ARG_LWORK;
}

/* A length, or what tells where an operand's elements are: nonsense where it is read too wide. */
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

/* A 32-bit integer may be the last thing before an unmapped page. */
static bool can_read_wide(const struct accel_routine *routine, enum accel_abi abi,
                          const struct accel_frame *frame)
{
    struct reader r = {frame, 0, 0};
    if (abi != ACCEL_ABI_FORTRAN)
        return true;
    for (int i = 0; i < routine->args; i++) {
        if (!is_passed(abi, &routine->arg[i]))
            continue;
        uint64_t word = next_word(&r);
        if (is_integer(routine->arg[i].kind) && word % 4096 > 4096 - 8)
            return false;
    }
    return true;
}

bool accel_adapter_is_wide(const struct accel_routine *routine, enum accel_abi abi,
                           const struct accel_frame *frame)
{
    const int64_t address_space = (int64_t)1 << 47;
    struct accel_call call;
    bool beyond = false;
    /* Arrays of 32-bit integers are not to be read as others: they would lead to other matrices. */
    if (has_arrays(routine) || !can_read_wide(routine, abi, frame))
        return false;
    struct passed p = {.routine = routine, .abi = abi, .width = 64};
    read_shapes(&call, &p, frame);
    if (accel_call_shape_fault(&call))
        return false;
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        int64_t extent = accel_extent(&call.operand[i], call.batch);
        if (extent < 0 || extent >= address_space)
            return false;
    }
    for (int i = 0; i < routine->args; i++)
        if (is_shape(routine->arg[i].kind))
            beyond = beyond || call.given[i] > INT32_MAX || call.given[i] < INT32_MIN;
    return beyond;
}

static int count_words(const struct accel_routine *routine, enum accel_abi abi)
{
    int words = abi != ACCEL_ABI_FORTRAN ? 1 : 0;
    for (int i = 0; i < routine->args; i++)
        if (is_passed(abi, &routine->arg[i]) && !by_value(abi, routine, &routine->arg[i]))
            words++;
    return words;
}

size_t accel_adapter_stack_words(const struct accel_routine *routine, enum accel_abi abi)
{
    int words = count_words(routine, abi);
    return words > 6 ? (size_t)words - 6 : 0;
}

static int count_characters(const struct accel_routine *routine)
{
    int n = 0;
    for (int i = 0; i < routine->args; i++)
        n += routine->arg[i].kind == ACCEL_ARG_FLAG;
    return n;
}

/* Words of a whole call: the layout, the arguments, a hidden length for each CHARACTER argument. */
#define WORDS_MAX (1 + 2 * ACCEL_ARGS_MAX)

static struct accel_result invoke_words(void *original, const struct accel_routine *routine,
                                        enum accel_abi abi, uint64_t words[WORDS_MAX],
                                        const double xmm[8][2])
{
    size_t n = (size_t)count_words(routine, abi);
    if (abi == ACCEL_ABI_FORTRAN)
        for (int i = count_characters(routine); i > 0; i--)
            words[n++] = 1;
    return accel_invoke(original, words, xmm, n > 6 ? n - 6 : 0, words + 6);
}

struct accel_result accel_adapter_forward(void *original, const struct accel_routine *routine,
                                          enum accel_abi abi, const struct accel_frame *frame)
{
    uint64_t words[WORDS_MAX];
    memcpy(words, frame->gpr, sizeof frame->gpr);
    memcpy(words + 6, frame->stack, accel_adapter_stack_words(routine, abi) * sizeof words[0]);
    return invoke_words(original, routine, abi, words, frame->xmm);
}

/* What an argument that is passed by reference points to. */
union accel_value {
    int64_t i64;
    int32_t i32;
    char letter;
    double scalar[2];
    void *matrix;
};

/* The integer that an argument has. */
static int64_t integer_of(const struct accel_call *call, const struct accel_arg *arg)
{
    const struct accel_operand *x = &call->operand[accel_operand_of(arg)];
    switch (arg->kind) {
    case ACCEL_ARG_SIZE:
    case ACCEL_ARG_INTEGER:
    case ACCEL_ARG_LWORK:
        return call->size[arg->slot];
    case ACCEL_ARG_LD:
        return x->ld;
    case ACCEL_ARG_INC:
        return x->inc;
    case ACCEL_ARG_STRIDE:
        return x->stride;
    case ACCEL_ARG_BATCH:
        return call->batch;
    default: /* groups */
        return 1;
    }
}

/* The word for an argument; what is passed by reference is put into *value. */
static uint64_t word_for(const struct accel_call *call, int i, enum accel_abi abi, int width,
                         union accel_value *value)
{
    const struct accel_arg *arg = &call->routine->arg[i];
    const struct accel_operand *x = &call->operand[accel_operand_of(arg)];
    bool reference = abi == ACCEL_ABI_FORTRAN || arg->array;
    int64_t integer;
    switch (arg->kind) {
    case ACCEL_ARG_WORK:
    case ACCEL_ARG_INFO:
    case ACCEL_ARG_EXTRA:
        return (uint64_t)call->given[i];
    case ACCEL_ARG_MATRIX:
    case ACCEL_ARG_VECTOR:
        if (!arg->array)
            return (uintptr_t)x->ptr;
        if (x->array)
            return (uintptr_t)x->array;
        value->matrix = x->ptr; /* one product of a batch */
        return (uintptr_t)&value->matrix;
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        store_scalar(value->scalar, call->scalar[arg->slot],
                     scalar_dtype(call->routine, arg->kind));
        return (uintptr_t)value;
    case ACCEL_ARG_FLAG:
        if (abi == ACCEL_ABI_FORTRAN) {
            value->letter = call->flag[arg->slot];
            return (uintptr_t)value;
        } else if (abi == ACCEL_ABI_LAPACKE) {
            return (unsigned char)call->flag[arg->slot];
        } else {
            const char *letters = cblas_flags[arg->slot].letters;
            const char *at = strchr(letters, call->flag[arg->slot]);
            value->i32 = (int32_t)(cblas_flags[arg->slot].first + (at - letters));
            return arg->array ? (uintptr_t)value : (uint64_t)value->i32;
        }
    default:
        integer = integer_of(call, arg);
        if (!reference)
            return (uint64_t)integer;
        if (width == 64)
            value->i64 = integer;
        else
            value->i32 = (int32_t)integer;
        return (uintptr_t)value;
    }
}

struct accel_result accel_adapter_call(void *original, enum accel_abi abi, int width,
                                       const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    uint64_t words[WORDS_MAX];
    double xmm[8][2] = {{0}};
    union accel_value value[ACCEL_ARGS_MAX];
    struct accel_call row_major;
    int n = 0, reals = 0;

    /* What is conjugated in column-major order has no name there but OpenBLAS's. */
    bool rows = call->layout == ACCEL_ROW_MAJOR && accel_is_level2(routine);
    if (rows) {
        row_major = *call;
        row_major_exchange(&row_major);
        call = &row_major;
    }
    if (abi != ACCEL_ABI_FORTRAN)
        words[n++] = rows ? CBLAS_ROW_MAJOR : CBLAS_COL_MAJOR;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (!is_passed(abi, arg))
            continue;
        if (by_value(abi, routine, arg))
            store_scalar(xmm[reals++], call->scalar[arg->slot], scalar_dtype(routine, arg->kind));
        else
            words[n++] = word_for(call, i, abi, width, &value[i]);
    }
    return invoke_words(original, routine, abi, words, (const double(*)[2])xmm);
}
