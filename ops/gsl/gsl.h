/*
 * What the functions of GSL (2.6 to 2.8) have in common: its structs, and a call of a matrix by
 * rows.
 */
#ifndef GSL_GSL_H
#define GSL_GSL_H

#include "gpu/exec/lapack/solver.h"
#include "ops/op.h"

/* Rows of size2 elements, tda apart. Of complex ones size1, size2, tda and stride count elements,
 * too. */
struct gsl_matrix {
    size_t size1, size2, tda;
    double *data;
};

struct gsl_vector {
    size_t size, stride;
    double *data;
};

struct gsl_permutation {
    size_t size, *data;
};

/* call->own: other arguments, then from GSL_SIZES on the matrix's two sizes. */
enum { GSL_ARGUMENT, GSL_SIZES = 4 };

int gsl_accepts(const struct accel_provider *provider);
int gsl_count_at(int layout);
const int64_t *gsl_sizes(const struct accel_call *call);
void gsl_describe(const struct accel_call *call, const struct accel_fields *fields);
void gsl_complete(const struct accel_call *call, struct accel_result *result);

/* Returns a matrix of the call as a span: its columns are the matrix's rows. */
struct accel_span gsl_span(const struct accel_call *call, const char *name,
                           const struct gsl_matrix *x, enum accel_access access);

/* Notes the matrix of a call. Returns false if its sizes are none. */
bool gsl_parse(struct accel_call *call, const struct gsl_matrix *a);

/* Notes a vector of the call that is written, as operand x. Returns false if it has another length,
 * or a stride. */
bool gsl_parse_vector(struct accel_call *call, const char *name, const struct gsl_vector *x,
                      size_t size);

/* Factors the call's matrix on the device by one of LAPACK's steps, and returns what that makes of
 * the matrix, by rows, and of the vector, operand x. */
void gsl_factor(struct solver *s,
                void (*step)(struct solver *s, struct array a, struct array vector));

/* An operation, by its shares of a large product's rate and four functions of its file. */
#define GSL_FUNCTION(cpu, gpu_rate, parse_call, count, run_call, check_call)                       \
    {                                                                                              \
        .traits = {.group = ACCEL_NO_BLAS},                                                        \
        OP_COST(.nominal = {.cpu_share = (cpu), .gpu_share = (gpu_rate)}, .sizes = gsl_sizes,      \
                .flops = (count)),                                                                 \
        OP_RULES(.check = (check_call)),                                                           \
        OP_GPU(.is_supported = accel_is_on_host, .run = (run_call)),                               \
        OP_FOREIGN(.accepts = gsl_accepts, .count_at = gsl_count_at, .nests = true,                \
                   .describe = gsl_describe, .complete = gsl_complete, .parse = (parse_call))      \
    }

#endif
