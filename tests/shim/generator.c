#include "generator.h"

#include "ops/op.h"

#include <string.h>

/* ---- What the table says ---- */

static const struct accel_arg *find(const struct accel_routine *routine, enum accel_kind kind)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == kind)
            return &routine->arg[i];
    return NULL;
}

static bool has_flag(const struct accel_routine *routine, enum accel_flag flag)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_FLAG && routine->arg[i].slot == flag)
            return true;
    return false;
}

static bool is_solver(const struct accel_routine *routine)
{
    return accel_op_of(routine) == &op_trsm || accel_op_of(routine) == &op_trsv;
}

/* The matrix of which a triangle counts. */
static bool has_triangle(const struct accel_routine *routine, const struct accel_arg *arg)
{
    return has_flag(routine, ACCEL_uplo) && arg->kind == ACCEL_ARG_MATRIX && arg->rows == arg->cols;
}

/* ---- Numbers ---- */

static struct accel_complex pick_scalar(bool complex, unsigned *seed)
{
    static const double usual[] = {0, 1, -1};
    int64_t which = random_below(seed, 5);
    if (which < 3)
        return (struct accel_complex){usual[which], 0};
    double re = (float)random_uniform(seed);
    return (struct accel_complex){re, complex ? (float)random_uniform(seed) : 0};
}

static int64_t pick_size(int max, unsigned *seed)
{
    int64_t which = random_below(seed, 12);
    return which < 2 ? which : 1 + random_below(seed, max);
}

static int64_t pick_inc(unsigned *seed)
{
    static const int64_t incs[] = {1, 1, 2, 3, -1, -2};
    return incs[random_below(seed, 6)];
}

static void avoid_faults(struct accel_call *call, const struct random_limits *limits)
{
    /* Where x or y has no elements, the CBLAS of BLIS 0.9.0 or of the reference walks past its end. */
    if (limits->row_major && accel_op_of(call->routine) == &op_gemv &&
        accel_is_complex(call->routine->dtype) && call->flag[ACCEL_trans] == 'C') {
        call->size[ACCEL_m] += call->size[ACCEL_m] == 0;
        call->size[ACCEL_n] += call->size[ACCEL_n] == 0;
    }
    if (limits->no_lower_ssymv && accel_op_of(call->routine) == &op_symv &&
        call->routine->dtype == ACCEL_FLOAT32)
        call->flag[ACCEL_uplo] = limits->row_major ? 'L' : 'U';
    if (limits->no_conjugate && accel_op_of(call->routine) == &op_gemmt &&
        accel_is_complex(call->routine->dtype))
        for (int i = 0; i < ACCEL_FLAGS; i++)
            if (call->flag[i] == 'C')
                call->flag[i] = 'T';
}

/* Sizes, flags, scalars, and of batches the number of products. */
static void pick_call(struct accel_call *call, int max_size, unsigned *seed)
{
    const struct accel_routine *routine = call->routine;
    bool square = random_below(seed, 5) == 0;
    int64_t side = pick_size(max_size, seed);
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG)
            call->flag[arg->slot] = arg->allowed[random_below(seed, (int64_t)strlen(arg->allowed))];
        if (arg->kind == ACCEL_ARG_SIZE)
            call->size[arg->slot] = square ? side : pick_size(max_size, seed);
        if (arg->kind == ACCEL_ARG_SCALAR || arg->kind == ACCEL_ARG_REAL)
            call->scalar[arg->slot] = pick_scalar(
                arg->kind == ACCEL_ARG_SCALAR && accel_is_complex(routine->dtype), seed);
        if (arg->kind == ACCEL_ARG_BATCH)
            call->batch = random_below(seed, BATCH_MAX + 1);
    }
}

/* ---- Operands ---- */

/* Whether what an operand holds enters the result. */
static bool is_read(const struct accel_call *call, bool output)
{
    const struct accel_routine *routine = call->routine;
    bool no_alpha = accel_adds_nothing(call);
    if (!output)
        return !no_alpha;
    if (accel_has_scalar(routine, ACCEL_beta))
        return !accel_is_zero(call->scalar[ACCEL_beta]);
    return !no_alpha || accel_is_level2(routine);
}

/* s- and dgemm of OpenBLAS 0.3.21 do read A and B with alpha = 0 (small matrices, AVX-512). */
static bool may_be_read(const struct accel_call *call, bool output)
{
    return !output && accel_op_of(call->routine) == &op_gemm;
}

static void shape(struct matrix *m, const struct accel_call *call, const struct accel_arg *arg)
{
    char flag = arg->transposed_by == ACCEL_noflag ? 'N' : call->flag[arg->transposed_by];
    int64_t rows = accel_call_size(call, arg->rows), cols = accel_call_size(call, arg->cols);
    bool vector = arg->kind == ACCEL_ARG_VECTOR;
    m->rows = vector ? 1 : flag == 'N' ? rows : cols;
    m->cols = (flag == 'N') == vector ? rows : cols;
}

static void make_matrix(struct random_call *x, int g, const struct accel_arg *arg,
                        const struct test_memory *kind, unsigned *seed)
{
    const struct accel_routine *routine = x->routine;
    struct accel_call *call = &x->group[g];
    struct matrix *m = &x->matrix[g][arg->slot];
    bool vector = arg->kind == ACCEL_ARG_VECTOR, triangle = has_triangle(routine, arg);
    bool output = arg->access & ACCEL_WRITE;
    *m = (struct matrix){.inc = vector ? pick_inc(seed) : 0,
                         .count = call->batch,
                         .dtype = arg->dtype == ACCEL_SAME ? routine->dtype
                                                           : (enum accel_dtype)arg->dtype,
                         .row_major = x->row_major && !vector,
                         .uplo = triangle ? call->flag[ACCEL_uplo] : 0,
                         .unit = triangle && call->flag[ACCEL_diag] == 'U',
                         .nan = !is_read(call, output) && !may_be_read(call, output),
                         .output = output,
                         .real_diagonal = triangle && accel_is_hermitian(routine),
                         .solvable = triangle && is_solver(routine),
                         .kind = kind};
    shape(m, call, arg);
    if (!output && random_below(seed, 4) == 0 && m->count > 1)
        m->count = 1; /* shared */
    matrix_make(m, seed);
}

static bool is_alike(const struct matrix *a, const struct matrix *b)
{
    return a->memory && b->memory && !a->output && !b->output && !a->uplo && !b->uplo &&
           a->rows == b->rows && a->cols == b->cols && a->count == b->count && !a->inc == !b->inc &&
           a->kind == b->kind;
}

/* The same matrix, or vector, as both inputs. */
static void make_same(struct random_call *x, int g, enum accel_matrix one, enum accel_matrix other,
                      unsigned *seed)
{
    if (!is_alike(&x->matrix[g][one], &x->matrix[g][other]) || random_below(seed, 2))
        return;
    matrix_release(&x->matrix[g][other]);
    x->matrix[g][other] = (struct matrix){.memory = NULL};
    x->same_as[g][other] = one;
}

/* NaN or Inf where every implementation must meet it; see judge.h. */
static void spoil(struct random_call *x, int g, unsigned *seed)
{
    enum accel_matrix which = (enum accel_matrix)random_below(seed, ACCEL_MATRICES);
    struct matrix *m = &x->matrix[g][which];
    if (m->memory && is_read(&x->group[g], m->output) && !m->solvable)
        matrix_spoil(m, seed);
}

static void make_operands(struct random_call *x, int g,
                          const struct test_memory *const memory[ACCEL_MATRICES], unsigned *seed)
{
    for (int i = 0; i < x->routine->args; i++) {
        const struct accel_arg *arg = &x->routine->arg[i];
        if (arg->kind == ACCEL_ARG_MATRIX || arg->kind == ACCEL_ARG_VECTOR)
            make_matrix(x, g, arg, memory[arg->slot], seed);
    }
    for (int i = 0; i < ACCEL_MATRICES; i++)
        x->same_as[g][i] = (enum accel_matrix)i;
    make_same(x, g, ACCEL_a, ACCEL_b, seed);
    make_same(x, g, ACCEL_x, ACCEL_y, seed);
    if (random_below(seed, 4) == 0)
        spoil(x, g, seed);
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (x->matrix[g][i].memory)
            matrix_place(&x->matrix[g][i]);
}

struct matrix *random_call_matrix(struct random_call *x, int g, enum accel_matrix which)
{
    struct matrix *m = &x->matrix[g][x->same_as[g][which]];
    return m->memory ? m : NULL;
}

/* Where the routine finds an operand; its matrices in arrays stand in either order. */
static void point_to(struct random_call *x, int g, int before, enum accel_matrix which,
                     unsigned *seed)
{
    struct accel_call *call = &x->group[g];
    const struct matrix *m = random_call_matrix(x, g, which);
    bool arrays = find(x->routine, ACCEL_ARG_GROUPS), shared = m->count < call->batch;
    bool backwards = arrays && random_below(seed, 2);
    for (int i = 0; i < call->batch; i++) {
        x->slot[g][which][i] = shared ? 0 : backwards ? (int)call->batch - 1 - i : i;
        x->array[which][before + i] = m->where + matrix_offset(m, x->slot[g][which][i]);
    }
    call->span[which] = (struct accel_span){.ptr = m->where + matrix_offset(m, 0),
                                            .rows = m->rows,
                                            .cols = m->cols,
                                            .ld = m->ld,
                                            .inc = m->inc,
                                            .stride = arrays || shared ? 0 : m->stride,
                                            .array = arrays ? &x->array[which][before] : NULL,
                                            .dtype = m->dtype,
                                            .triangle = m->output ? m->uplo : 0};
}

void random_call_make(struct random_call *x, const struct accel_routine *routine,
                      const struct random_limits *limits,
                      const struct test_memory *const memory[ACCEL_MATRICES], unsigned *seed)
{
    int before = 0, most = limits->one_group ? 1 : GROUPS_MAX;
    memset(x, 0, sizeof *x);
    x->routine = routine;
    x->row_major = limits->row_major;
    x->groups = find(routine, ACCEL_ARG_GROUPS) ? (int)random_below(seed, most + 1) : 1;
    for (int g = 0; g < x->groups; g++) {
        struct accel_call *call = &x->group[g];
        call->routine = routine;
        call->batch = call->groups = 1;
        pick_call(call, limits->max_size, seed);
        avoid_faults(call, limits);
        make_operands(x, g, memory, seed);
        for (int i = 0; i < ACCEL_MATRICES; i++)
            if (random_call_matrix(x, g, (enum accel_matrix)i))
                point_to(x, g, before, (enum accel_matrix)i, seed);
        before += (int)call->batch;
    }
}

void random_call_release(struct random_call *x)
{
    for (int g = 0; g < x->groups; g++)
        for (int i = 0; i < ACCEL_MATRICES; i++)
            if (x->matrix[g][i].memory)
                matrix_release(&x->matrix[g][i]);
}
