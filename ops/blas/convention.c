#include "ops/convention.h"

#include "parse.h"
#include "pass.h"

static bool parse_blas(struct accel_call *call, const struct accel_routine *routine,
                       const struct accel_passed *passed)
{
    blas_parse(call, routine, passed);
    return true;
}

static struct accel_passed pass(struct accel_words *words, const struct accel_call *call,
                                const struct accel_passed *passed)
{
    return blas_pass(words, passed->abi, passed->width, call);
}

const struct accel_convention blas_convention = {.parse = parse_blas,
                                                 .shape = blas_shape,
                                                 .repeat = blas_repeat,
                                                 .pass = pass,
                                                 .question = blas_question,
                                                 .complete = blas_complete};
