#include "adapter.h"

#include <string.h>

#include "dispatch/decide.h"

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

static uint64_t next_word(struct reader *r)
{
    int i = r->words++;
    return i < 6 ? r->frame->gpr[i] : r->frame->stack[i - 6];
}

static bool by_value(enum accel_abi abi, const struct accel_routine *routine, enum accel_kind kind)
{
    return abi == ACCEL_ABI_CBLAS &&
           (kind == ACCEL_ARG_REAL ||
            (kind == ACCEL_ARG_SCALAR && !accel_is_complex(routine->dtype)));
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

static int64_t read_integer(struct reader *r, enum accel_abi abi, int width)
{
    uint64_t word = next_word(r);
    if (abi == ACCEL_ABI_CBLAS)
        return width == 64 ? (int64_t)word : (int32_t)word;
    if (width == 64)
        return *(const int64_t *)(uintptr_t)word;
    return *(const int32_t *)(uintptr_t)word;
}

static char read_flag(struct reader *r, enum accel_abi abi, const struct accel_arg *arg)
{
    uint64_t word = next_word(r);
    char letter;
    if (abi == ACCEL_ABI_CBLAS) {
        const char *letters = cblas_flags[arg->slot].letters;
        int64_t value = (int64_t)(int32_t)word - cblas_flags[arg->slot].first;
        letter = value >= 0 && value < (int64_t)strlen(letters) ? letters[value] : '?';
    } else {
        letter = *(const char *)(uintptr_t)word;
        if (letter >= 'a' && letter <= 'z')
            letter = (char)(letter - 'a' + 'A');
    }
    if (letter == 'R' && is_trans(arg->slot))
        return 'R';
    return letter && strchr(arg->allowed, letter) ? letter : '?';
}

/* Shapes of the operands as they are stored, from the sizes and flags. */
static void shape_operands(struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_MATRIX)
            continue;
        struct accel_operand *x = &call->operand[arg->slot];
        char flag = arg->transposed_by == ACCEL_noflag ? 'N' : call->flag[arg->transposed_by];
        bool transposed = flag != 'N' && flag != 'R';
        x->rows = accel_call_size(call, transposed ? arg->cols : arg->rows);
        x->cols = accel_call_size(call, transposed ? arg->rows : arg->cols);
        x->access = (enum accel_access)arg->access;
    }
}

static void exchange_sizes(struct accel_call *call)
{
    int64_t m = call->size[ACCEL_m];
    call->size[ACCEL_m] = call->size[ACCEL_n];
    call->size[ACCEL_n] = m;
}

/* The other one of two letters; what is neither stays wrong. */
static void flip(char *flag, char one, char other)
{
    *flag = *flag == one ? other : *flag == other ? one : *flag;
}

static void to_column_major(struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    switch (routine->row_major) {
    case ACCEL_SWAP_A_B: {
        struct accel_operand a = call->operand[ACCEL_a];
        char transa = call->flag[ACCEL_transa];
        call->operand[ACCEL_a] = call->operand[ACCEL_b];
        call->operand[ACCEL_b] = a;
        call->flag[ACCEL_transa] = call->flag[ACCEL_transb];
        call->flag[ACCEL_transb] = transa;
        exchange_sizes(call);
        break;
    }
    case ACCEL_FLIP_SIDE:
        flip(&call->flag[ACCEL_side], 'L', 'R');
        flip(&call->flag[ACCEL_uplo], 'U', 'L');
        exchange_sizes(call);
        break;
    case ACCEL_FLIP_TRANS: {
        bool hermitian = routine->family == ACCEL_HERK || routine->family == ACCEL_HER2K;
        if (!hermitian && call->flag[ACCEL_trans] == 'C') /* of a real matrix */
            call->flag[ACCEL_trans] = 'T';
        flip(&call->flag[ACCEL_trans], 'N', hermitian ? 'C' : 'T');
        flip(&call->flag[ACCEL_uplo], 'U', 'L');
        if (hermitian)
            call->scalar[ACCEL_alpha].im = -call->scalar[ACCEL_alpha].im;
        break;
    }
    }
}

void accel_adapter_read(struct accel_call *call, const struct accel_routine *routine,
                        enum accel_abi abi, int width, const struct accel_frame *frame)
{
    struct reader r = {frame, 0, 0};
    memset(call, 0, sizeof *call);
    call->routine = routine;
    call->layout = ACCEL_COLUMN_MAJOR;
    if (abi == ACCEL_ABI_CBLAS) {
        int32_t layout = (int32_t)next_word(&r);
        call->layout = layout == CBLAS_COL_MAJOR   ? ACCEL_COLUMN_MAJOR
                       : layout == CBLAS_ROW_MAJOR ? ACCEL_ROW_MAJOR
                                                   : ACCEL_NO_LAYOUT;
    }
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        switch (arg->kind) {
        case ACCEL_ARG_FLAG:
            call->flag[arg->slot] = read_flag(&r, abi, arg);
            call->given[i] = call->flag[arg->slot];
            break;
        case ACCEL_ARG_SIZE:
            call->given[i] = call->size[arg->slot] = read_integer(&r, abi, width);
            break;
        case ACCEL_ARG_SCALAR:
        case ACCEL_ARG_REAL: {
            const void *at = by_value(abi, routine, arg->kind)
                                 ? (const void *)frame->xmm[r.reals++]
                                 : (const void *)(uintptr_t)next_word(&r);
            call->scalar[arg->slot] = load_scalar(at, scalar_dtype(routine, arg->kind));
            break;
        }
        case ACCEL_ARG_MATRIX:
            call->operand[arg->slot].name = arg->name;
            call->operand[arg->slot].ptr = (void *)(uintptr_t)next_word(&r);
            break;
        case ACCEL_ARG_LD:
            call->given[i] = call->operand[arg->slot].ld = read_integer(&r, abi, width);
            break;
        }
    }
    if (call->layout == ACCEL_ROW_MAJOR)
        to_column_major(call);
    shape_operands(call);
}

/* A 32-bit integer may be the last thing before an unmapped page. */
static bool can_read_wide(const struct accel_routine *routine, enum accel_abi abi,
                          const struct accel_frame *frame)
{
    struct reader r = {frame, 0, 0};
    if (abi == ACCEL_ABI_CBLAS)
        return true;
    for (int i = 0; i < routine->args; i++) {
        uint64_t word = next_word(&r);
        bool integer =
            routine->arg[i].kind == ACCEL_ARG_SIZE || routine->arg[i].kind == ACCEL_ARG_LD;
        if (integer && word % 4096 > 4096 - 8)
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
    if (!can_read_wide(routine, abi, frame))
        return false;
    accel_adapter_read(&call, routine, abi, 64, frame);
    if (accel_call_fault(&call))
        return false;
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        int64_t extent = accel_extent(&call.operand[i], routine->dtype);
        if (extent < 0 || extent >= address_space)
            return false;
    }
    for (int i = 0; i < routine->args; i++)
        beyond = beyond || call.given[i] > INT32_MAX;
    return beyond;
}

static int count_words(const struct accel_routine *routine, enum accel_abi abi)
{
    int words = abi == ACCEL_ABI_CBLAS ? 1 : 0;
    for (int i = 0; i < routine->args; i++)
        if (!by_value(abi, routine, routine->arg[i].kind))
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

static void invoke_words(void *original, const struct accel_routine *routine, enum accel_abi abi,
                         uint64_t words[WORDS_MAX], const double xmm[8][2])
{
    size_t n = (size_t)count_words(routine, abi);
    if (abi == ACCEL_ABI_FORTRAN)
        for (int i = count_characters(routine); i > 0; i--)
            words[n++] = 1;
    accel_invoke(original, words, xmm, n > 6 ? n - 6 : 0, words + 6);
}

void accel_adapter_forward(void *original, const struct accel_routine *routine, enum accel_abi abi,
                           const struct accel_frame *frame)
{
    uint64_t words[WORDS_MAX];
    memcpy(words, frame->gpr, sizeof frame->gpr);
    memcpy(words + 6, frame->stack, accel_adapter_stack_words(routine, abi) * sizeof words[0]);
    invoke_words(original, routine, abi, words, frame->xmm);
}

void accel_adapter_call(void *original, enum accel_abi abi, int width,
                        const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    uint64_t words[WORDS_MAX];
    double xmm[8][2] = {{0}};
    /* What the by-reference arguments point to. */
    union {
        int64_t i64;
        int32_t i32;
        char letter;
        double scalar[2];
    } value[ACCEL_ARGS_MAX];
    int n = 0, reals = 0;

    if (abi == ACCEL_ABI_CBLAS)
        words[n++] = CBLAS_COL_MAJOR;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        int64_t integer = 0;
        switch (arg->kind) {
        case ACCEL_ARG_MATRIX:
            words[n++] = (uintptr_t)call->operand[arg->slot].ptr;
            continue;
        case ACCEL_ARG_SCALAR:
        case ACCEL_ARG_REAL:
            if (by_value(abi, routine, arg->kind)) {
                store_scalar(xmm[reals++], call->scalar[arg->slot],
                             scalar_dtype(routine, arg->kind));
                continue;
            }
            store_scalar(value[i].scalar, call->scalar[arg->slot],
                         scalar_dtype(routine, arg->kind));
            words[n++] = (uintptr_t)&value[i];
            continue;
        case ACCEL_ARG_FLAG:
            if (abi == ACCEL_ABI_CBLAS) {
                const char *letters = cblas_flags[arg->slot].letters;
                const char *at = strchr(letters, call->flag[arg->slot]);
                words[n++] = (uint64_t)(cblas_flags[arg->slot].first + (at - letters));
            } else {
                value[i].letter = call->flag[arg->slot];
                words[n++] = (uintptr_t)&value[i];
            }
            continue;
        case ACCEL_ARG_SIZE:
            integer = call->size[arg->slot];
            break;
        case ACCEL_ARG_LD:
            integer = call->operand[arg->slot].ld;
            break;
        }
        if (abi == ACCEL_ABI_CBLAS) {
            words[n++] = (uint64_t)integer;
        } else {
            if (width == 64)
                value[i].i64 = integer;
            else
                value[i].i32 = (int32_t)integer;
            words[n++] = (uintptr_t)&value[i];
        }
    }
    invoke_words(original, routine, abi, words, (const double(*)[2])xmm);
}
