/* The convention of other libraries' functions: their operations know the arguments. */
#include "convention.h"

#include <string.h>

static bool parse_function(struct accel_call *call, const struct accel_routine *routine,
                           const struct accel_passed *passed)
{
    *call = accel_call_of(routine);
    return call->op->foreign->parse(call, passed);
}

static struct accel_passed repeat(struct accel_words *words, const struct accel_routine *routine,
                                  const struct accel_passed *passed)
{
    struct accel_passed again = *passed;
    (void)words;
    again.stack_words = accel_words_on_stack(accel_op_of(routine)->foreign->words);
    return again;
}

static struct accel_passed pass(struct accel_words *words, const struct accel_call *call,
                                const struct accel_passed *passed)
{
    const struct accel_foreign *foreign = call->op->foreign;
    struct accel_passed again = repeat(words, call->routine, passed);
    uint64_t word;
    const int place = foreign->instead ? foreign->instead(call, &word) : -1;
    if (place < 0)
        return again;
    memcpy(words->word, passed->gpr, ACCEL_WORD_REGISTERS * sizeof *words->word);
    memcpy(words->word + ACCEL_WORD_REGISTERS, passed->stack,
           again.stack_words * sizeof *words->word);
    words->word[place] = word;
    again.gpr = words->word;
    again.stack = words->word + ACCEL_WORD_REGISTERS;
    return again;
}

static void complete_function(const struct accel_call *call, const struct accel_passed *passed,
                              const struct accel_words *answers, struct accel_result *result)
{
    (void)passed;
    (void)answers;
    call->op->foreign->complete(call, result);
}

const struct accel_convention function_convention = {
    .parse = parse_function, .repeat = repeat, .pass = pass, .complete = complete_function};
