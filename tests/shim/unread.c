/*
 * unread LIBRARY [WIDTH]
 *
 * Calls of every name of the table that the library has, in which something that is passed by reference cannot be read: it is
 * NULL, or a page without access. BLAS and LAPACK do not look at it, since a size is zero, or a flag or a size is wrong. WIDTH:
 * bits of an INTEGER where the name does not tell, 32 or 64; default 32.
 *
 * Prints a line for each call, "call NAME CASE ARGUMENT=HOW: returned" or "...: SIGSEGV", and goes on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/arch/x86_64/entry.h"
#include "ops/names.h"
#include "ops/op.h"

enum { SIZE = 3, LENGTH = 4, STRIDE = 16, BATCH = 2, GROUPS_MOST = 2, WORK = 1 << 16 };

/* ---- What libraries say of wrong arguments ---- */

void xerbla_(const char *name, const void *info, size_t length);
void xerbla_(const char *name, const void *info, size_t length)
{
    (void)name, (void)info, (void)length;
}

void cblas_xerbla(int info, const char *routine, const char *form, ...);
void cblas_xerbla(int info, const char *routine, const char *form, ...)
{
    (void)info, (void)routine, (void)form;
}

void LAPACKE_xerbla(const char *name, long info);
void LAPACKE_xerbla(const char *name, long info)
{
    (void)name, (void)info;
}

/* ---- One call ---- */

/* The argument that makes nothing happen, and how. */
struct reason {
    int arg;
    bool wrong; /* else it is zero */
    char range; /* of eigenvalues, where the routine has such */
    int groups; /* of a batch */
};

/* What arguments point to. */
struct cell {
    int64_t wide[GROUPS_MOST];
    int32_t narrow[GROUPS_MOST];
    char letters[GROUPS_MOST];
    double scalar[2 * GROUPS_MOST];
    void *matrices[GROUPS_MOST * BATCH];
};

struct call {
    const struct accel_routine *routine;
    enum accel_abi abi;
    int width;
    struct cell cell[ACCEL_ARGS_MAX];
    uint64_t words[8 * ACCEL_ARGS_MAX];
    int place[ACCEL_ARGS_MAX]; /* of an argument's word; -1: it is no address */
    double xmm[8][2];
    size_t count;
};

static double memory[ACCEL_MATRICES][WORK], work[WORK];

static bool is_passed(enum accel_abi abi, enum accel_kind kind)
{
    return abi == ACCEL_ABI_LAPACKE ? !accel_is_fortran_only(kind) : kind != ACCEL_ARG_EXTRA;
}

static void put(struct call *x, int arg, uint64_t word, bool address)
{
    x->place[arg] = address ? (int)x->count : -1;
    x->words[x->count++] = word;
}

static void put_integer(struct call *x, int i, int64_t value)
{
    struct cell *cell = &x->cell[i];
    if (x->abi != ACCEL_ABI_FORTRAN && !x->routine->arg[i].array) {
        put(x, i, (uint64_t)value, false);
        return;
    }
    for (int g = 0; g < GROUPS_MOST; g++) {
        cell->wide[g] = value;
        cell->narrow[g] = (int32_t)value;
    }
    put(x, i, x->width == 64 ? (uintptr_t)cell->wide : (uintptr_t)cell->narrow, true);
}

static char letter_of(const struct accel_arg *arg, const struct reason *reason)
{
    return arg->slot == ACCEL_range && reason->range ? reason->range : arg->allowed[0];
}

static void put_flag(struct call *x, int i, const struct reason *reason)
{
    static const int first[ACCEL_FLAGS] = {
        [ACCEL_transa] = 111, [ACCEL_transb] = 111, [ACCEL_trans] = 111,
        [ACCEL_uplo] = 121,   [ACCEL_diag] = 131,   [ACCEL_side] = 141};
    const struct accel_arg *arg = &x->routine->arg[i];
    bool wrong = reason->arg == i;
    struct cell *cell = &x->cell[i];
    for (int g = 0; g < GROUPS_MOST; g++) {
        cell->letters[g] = wrong ? '?' : letter_of(arg, reason);
        cell->narrow[g] = wrong ? 99 : first[arg->slot];
    }
    if (x->abi == ACCEL_ABI_LAPACKE)
        put(x, i, (unsigned char)cell->letters[0], false);
    else if (x->abi == ACCEL_ABI_FORTRAN)
        put(x, i, (uintptr_t)cell->letters, true);
    else
        put(x, i, arg->array ? (uintptr_t)cell->narrow : (uint64_t)cell->narrow[0], arg->array);
}

/* The number 1 or 0 in the routine's type, for each group; its real counterpart is the same. */
static void put_scalar(struct call *x, int i, int *reals)
{
    const struct accel_arg *arg = &x->routine->arg[i];
    enum accel_dtype dtype = x->routine->dtype;
    bool real = arg->kind == ACCEL_ARG_REAL || !accel_is_complex(dtype);
    const float one = 1;
    const double two = 2;
    size_t size = arg->kind == ACCEL_ARG_REAL ? accel_dtype_size(accel_real_dtype(dtype))
                                              : accel_dtype_size(dtype);
    char *at = (char *)x->cell[i].scalar;
    for (int g = 0; g < GROUPS_MOST; g++)
        memcpy(at + (size_t)g * size,
               accel_is_double(dtype) ? (const void *)&two : (const void *)&one,
               accel_is_double(dtype) ? sizeof two : sizeof one);
    x->place[i] = -1;
    if (x->abi != ACCEL_ABI_FORTRAN && real && !arg->array)
        memcpy(x->xmm[(*reals)++], at, size);
    else
        put(x, i, (uintptr_t)at, true);
}

static void put_matrix(struct call *x, int i)
{
    const struct accel_arg *arg = &x->routine->arg[i];
    for (int j = 0; j < GROUPS_MOST * BATCH; j++)
        x->cell[i].matrices[j] = &memory[arg->slot][j * 2 * STRIDE];
    put(x, i, arg->array ? (uintptr_t)x->cell[i].matrices : (uintptr_t)memory[arg->slot], true);
}

static int64_t value_of(const struct accel_arg *arg, bool is_reason, const struct reason *reason)
{
    if (is_reason)
        return reason->wrong ? -1 : 0;
    switch (arg->kind) {
    case ACCEL_ARG_LD:
        return LENGTH;
    case ACCEL_ARG_STRIDE:
        return STRIDE;
    case ACCEL_ARG_BATCH:
        return BATCH;
    case ACCEL_ARG_GROUPS:
        return reason->groups;
    case ACCEL_ARG_LWORK:
        return WORK / 2;
    case ACCEL_ARG_SIZE:
        return SIZE;
    case ACCEL_ARG_INTEGER: /* with il = 1, iu = 0 is right of no eigenvalue */
        return arg->slot != ACCEL_iu;
    default:
        return 1;
    }
}

static void make_call(struct call *x, uint32_t name, int width, const struct reason *reason)
{
    const struct accel_mangling *mangling = accel_name_mangling(name);
    int reals = 0;
    memset(x, 0, sizeof *x);
    x->routine = accel_name_routine(name);
    x->abi = mangling->abi;
    x->width = mangling->width ? mangling->width : width;
    if (x->abi != ACCEL_ABI_FORTRAN)
        x->words[x->count++] = 102;
    for (int i = 0; i < x->routine->args; i++) {
        const struct accel_arg *arg = &x->routine->arg[i];
        x->place[i] = -1;
        if (!is_passed(x->abi, arg->kind))
            continue;
        if (arg->kind == ACCEL_ARG_FLAG)
            put_flag(x, i, reason);
        else if (arg->kind == ACCEL_ARG_SCALAR || arg->kind == ACCEL_ARG_REAL)
            put_scalar(x, i, &reals);
        else if (arg->kind == ACCEL_ARG_MATRIX || arg->kind == ACCEL_ARG_VECTOR)
            put_matrix(x, i);
        else if (arg->kind == ACCEL_ARG_WORK || arg->kind == ACCEL_ARG_EXTRA)
            put(x, i, (uintptr_t)work, false);
        else if (arg->kind == ACCEL_ARG_INFO)
            put(x, i, (uintptr_t)x->cell[i].wide, false);
        else
            put_integer(x, i, value_of(arg, i == reason->arg, reason));
    }
    for (int i = 0; i < x->routine->args && x->abi == ACCEL_ABI_FORTRAN; i++)
        if (x->routine->arg[i].kind == ACCEL_ARG_FLAG)
            x->words[x->count++] = 1;
}

static sigjmp_buf out;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

static bool returns(void *function, const struct call *x)
{
    if (sigsetjmp(out, 1))
        return false;
    const struct accel_passed passed = {.gpr = x->words,
                                        .xmm = (const double(*)[2])x->xmm,
                                        .stack = x->words + 6,
                                        .stack_words = x->count > 6 ? x->count - 6 : 0};
    accel_invoke(function, &passed);
    return true;
}

/* ---- What need not be there ---- */

static bool is_scalar(const struct accel_arg *arg)
{
    return arg->kind == ACCEL_ARG_SCALAR || arg->kind == ACCEL_ARG_REAL;
}

static bool is_bound(const struct accel_arg *arg)
{
    return arg->kind == ACCEL_ARG_INTEGER && (arg->slot == ACCEL_il || arg->slot == ACCEL_iu);
}

static bool is_array_of_matrices(const struct accel_arg *arg)
{
    return arg->array && arg->kind == ACCEL_ARG_MATRIX;
}

/* Of what is wrong, no more is read than flags and sizes. */
static bool is_unread_of_wrong(const struct accel_arg *arg)
{
    return is_scalar(arg) || is_bound(arg) || arg->kind == ACCEL_ARG_LD ||
           arg->kind == ACCEL_ARG_INC || arg->kind == ACCEL_ARG_STRIDE || is_array_of_matrices(arg);
}

static bool is_unread_of_empty(const struct accel_routine *routine, const struct accel_arg *zero,
                               const struct accel_arg *arg, char range)
{
    bool size = zero->kind == ACCEL_ARG_SIZE;
    if (accel_is_lapack(routine)) /* other sizes leave something to be done, or not, by routine */
        return (zero->slot == ACCEL_m || zero->slot == ACCEL_n) &&
               (is_scalar(arg) || (is_bound(arg) && range != 'I'));
    if (size && zero->slot == ACCEL_k) /* C is scaled */
        return (is_scalar(arg) && arg->slot == ACCEL_alpha) ||
               (is_array_of_matrices(arg) && arg->access == ACCEL_READ);
    return is_scalar(arg) || is_array_of_matrices(arg);
}

static bool is_unread(const struct accel_routine *routine, const struct reason *reason, int i)
{
    const struct accel_arg *why = &routine->arg[reason->arg], *arg = &routine->arg[i];
    return reason->wrong ? is_unread_of_wrong(arg)
                         : is_unread_of_empty(routine, why, arg, reason->range);
}

/* ---- All calls ---- */

static char *page;

/* first < 0: all that need not be there. */
static bool hide(struct call *x, const struct reason *reason, int first, void *nothing)
{
    bool any = false;
    for (int i = 0; i < x->routine->args; i++) {
        if (x->place[i] < 0 || !is_unread(x->routine, reason, i) || (first >= 0 && first != i))
            continue;
        x->words[x->place[i]] = (uintptr_t)nothing;
        any = true;
    }
    return any;
}

static void try_reason(uint32_t name, void *function, int width, const struct reason *reason)
{
    static struct call x;
    const struct accel_routine *routine = accel_name_routine(name);
    for (int hidden = -1; hidden < routine->args; hidden++)
        for (int page_too = 0; page_too < 2; page_too++) {
            make_call(&x, name, width, reason);
            if (!hide(&x, reason, hidden, page_too ? page : NULL))
                continue;
            const char *result = returns(function, &x) ? "returned" : "SIGSEGV";
            printf("call %s %s=%s", accel_names[name].symbol, routine->arg[reason->arg].name,
                   reason->wrong ? "wrong" : "0");
            if (reason->range)
                printf(" range=%c", reason->range);
            if (reason->groups > 1)
                printf(" groups=%d", reason->groups);
            printf(" %s=%s: %s\n", hidden < 0 ? "all" : routine->arg[hidden].name,
                   page_too ? "page" : "NULL", result);
        }
}

static bool has_kind(const struct accel_routine *routine, enum accel_kind kind, uint8_t slot)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == kind &&
            (routine->arg[i].slot == slot || kind == ACCEL_ARG_GROUPS))
            return true;
    return false;
}

static void try_name(uint32_t name, void *function, int width)
{
    const struct accel_routine *routine = accel_name_routine(name);
    const char *ranges = has_kind(routine, ACCEL_ARG_FLAG, ACCEL_range) ? "AVI" : "-";
    int groups = has_kind(routine, ACCEL_ARG_GROUPS, 0) ? GROUPS_MOST : 1;
    for (int i = 0; i < routine->args; i++) {
        enum accel_kind kind = routine->arg[i].kind;
        bool size = kind == ACCEL_ARG_SIZE;
        for (const char *range = ranges; *range; range++)
            for (struct reason reason = {i, false, *range == '-' ? 0 : *range, 1};
                 reason.groups <= groups; reason.groups++) {
                reason.wrong = false;
                if (size || kind == ACCEL_ARG_BATCH)
                    try_reason(name, function, width, &reason);
                reason.wrong = true;
                /* (a * allows any other letter) */
                if (size || (kind == ACCEL_ARG_FLAG && !strchr(routine->arg[i].allowed, '*')))
                    try_reason(name, function, width, &reason);
            }
    }
}

int main(int argc, char **argv)
{
    int width = argc > 2 ? atoi(argv[2]) : 32;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    if (!library || (width != 32 && width != 64)) {
        fprintf(stderr, "unread LIBRARY [32|64]: %s\n", dlerror());
        return 2;
    }
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    for (uint32_t name = 0; name < accel_name_count; name++) {
        void *function = dlsym(library, accel_names[name].symbol);
        if (function)
            try_name(name, function, width);
    }
    return 0;
}
