/* Functions of other libraries. */
#include "convention.h"

static bool parse(struct accel_call *call, const struct accel_routine *routine,
                  const struct accel_passed *passed)
{
    *call = (struct accel_call){.routine = routine, .batch = 1};
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

/* There is nothing else to call it with. */
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
