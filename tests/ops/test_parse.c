/*
 * For every exported name, a canonical call goes out through blas_pass() to a function that records
 * its registers and stack, comes back in through blas_parse(), and must be the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "ops/blas/abi.h"
#include "ops/blas/parse.h"
#include "ops/blas/pass.h"
#include "ops/rules/lapack_rules.h"
#include "ops/names.h"
#include "ops/overlap.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/rules/rules.h"
#include "shim/arch/entry.h"

/* Stands in for a BLAS function: keeps what it was called with. The frame has the entry's layout,
 * with the return address before the stack arguments. By-reference arguments live in the caller's
 * frame, so they are read while the call is under way. */
static struct {
    const struct accel_routine *routine;
    enum accel_abi abi;
    int width;
    struct accel_call seen;
    uint64_t words[6 + 64]; /* all that the interface passes as integers and addresses */
} record;

static struct accel_passed passed_in(const struct accel_frame *frame, enum accel_abi abi, int width)
{
    return (struct accel_passed){
        .gpr = frame->gpr, .fpr = frame->fpr, .stack = frame->stack, .abi = abi, .width = width};
}

static void parse(struct accel_call *call, const struct accel_routine *routine, enum accel_abi abi,
                  int width, const struct accel_frame *frame)
{
    const struct accel_passed passed = passed_in(frame, abi, width);
    blas_parse(call, routine, &passed);
}

/* What lies behind the arguments on the stack is read, too: AddressSanitizer may not mind. */
__attribute__((no_sanitize("address"))) void test_record(const struct accel_frame *frame)
{
    const size_t words = sizeof record.words / sizeof record.words[0];
    const volatile uint64_t *stack = frame->stack;
    memcpy(record.words, frame->gpr, sizeof frame->gpr);
    for (size_t i = ACCEL_WORD_REGISTERS; i < words; i++)
        record.words[i] = stack[i - ACCEL_WORD_REGISTERS];
    parse(&record.seen, record.routine, record.abi, record.width, frame);
}

void test_callee(void);
#ifdef __aarch64__
__asm__(".text\n"
        "test_callee:\n"
        "    hint 34\n"
        "    sub sp, sp, 224\n"
        "    stp x0, x1, [sp]\n"
        "    stp x2, x3, [sp, 16]\n"
        "    stp x4, x5, [sp, 32]\n"
        "    stp x6, x7, [sp, 48]\n"
        "    stp x29, x30, [sp, 64]\n"
        "    stp q0, q1, [sp, 96]\n"
        "    str q2, [sp, 128]\n"
        "    mov x0, sp\n"
        "    bl test_record\n"
        "    ldp x29, x30, [sp, 64]\n"
        "    add sp, sp, 224\n"
        "    ret\n");
#else
__asm__(".text\n"
        "test_callee:\n"
        "    sub $200, %rsp\n"
        "    mov %rdi, 0(%rsp)\n"
        "    mov %rsi, 8(%rsp)\n"
        "    mov %rdx, 16(%rsp)\n"
        "    mov %rcx, 24(%rsp)\n"
        "    mov %r8, 32(%rsp)\n"
        "    mov %r9, 40(%rsp)\n"
        "    movaps %xmm0, 48(%rsp)\n"
        "    movaps %xmm1, 64(%rsp)\n"
        "    movaps %xmm2, 80(%rsp)\n"
        "    mov %rsp, %rdi\n"
        "    call test_record\n"
        "    add $200, %rsp\n"
        "    ret\n");
#endif

static void call_callee(enum accel_abi abi, int width, const struct accel_call *call)
{
    struct accel_words words;
    const struct accel_passed passed = blas_pass(&words, abi, width, call);
    accel_invoke((void *)(uintptr_t)test_callee, &passed);
}

static enum accel_dtype dtype_of(const struct accel_routine *routine, const struct accel_arg *arg,
                                 int width)
{
    switch ((enum accel_dtype)arg->dtype) {
    case ACCEL_SAME:
        return routine->dtype;
    case ACCEL_REALS:
        return accel_is_double(routine->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
    case ACCEL_INTEGERS:
        return width == 64 ? ACCEL_INT64 : ACCEL_INT32;
    default:
        return (enum accel_dtype)arg->dtype;
    }
}

/* The bounds of a range of another kind, which may be NULL in Fortran. */
static bool is_unread(const struct accel_call *call, const struct accel_arg *arg)
{
    char range = call->blas.flag[ACCEL_range];
    return (range != 'V' && (strcmp(arg->name, "vl") == 0 || strcmp(arg->name, "vu") == 0) &&
            arg->kind == ACCEL_ARG_REAL) ||
           (range != 'I' && (strcmp(arg->name, "il") == 0 || strcmp(arg->name, "iu") == 0));
}

static struct accel_call sample(const struct accel_routine *routine, enum accel_abi abi, int width)
{
    struct accel_call call = {.routine = routine,
                              .op = accel_op_of(routine),
                              .blas.layout = ACCEL_COLUMN_MAJOR,
                              .batch = 1,
                              .parts = 1,
                              .blas.width = width,
                              .blas.has_work = abi == ACCEL_ABI_FORTRAN};
    bool is_double = accel_is_double(routine->dtype), is_complex = accel_is_complex(routine->dtype);
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (abi == ACCEL_ABI_FORTRAN && is_unread(&call, arg))
            continue;
        switch (arg->kind) {
        case ACCEL_ARG_FLAG:
            call.blas.flag[arg->slot] = arg->allowed[(size_t)i % strlen(arg->allowed)];
            call.blas.given[i] = call.blas.flag[arg->slot];
            break;
        case ACCEL_ARG_SIZE:
            call.blas.given[i] = call.blas.size[arg->slot] = 100 + i;
            break;
        case ACCEL_ARG_SCALAR:
            call.blas.scalar[arg->slot].re = is_double ? 0.1 * i : (float)(0.1 * i);
            call.blas.scalar[arg->slot].im = is_complex ? -3.5 * i : 0;
            break;
        case ACCEL_ARG_REAL:
            call.blas.scalar[arg->slot].re = is_double ? 0.3 * i : (float)(0.3 * i);
            break;
        case ACCEL_ARG_MATRIX:
        case ACCEL_ARG_VECTOR:
            call.span[arg->slot].name = arg->name;
            call.span[arg->slot].ptr = (void *)(uintptr_t)(0x1000 * (i + 1));
            call.span[arg->slot].access = (enum accel_access)arg->access;
            call.span[arg->slot].dtype = dtype_of(routine, arg, width);
            if (arg->kind == ACCEL_ARG_VECTOR)
                call.span[arg->slot].ld = call.span[arg->slot].inc = 1;
            break;
        case ACCEL_ARG_LWORK: /* enough: of a call that is wrong, scalars are not read */
            if (abi == ACCEL_ABI_FORTRAN)
                call.blas.given[i] = call.blas.size[arg->slot] = 100000000 + i;
            break;
        case ACCEL_ARG_INTEGER:
            call.blas.given[i] = call.blas.size[arg->slot] = arg->slot == ACCEL_itype ? 1 : 90 + i;
            break;
        case ACCEL_ARG_WORK:
        case ACCEL_ARG_INFO:
        case ACCEL_ARG_EXTRA:
            if ((arg->kind == ACCEL_ARG_EXTRA) == (abi == ACCEL_ABI_LAPACKE))
                call.blas.given[i] = 0x10000 * (i + 1);
            break;
        case ACCEL_ARG_LD:
            call.blas.given[i] = call.span[arg->slot].ld = 1000 + i;
            break;
        case ACCEL_ARG_INC:
            call.blas.given[i] = call.span[arg->slot].inc = i % 2 ? 1 + i : -1 - i;
            call.span[arg->slot].ld = 1 + i;
            break;
        case ACCEL_ARG_STRIDE:
            call.blas.given[i] = call.span[arg->slot].stride = 100000 + i;
            break;
        case ACCEL_ARG_BATCH:
        case ACCEL_ARG_GROUPS:
            call.blas.given[i] = 1;
            break;
        }
    }
    /* Shapes follow from the rest. */
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        bool t = arg->transposed_by != ACCEL_noflag && call.blas.flag[arg->transposed_by] != 'N';
        if (arg->kind == ACCEL_ARG_VECTOR) {
            call.span[arg->slot].rows = 1;
            call.span[arg->slot].cols = accel_call_size(&call, t ? arg->cols : arg->rows);
        }
        if (arg->kind != ACCEL_ARG_MATRIX)
            continue;
        call.span[arg->slot].rows = accel_call_size(&call, t ? arg->cols : arg->rows);
        call.span[arg->slot].cols = accel_call_size(&call, t ? arg->rows : arg->cols);
        if (call.span[arg->slot].ld == 0) /* one column: the routine has no argument for it */
            call.span[arg->slot].ld = call.span[arg->slot].rows;
        if (accel_op_of(routine)->traits.triangles >> arg->slot & 1 &&
            call.blas.flag[ACCEL_uplo] != '*')
            call.span[arg->slot].triangle = call.blas.flag[ACCEL_uplo];
    }
    return call;
}

static void there_and_back(void **state)
{
    (void)state;
    for (uint32_t entry = 0; entry < accel_name_count; entry++)
        for (int width = 32; width <= 64; width += 32) {
            const struct accel_mangling *mangling = accel_name_mangling(entry);
            record.routine = accel_name_routine(entry);
            record.abi = mangling->abi;
            record.width = width;
            struct accel_call call = sample(record.routine, record.abi, width);
            if (width == 64 && accel_op_of(record.routine) == &op_gemm) {
                call.blas.given[2] = call.blas.size[ACCEL_m] = call.span[ACCEL_a].rows =
                    call.span[ACCEL_c].rows = ((int64_t)5 << 32) + 7;
                call.blas.given[7] = call.span[ACCEL_a].ld = (int64_t)6 << 32;
                call.blas.given[12] = call.span[ACCEL_c].ld = (int64_t)7 << 32;
            }
            call_callee(record.abi, width, &call);
            for (int i = 0; i < record.routine->args; i++)
                if (record.routine->arg[i].kind == ACCEL_ARG_MATRIX) {
                    /* One product comes as arrays of one. */
                    struct accel_span *x = &record.seen.span[record.routine->arg[i].slot];
                    assert_int_equal(x->array != NULL, record.routine->arg[i].array);
                    x->array = NULL;
                }
            assert_memory_equal(&record.seen, &call, sizeof call);
        }
}

static void hidden_lengths_are_one(void **state)
{
    (void)state;
    for (uint32_t entry = 0; entry < accel_name_count; entry++) {
        record.routine = accel_name_routine(entry);
        record.abi = accel_name_mangling(entry)->abi;
        record.width = 32;
        if (record.abi != ACCEL_ABI_FORTRAN)
            continue;
        struct accel_call call = sample(record.routine, record.abi, 32);
        call_callee(record.abi, 32, &call);
        size_t at = 0;
        for (int i = 0; i < record.routine->args; i++)
            at += record.routine->arg[i].kind != ACCEL_ARG_EXTRA;
        for (int i = 0; i < record.routine->args; i++)
            if (record.routine->arg[i].kind == ACCEL_ARG_FLAG)
                assert_int_equal(record.words[at++], 1);
    }
}

/* A caller's frame, with 16 words on the stack. */
union caller_frame {
    struct accel_frame frame;
    uint64_t words[sizeof(struct accel_frame) / 8 + 16];
};

static uint64_t *word_in(union caller_frame *f, int i)
{
    return i < ACCEL_WORD_REGISTERS ? &f->frame.gpr[i] : &f->frame.stack[i - ACCEL_WORD_REGISTERS];
}

static union caller_frame frame_with(const uint64_t *words, size_t count)
{
    union caller_frame f = {.words = {0}};
    for (size_t i = 0; i < count; i++)
        *word_in(&f, (int)i) = words[i];
    return f;
}
#define FRAME(...)                                                                                 \
    frame_with((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

static void forwarding_keeps_the_callers_words(void **state)
{
    static const char ta = 't', tb = 'x';
    static const int32_t m = 3, n = -4, k = 5, lda = 6, ldb = 7, ldc = 8;
    static const double alpha = 2, beta = 3;
    union caller_frame f = FRAME(0);
    const void *const words[] = {&ta,  &tb,   &m,       &n,  &k, &alpha, &f, &lda, &f.frame.stack,
                                 &ldb, &beta, &f.frame, &ldc};
    (void)state;
    for (int i = 0; i < 13; i++)
        *word_in(&f, i) = (uintptr_t)words[i];
    /* A C caller passes no lengths: something else is there. */
    *word_in(&f, 13) = *word_in(&f, 14) = 0xdeadbeef;
    int entry = accel_name_find("dgemm_");
    record.routine = accel_name_routine((uint32_t)entry);
    record.abi = ACCEL_ABI_FORTRAN;
    record.width = 32;
    const struct accel_passed passed = passed_in(&f.frame, record.abi, 32);
    struct accel_words again;
    const struct accel_passed repeated = blas_repeat(&again, record.routine, &passed);
    accel_invoke((void *)(uintptr_t)test_callee, &repeated);
    assert_int_equal(record.seen.blas.flag[ACCEL_transa], 'T');
    assert_int_equal(record.seen.blas.flag[ACCEL_transb], '?');
    assert_int_equal(record.seen.blas.size[ACCEL_n], -4);
    for (int i = 0; i < 13; i++)
        assert_int_equal(record.words[i], *word_in(&f, i));
    assert_int_equal(record.words[13], 1);
    assert_int_equal(record.words[14], 1);
}

static void row_major_is_the_exchanged_product(void **state)
{
    /* cblas_dgemm(RowMajor, Trans, NoTrans, m=2, n=3, k=4, 1.5, A, 5, B, 6, 2.5, C, 7) */
    union caller_frame f = FRAME(101, 112, 111, 2, 3, 4, 0xA0, 5, 0xB0, 6, 0xC0, 7);
    f.frame.fpr[0][0] = 1.5;
    f.frame.fpr[1][0] = 2.5;
    struct accel_call call;
    (void)state;
    int entry = accel_name_find("cblas_dgemm");
    parse(&call, accel_name_routine((uint32_t)entry), ACCEL_ABI_CBLAS, 32, &f.frame);
    assert_int_equal(call.blas.layout, ACCEL_ROW_MAJOR);
    assert_int_equal(call.blas.size[ACCEL_m], 3);
    assert_int_equal(call.blas.size[ACCEL_n], 2);
    assert_int_equal(call.blas.size[ACCEL_k], 4);
    assert_int_equal(call.blas.flag[ACCEL_transa], 'N');
    assert_int_equal(call.blas.flag[ACCEL_transb], 'T');
    assert_ptr_equal(call.span[ACCEL_a].ptr, (void *)0xB0);
    assert_string_equal(call.span[ACCEL_a].name, "b"); /* as the caller calls it */
    assert_int_equal(call.span[ACCEL_a].rows, 3);
    assert_int_equal(call.span[ACCEL_a].cols, 4);
    assert_int_equal(call.span[ACCEL_b].rows, 2);
    assert_int_equal(call.span[ACCEL_b].cols, 4);
    assert_int_equal(call.span[ACCEL_b].ld, 5);
    assert_true(call.blas.scalar[ACCEL_alpha].re == 1.5 && call.blas.scalar[ACCEL_beta].re == 2.5);
    assert_int_equal(call.blas.given[2], 2); /* the log has the caller's own */
    assert_int_equal(call.blas.given[3], 3);
}

/* Neither order makes a letter of what is none. Of matrices with one element, nothing else is
 * wrong: without a right letter, no leading dimension is read. */
static void wrong_letters_are_wrong_in_both_orders(void **state)
{
    int letters = 0;
    (void)state;
    for (uint32_t entry = 0; entry < accel_name_count; entry++) {
        const struct accel_routine *routine = accel_name_routine(entry);
        if (accel_name_mangling(entry)->abi != ACCEL_ABI_CBLAS)
            continue;
        struct accel_call right = sample(routine, ACCEL_ABI_CBLAS, 32);
        for (int size = 0; size < ACCEL_SIZES; size++)
            right.blas.size[size] = 1;
        for (int i = 0; i < routine->args; i++) {
            if (routine->arg[i].kind != ACCEL_ARG_FLAG || routine->arg[i].array)
                continue;
            for (int order = 101; order <= 102; order++) {
                struct accel_words words;
                struct accel_call call;
                const struct accel_passed passed = blas_pass(&words, ACCEL_ABI_CBLAS, 32, &right);
                words.word[0] = (uint64_t)order;
                words.word[1 + i] = 99; /* no number of a scalar comes before the letters */
                blas_parse(&call, routine, &passed);
                assert_non_null(accel_call_fault(&call));
            }
            letters++;
        }
    }
    assert_true(letters > 100);
}

/* Level 2 in row-major order, and back: what its caller passed goes out again. */
static void row_major_level_2_goes_both_ways(void **state)
{
    /* cblas_zgemv(RowMajor, ConjTrans, m=2, n=3, alpha, A, 5, x, -1, beta, y, 2) */
    static const double alpha[2] = {1, 2}, beta[2] = {3, 4};
    union caller_frame f = FRAME(101, 113, 2, 3, (uintptr_t)alpha, 0xA0, 5, 0xB0, (uint32_t)-1,
                                 (uintptr_t)beta, 0xC0, 2);
    struct accel_call call;
    (void)state;
    record.routine = accel_name_routine((uint32_t)accel_name_find("cblas_zgemv"));
    record.abi = ACCEL_ABI_CBLAS;
    record.width = 32;
    parse(&call, record.routine, ACCEL_ABI_CBLAS, 32, &f.frame);
    assert_int_equal(call.blas.flag[ACCEL_trans], 'R');
    assert_int_equal(call.blas.size[ACCEL_m], 3);
    assert_int_equal(call.blas.size[ACCEL_n], 2);
    assert_int_equal(call.span[ACCEL_a].rows, 3);
    assert_int_equal(call.span[ACCEL_a].cols, 2);
    assert_int_equal(call.span[ACCEL_x].cols, 2); /* A^H x, A having 2 rows */
    assert_int_equal(call.span[ACCEL_y].cols, 3);
    assert_int_equal(call.span[ACCEL_x].inc, -1);
    assert_int_equal(call.span[ACCEL_x].ld, 1);
    call_callee(ACCEL_ABI_CBLAS, 32, &call);
    assert_memory_equal(&record.seen, &call, sizeof call);

    /* cblas_zgerc(RowMajor, m=2, n=3, alpha, x, 1, y, 2, A, 4) */
    union caller_frame g = FRAME(101, 2, 3, (uintptr_t)alpha, 0xA0, 1, 0xB0, 2, 0xC0, 4);
    record.routine = accel_name_routine((uint32_t)accel_name_find("cblas_zgerc"));
    parse(&call, record.routine, ACCEL_ABI_CBLAS, 32, &g.frame);
    assert_true(call.blas.conjugated);
    assert_ptr_equal(call.span[ACCEL_x].ptr, (void *)0xB0);
    assert_int_equal(call.span[ACCEL_x].cols, 3);
    assert_int_equal(call.span[ACCEL_a].rows, 3);
    call_callee(ACCEL_ABI_CBLAS, 32, &call);
    assert_memory_equal(&record.seen, &call, sizeof call);
}

/* dgesvd_ and LAPACKE_dgesvd have their own ways to say that all went well. */
static void success_is_told(void **state)
{
    static const int entries = 2;
    static const char *const names[] = {"dgesvd_", "LAPACKE_dgesvd"};
    (void)state;
    for (int i = 0; i < entries; i++) {
        int64_t info = -1;
        union caller_frame f = FRAME(0);
        uint32_t entry = (uint32_t)accel_name_find(names[i]);
        enum accel_abi abi = accel_name_mangling(entry)->abi;
        double work[2] = {-1, -1};
        int32_t lwork = 345;
        *word_in(&f, 11) = (uintptr_t)work;
        *word_in(&f, 12) = (uintptr_t)&lwork;
        *word_in(&f, 13) = (uintptr_t)&info;
        struct accel_result result = {.gpr = {7}};
        const struct accel_passed passed = passed_in(&f.frame, abi, 32);
        const struct accel_call call = accel_call_of(accel_name_routine(entry));
        blas_complete(&call, &passed, NULL, &result);
        assert_int_equal((int32_t)info, abi == ACCEL_ABI_FORTRAN ? 0 : -1);
        assert_int_equal((int32_t)(info >> 32), -1);
        assert_true(work[0] == (abi == ACCEL_ABI_FORTRAN ? 345 : -1) && work[1] == -1);
        assert_int_equal(result.gpr[0], abi == ACCEL_ABI_FORTRAN ? 7 : 0);
    }
}

/* What INFO, WORK(1), RWORK(1) and IWORK(1) are after a call, by these answers to the question. */
struct left {
    int64_t info;
    double work, rwork;
    int64_t iwork;
};

/* zgelsd_: RWORK and IWORK tell lengths that no argument has. */
static struct left left_by(int width, const struct left *answers)
{
    union caller_frame f = FRAME(0);
    const uint32_t entry = (uint32_t)accel_name_find("zgelsd_");
    struct accel_words words;
    struct accel_passed question;
    double work[4] = {-1, -1, -1, -1}, rwork[2] = {-1, -1};
    int64_t info = -77, iwork = -77, lwork = 345;
    *word_in(&f, 10) = (uintptr_t)work;
    *word_in(&f, 11) = (uintptr_t)&lwork;
    *word_in(&f, 12) = (uintptr_t)rwork;
    *word_in(&f, 13) = (uintptr_t)&iwork;
    *word_in(&f, 14) = (uintptr_t)&info;
    struct accel_result result = {.gpr = {7}};
    const struct accel_passed passed = passed_in(&f.frame, ACCEL_ABI_FORTRAN, width);
    const struct accel_call call = accel_call_of(accel_name_routine(entry));
    assert_true(blas_question(&words, &question, call.routine, &passed));
    for (int i = 0; i < 15; i++) /* of the caller's, what the question writes to is not in it */
        assert_int_equal(accel_passed_word(&question, i) == *word_in(&f, i), i < 10);
    assert_int_equal(blas_load_integer(accel_passed_word(&question, 11), width, 0), -1);
    for (int i = 10; answers && i < 15; i++) {
        void *at = (void *)(uintptr_t)accel_passed_word(&question, i);
        const int64_t integer = i == 13 ? answers->iwork : answers->info;
        const double number = i == 10 ? answers->work : answers->rwork;
        if (i == 10 || i == 12)
            memcpy(at, &number, sizeof number);
        else if (i > 12)
            memcpy(at, &integer, (size_t)width / 8);
    }
    blas_complete(&call, &passed, answers ? &words : NULL, &result);
    assert_true(work[2] == -1 && rwork[1] == -1 && lwork == 345);
    return (struct left){width == 64 ? info : (int32_t)info, work[0], rwork[0],
                         width == 64 ? iwork : (int32_t)iwork};
}

static void answers_are_told(void **state)
{
    (void)state;
    for (int width = 32; width <= 64; width += 32) {
        struct left left = left_by(width, &(struct left){0, 1234, 56, 78});
        assert_true(left.info == 0 && left.work == 1234 && left.rwork == 56 && left.iwork == 78);
        left = left_by(width, NULL);
        assert_true(left.info == 0 && left.work == 345 && left.rwork == -1 && left.iwork == -77);
        left = left_by(width, &(struct left){-12, 1234, 56, 78});
        assert_true(left.info == 0 && left.work == 345 && left.rwork == -1 && left.iwork == -77);
        left = left_by(width, &(struct left){0, (double)NAN, -5, 0});
        assert_true(left.info == 0 && left.work == 345 && left.rwork == -1 && left.iwork == -77);
    }
}

/* A length that a float does not hold is rounded up, as LAPACK's SROUNDUP_LWORK does. */
static void lengths_of_floats(void **state)
{
    const uint32_t entry = (uint32_t)accel_name_find("sgesvd_");
    union caller_frame f = FRAME(0);
    float work[2] = {-1, -1};
    int32_t lwork = (1 << 24) + 1, info = -1;
    (void)state;
    *word_in(&f, 11) = (uintptr_t)work;
    *word_in(&f, 12) = (uintptr_t)&lwork;
    *word_in(&f, 13) = (uintptr_t)&info;
    struct accel_result result = {.gpr = {7}};
    const struct accel_passed passed = passed_in(&f.frame, ACCEL_ABI_FORTRAN, 32);
    const struct accel_call call = accel_call_of(accel_name_routine(entry));
    blas_complete(&call, &passed, NULL, &result);
    assert_true(work[0] == 0x1.000002p24F && work[1] == -1 && info == 0);
}

static void groups_of_a_batch(void **state)
{
    /* dgemm_batch_ of three groups, of 2, 0 and 3 products */
    static const char transa[] = "nTC", transb[] = "NnT";
    static const int32_t m[] = {1, 2, 3}, n[] = {4, 5, 6}, k[] = {7, 8, 9}, ld[] = {10, 11, 12};
    static const double alpha[] = {1, 2, 3}, beta[] = {0, 0.5, 1};
    static void *const matrices[] = {(void *)0x10, (void *)0x20, (void *)0x30, (void *)0x40,
                                     (void *)0x50};
    static int32_t groups = 3, size[] = {2, 0, 3};
    union caller_frame f = FRAME(
        (uintptr_t)transa, (uintptr_t)transb, (uintptr_t)m, (uintptr_t)n, (uintptr_t)k,
        (uintptr_t)alpha, (uintptr_t)matrices, (uintptr_t)ld, (uintptr_t)matrices, (uintptr_t)ld,
        (uintptr_t)beta, (uintptr_t)matrices, (uintptr_t)ld, (uintptr_t)&groups, (uintptr_t)size);
    const struct accel_routine *routine =
        accel_name_routine((uint32_t)accel_name_find("dgemm_batch_"));
    struct accel_call call;
    (void)state;
    const struct accel_passed passed = passed_in(&f.frame, ACCEL_ABI_FORTRAN, 32);
    blas_parse(&call, routine, &passed);
    assert_int_equal(call.parts, 3);
    assert_int_equal(op_gemm_batch.rules->largest(routine, &passed), 6);
    assert_int_equal(call.batch, 2);
    assert_ptr_equal(call.span[ACCEL_c].ptr, (void *)0x10);
    assert_true(op_gemm_batch.rules->next(&call, &passed));
    assert_int_equal(call.batch, 0);
    assert_null(call.span[ACCEL_a].ptr);
    assert_true(op_gemm_batch.rules->next(&call, &passed));
    assert_int_equal(call.part, 2);
    assert_int_equal(call.batch, 3);
    assert_int_equal(call.blas.flag[ACCEL_transa], 'C');
    assert_int_equal(call.blas.flag[ACCEL_transb], 'T');
    assert_int_equal(call.blas.size[ACCEL_m], 3);
    assert_int_equal(call.span[ACCEL_b].ld, 12);
    assert_true(call.blas.scalar[ACCEL_alpha].re == 3 && call.blas.scalar[ACCEL_beta].re == 1);
    assert_ptr_equal(call.span[ACCEL_c].array, matrices + 2); /* after the first group's two */
    assert_ptr_equal(call.span[ACCEL_c].ptr, (void *)0x30);
    assert_false(op_gemm_batch.rules->next(&call, &passed));

    /* Of no groups, nothing is read. */
    groups = 0;
    for (int i = 0; i < 6; i++)
        *word_in(&f, i) = 0;
    parse(&call, routine, ACCEL_ABI_FORTRAN, 32, &f.frame);
    assert_int_equal(call.parts, 0);
    assert_int_equal(call.batch, 0);
    assert_null(accel_call_fault(&call));
    groups = -1;
    parse(&call, routine, ACCEL_ABI_FORTRAN, 32, &f.frame);
    assert_string_equal(accel_call_fault(&call), "group_count");
}

/* LAPACK does not reference ifail without vectors, and SciPy has no room there then: what lies
 * behind it is not the call's. */
static void without_vectors_none_has_failed(void **state)
{
    static double a[4], w[2], z[4];
    static const int32_t n = 2, ld = 2, one = 1;
    static const double zero;
    int32_t found;
    int32_t *ifail = (int32_t *)(void *)w;
    const struct accel_routine *routine = accel_name_routine((uint32_t)accel_name_find("dsyevx_"));
    struct accel_call call;
    (void)state;
    for (const char *jobz = "NV"; *jobz; jobz++) {
        union caller_frame f = FRAME(
            (uintptr_t)jobz, (uintptr_t) "A", (uintptr_t) "L", (uintptr_t)&n, (uintptr_t)a,
            (uintptr_t)&ld, (uintptr_t)&zero, (uintptr_t)&zero, (uintptr_t)&one, (uintptr_t)&one,
            (uintptr_t)&zero, (uintptr_t)&found, (uintptr_t)w, (uintptr_t)z, (uintptr_t)&ld,
            (uintptr_t)a, (uintptr_t)&one, (uintptr_t)a, (uintptr_t)ifail, (uintptr_t)&found);
        parse(&call, routine, ACCEL_ABI_FORTRAN, 32, &f.frame);
        assert_ptr_equal(call.span[ACCEL_y].ptr, ifail);
        assert_int_equal(accel_extent(&call.span[ACCEL_y], 1), *jobz == 'V' ? n * 4 : 0);
        assert_int_equal(overlap_in_call(&call), *jobz == 'V'); /* with w */
    }
}

/* PLINK 1.9 asks for the last eigenvalues by their numbers, and has room for no others in front of
 * the vectors. */
static void a_range_by_numbers_has_so_many_values(void **state)
{
    static double a[9], work[1], z[3 + 9];
    static const int32_t n = 3, first = 2, last = 3, enough = 128;
    static const double zero;
    int32_t found, supports[6], info;
    const struct accel_routine *routine = accel_name_routine((uint32_t)accel_name_find("dsyevr_"));
    struct accel_call call;
    (void)state;
    for (const char *range = "AVI"; *range; range++)
        for (int room = 1; room <= 3; room++) {
            union caller_frame f = FRAME(
                (uintptr_t) "V", (uintptr_t)range, (uintptr_t) "L", (uintptr_t)&n, (uintptr_t)a,
                (uintptr_t)&n, (uintptr_t)&zero, (uintptr_t)&zero, (uintptr_t)&first,
                (uintptr_t)&last, (uintptr_t)&zero, (uintptr_t)&found, (uintptr_t)z,
                (uintptr_t)(z + room), (uintptr_t)&n, (uintptr_t)supports, (uintptr_t)work,
                (uintptr_t)&enough, (uintptr_t)&info, (uintptr_t)&enough, (uintptr_t)&info);
            parse(&call, routine, ACCEL_ABI_FORTRAN, 32, &f.frame);
            assert_int_equal(overlap_in_call(&call), room < (*range == 'I' ? 2 : 3));
        }
}

/* In the order of the documentation: R a real scalar's address, C a complex one's, I an integer's,
 * i an integer, . another word. A real scalar that is passed by value is in another register. */
static void words_of_an_interface(void **state)
{
    static const struct {
        const char *name;
        enum accel_abi abi;
        const char *words;
    } of[] = {
        {"dgemm_", ACCEL_ABI_FORTRAN, "..IIIR.I.IR.I"},
        {"zgemm_", ACCEL_ABI_FORTRAN, "..IIIC.I.IC.I"},
        {"zherk_", ACCEL_ABI_FORTRAN, "..IIR.IR.I"},
        {"dgetrf_", ACCEL_ABI_FORTRAN, "II.I.I"},
        {"cblas_dgemm", ACCEL_ABI_CBLAS, "...iii.i.i.i"},
        {"cblas_zgemm", ACCEL_ABI_CBLAS, "...iiiC.i.iC.i"},
        {"cblas_dger", ACCEL_ABI_CBLAS, ".ii.i.i.i"},
    };
    (void)state;
    for (size_t n = 0; n < sizeof of / sizeof *of; n++) {
        enum blas_word word[32];
        char words[33] = "";
        const struct accel_routine *const routine =
            accel_name_routine((uint32_t)accel_name_find(of[n].name));
        const int count = blas_words(word, 32, of[n].abi, routine);
        for (int i = 0; i < count; i++)
            words[i] = ".IiRC"[word[i]];
        assert_string_equal(words, of[n].words);
        assert_int_equal(blas_words(word, 3, of[n].abi, routine), 3); /* no more than asked for */
    }
}

static void widths_are_told_apart_only_beyond_32_bits(void **state)
{
    static char matrix[8];
    int entry = accel_name_find("dgemm_");
    const struct accel_routine *routine = accel_name_routine((uint32_t)entry);
    struct {
        _Alignas(8) int32_t low;
        int32_t high;
    } m = {2, 0}, n = {2, 0}, k = {2, 0}, ld = {2, 0};
    union caller_frame f = FRAME((uintptr_t) "N", (uintptr_t) "N", (uintptr_t)&m, (uintptr_t)&n,
                                 (uintptr_t)&k, 0, /* scalars do not count */
                                 (uintptr_t)matrix, (uintptr_t)&ld, (uintptr_t)matrix,
                                 (uintptr_t)&ld, 0, (uintptr_t)matrix, (uintptr_t)&ld);
    const struct accel_passed passed = passed_in(&f.frame, ACCEL_ABI_FORTRAN, 0);
    (void)state;
    assert_false(blas_is_wide(routine, &passed)); /* either way */
    m.high = 1;
    assert_false(blas_is_wide(routine, &passed)); /* lda < m: garbage */
    ld.high = 1;
    assert_true(blas_is_wide(routine, &passed)); /* m, lda > 2^32 */
    ld.high = 0x7fffffff;
    assert_false(blas_is_wide(routine, &passed)); /* no such memory */

    /* cblas_dger(ColMajor, 1000, 1000, 1.0, x, -1, y, 1, A, 1000): in a register, -1 of 32 bits is
     * 2^32 - 1. */
    union caller_frame g = FRAME(102, 1000, 1000, (uintptr_t)matrix, (uint32_t)-1,
                                 (uintptr_t)matrix, 1, (uintptr_t)matrix, 1000);
    const struct accel_passed by_value = passed_in(&g.frame, ACCEL_ABI_CBLAS, 0);
    assert_false(
        blas_is_wide(accel_name_routine((uint32_t)accel_name_find("cblas_dger")), &by_value));
    g.frame.gpr[4] = 1;
    g.frame.gpr[1] = (uint64_t)3 << 30; /* m; lda is on the stack */
    g.frame.stack[8 - ACCEL_WORD_REGISTERS] = (uint64_t)3 << 30;
    assert_true(
        blas_is_wide(accel_name_routine((uint32_t)accel_name_find("cblas_dger")), &by_value));
    g.frame.gpr[1] += 4095; /* no address, although the end of a page would be none either */
    g.frame.stack[8 - ACCEL_WORD_REGISTERS] += 4095;
    assert_true(
        blas_is_wide(accel_name_routine((uint32_t)accel_name_find("cblas_dger")), &by_value));
}

/* Nothing can be read behind the page that a 32-bit integer ends with: so it is one. */
static void the_last_integer_of_a_page_is_narrow(void **state)
{
    const long page = sysconf(_SC_PAGESIZE);
    char *const pages =
        mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct accel_routine *routine = accel_name_routine((uint32_t)accel_name_find("dgemm_"));
    static const int integers[] = {2, 3, 4, 7, 9, 12};
    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, (size_t)page, PROT_NONE), 0);
    int32_t *const last = (int32_t *)(void *)(pages + page - 4);
    int64_t *const large = (int64_t *)(void *)(pages + page - 16), *const two = large - 1;
    *last = 7;
    *large = (int64_t)3 << 30;
    *two = 2;
    union caller_frame f =
        FRAME((uintptr_t) "N", (uintptr_t) "N", (uintptr_t)large, (uintptr_t)two, (uintptr_t)two, 0,
              (uintptr_t)pages, (uintptr_t)large, (uintptr_t)pages, (uintptr_t)two, 0,
              (uintptr_t)pages, (uintptr_t)large);
    const struct accel_passed passed = passed_in(&f.frame, ACCEL_ABI_FORTRAN, 0);
    for (int i = 0; i < 6; i++) {
        const uint64_t before = *word_in(&f, integers[i]);
        assert_true(blas_is_wide(routine, &passed));
        *word_in(&f, integers[i]) = (uintptr_t)last;
        assert_false(blas_is_wide(routine, &passed));
        *word_in(&f, integers[i]) = before;
    }
    munmap(pages, 2 * (size_t)page);
}

/* LAPACKE passes bounds by value also where they mean nothing. */
static void bounds_count_only_for_a_range_of_values(void **state)
{
    (void)state;
    for (const char *range = "AIV"; *range; range++) {
        struct accel_call call =
            accel_call_of(accel_name_routine((uint32_t)accel_name_find("dsyevr_")));
        call.blas.flag[ACCEL_range] = *range;
        call.blas.scalar[ACCEL_vl].re = NAN;
        assert_int_equal(lapack_is_supported(&call), *range != 'V');
        call.blas.scalar[ACCEL_vl].re = 0;
        assert_true(lapack_is_supported(&call));
        call.blas.scalar[ACCEL_abstol].re = NAN;
        assert_false(lapack_is_supported(&call));
    }
}

/* What is not NULL: see call/operation.h. */
static void each_operation_has_its_groups(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        const struct accel_op *op = accel_op_of(routine);
        assert_non_null(op->cost);
        assert_true(op->cost->nominal.cpu_share > 0 && op->cost->nominal.gpu_share > 0);
        assert_int_equal(op->foreign != NULL, op->traits.group == ACCEL_NO_BLAS);
        if (op->gpu && (op->gpu->run != NULL) + (op->gpu->steps != NULL) != 1)
            fail_msg("%s: run or steps", routine->name);
        if (op->foreign && !op->foreign->guide)
            assert_true(op->foreign->parse && op->foreign->describe && op->cost->sizes && op->gpu &&
                        op->foreign->complete);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_has_its_groups),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(hidden_lengths_are_one),
        cmocka_unit_test(forwarding_keeps_the_callers_words),
        cmocka_unit_test(row_major_is_the_exchanged_product),
        cmocka_unit_test(wrong_letters_are_wrong_in_both_orders),
        cmocka_unit_test(row_major_level_2_goes_both_ways),
        cmocka_unit_test(success_is_told),
        cmocka_unit_test(answers_are_told),
        cmocka_unit_test(lengths_of_floats),
        cmocka_unit_test(groups_of_a_batch),
        cmocka_unit_test(without_vectors_none_has_failed),
        cmocka_unit_test(a_range_by_numbers_has_so_many_values),
        cmocka_unit_test(words_of_an_interface),
        cmocka_unit_test(bounds_count_only_for_a_range_of_values),
        cmocka_unit_test(widths_are_told_apart_only_beyond_32_bits),
        cmocka_unit_test(the_last_integer_of_a_page_is_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
