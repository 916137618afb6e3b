/* The convention of other libraries' functions: their operations know the arguments. */
#include "convention.h"

static bool parse(struct accel_call *call, const struct accel_routine *routine,
                  const struct accel_passed *passed)
{
    *call = (struct accel_call){.routine = routine, .batch = 1, .parts = 1};
    return accel_op_of(routine)->parse(call, passed);
}

static struct accel_passed repeat(struct accel_words *words, const struct accel_routine *routine,
                                  const struct accel_passed *passed)
{
    struct accel_passed again = *passed;
    (void)words;
    again.stack_words = accel_op_of(routine)->stack_words;
    return again;
}

/* The caller's arguments are the only ones that the original can be called with. */
static struct accel_passed pass(struct accel_words *words, const struct accel_call *call,
                                const struct accel_passed *passed)
{
    return repeat(words, call->routine, passed);
}

static void complete(const struct accel_call *call, const struct accel_passed *passed,
                     struct accel_result *result)
{
    (void)passed;
    accel_op_of(call->routine)->complete(call, result);
}

const struct accel_convention function_convention = {parse, repeat, pass, complete};
