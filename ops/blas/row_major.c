#include "row_major.h"

#include "ops/op.h"
#include "call/shape.h"

/* Exchanges m and n, if the routine has both. */
static void exchange_sizes(struct accel_call *call)
{
    if (!accel_has_size(call->routine, ACCEL_m))
        return;
    int64_t m = call->blas.size[ACCEL_m];
    call->blas.size[ACCEL_m] = call->blas.size[ACCEL_n];
    call->blas.size[ACCEL_n] = m;
}

/* Exchanges two letters; leaves any other, which is wrong. */
static void flip(char *flag, char one, char other)
{
    *flag = *flag == one ? other : *flag == other ? one : *flag;
}

static void exchange_operands(struct accel_call *call, enum accel_matrix one,
                              enum accel_matrix other)
{
    struct accel_span old = call->span[one];
    call->span[one] = call->span[other];
    call->span[other] = old;
}

/* Exchanges N and T; C and R, a conjugation without transposition. */
static void transpose(struct accel_call *call)
{
    char *trans = &call->blas.flag[ACCEL_trans];
    if (!accel_is_complex(call->routine->dtype) && *trans == 'C')
        *trans = 'T';
    if (*trans == 'N' || *trans == 'T')
        flip(trans, 'N', 'T');
    else
        flip(trans, 'C', 'R');
}

void row_major_exchange(struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    switch (routine->row_major) {
    case ACCEL_SWAP_A_B: {
        char transa = call->blas.flag[ACCEL_transa];
        call->blas.flag[ACCEL_transa] = call->blas.flag[ACCEL_transb];
        call->blas.flag[ACCEL_transb] = transa;
        exchange_operands(call, ACCEL_a, ACCEL_b);
        flip(&call->blas.flag[ACCEL_uplo], 'U', 'L');
        exchange_sizes(call);
        break;
    }
    case ACCEL_FLIP_SIDE:
        flip(&call->blas.flag[ACCEL_side], 'L', 'R');
        flip(&call->blas.flag[ACCEL_uplo], 'U', 'L');
        exchange_sizes(call);
        break;
    case ACCEL_FLIP_TRANS: {
        bool hermitian = accel_is_hermitian(routine);
        if (!hermitian && call->blas.flag[ACCEL_trans] == 'C') /* in real types */
            call->blas.flag[ACCEL_trans] = 'T';
        flip(&call->blas.flag[ACCEL_trans], 'N', hermitian ? 'C' : 'T');
        flip(&call->blas.flag[ACCEL_uplo], 'U', 'L');
        break;
    }
    case ACCEL_TRANSPOSE:
        transpose(call);
        flip(&call->blas.flag[ACCEL_uplo], 'U', 'L');
        exchange_sizes(call);
        call->blas.conjugated = accel_is_hermitian(routine);
        break;
    case ACCEL_SWAP_X_Y:
        exchange_operands(call, ACCEL_x, ACCEL_y);
        exchange_sizes(call);
        call->blas.conjugated = accel_op_of(routine)->traits.conjugates;
        break;
    case ACCEL_TO_FORTRAN:
        break;
    }
}
