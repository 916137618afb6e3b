#include "gsl.h"

#include <stdlib.h>
#include <string.h>

/* The functions have the same meaning in these versions. */
int gsl_accepts(const struct accel_provider *provider)
{
    char *const *version = provider->symbol(provider, "gsl_version");
    if (!version || strncmp(*version, "2.", 2) != 0)
        return 0;
    const int minor = atoi(*version + 2);
    return minor >= 6 && minor <= 8;
}

/* The lower half of size1. */
int gsl_count_at(int layout)
{
    (void)layout;
    return 0;
}

const int64_t *gsl_sizes(const struct accel_call *call)
{
    return &call->own.integer[GSL_SIZES];
}

void gsl_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    fields->integer(fields, "m", call->own.integer[GSL_SIZES]);
    fields->integer(fields, "n", call->own.integer[GSL_SIZES + 1]);
}

/* GSL_SUCCESS */
void gsl_complete(const struct accel_call *call, struct accel_result *result)
{
    (void)call;
    result->gpr[0] = 0;
}

struct accel_span gsl_span(const struct accel_call *call, const char *name,
                           const struct gsl_matrix *x, enum accel_access access)
{
    return (struct accel_span){.name = name,
                               .ptr = x->data,
                               .rows = (int64_t)x->size2,
                               .cols = (int64_t)x->size1,
                               .ld = (int64_t)x->tda,
                               .dtype = call->routine->dtype,
                               .access = access};
}

bool gsl_parse(struct accel_call *call, const struct gsl_matrix *a)
{
    if (!a || !a->data || !a->size1 || !a->size2 || a->size1 > INT32_MAX || a->tda > INT32_MAX ||
        a->tda < a->size2)
        return false;
    call->own.integer[GSL_SIZES] = (int64_t)a->size1;
    call->own.integer[GSL_SIZES + 1] = (int64_t)a->size2;
    call->own.integer[GSL_SIZES + 2] = call->own.integer[GSL_SIZES + 3] = 0;
    call->span[ACCEL_a] = gsl_span(call, "A", a, ACCEL_READWRITE);
    return true;
}

bool gsl_parse_vector(struct accel_call *call, const char *name, const struct gsl_vector *x,
                      size_t size)
{
    if (!x || !x->data || x->stride != 1 || x->size != size)
        return false;
    call->span[ACCEL_x] =
        accel_column(name, x->data, (int64_t)x->size, call->routine->dtype, ACCEL_WRITE);
    return true;
}

void gsl_factor(struct solver *s,
                void (*step)(struct solver *s, struct array a, struct array vector))
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *x = &s->call->span[ACCEL_x];
    struct array by_rows = solver_upload(s, a, 0),
                 by_columns = solver_array(s, by_rows.cols, by_rows.rows),
                 vector = solver_vector(s, x->rows, x->dtype);
    solver_transpose(s, by_columns, by_rows);
    step(s, by_columns, vector);
    solver_transpose(s, by_rows, by_columns);
    solver_return(s, a, by_rows, 0);
    solver_return(s, x, vector, 0);
}
