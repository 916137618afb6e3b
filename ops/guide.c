#include "guide.h"

#include <string.h>

#include "base/text/text.h"

void guide_name_device(struct guide *guide, int number)
{
    struct accel_text text;
    text_start(&text, guide->told, sizeof guide->told);
    text_string(&text, "cuda");
    if (number > 0) {
        text_char(&text, ':');
        text_integer(&text, number);
    }
    text_end(&text);
    guide->call->own.pointer[GUIDE_TOLD] = guide->told;
}

enum guide_news guide_lacks_cuda(const struct guide *guide, atomic_bool *said)
{
    guide->call->own.pointer[GUIDE_BUILD] = "no_cuda";
    return atomic_exchange(said, true) ? GUIDE_NOTHING : GUIDE_UNSUPPORTED;
}

bool guide_lacks_memory(const char *message)
{
    return message && (strstr(message, "out of memory") || strstr(message, "bad_alloc"));
}

bool guide_parse(struct accel_call *call, const struct accel_passed *passed)
{
    (void)passed;
    memset(&call->own, 0, sizeof call->own);
    return true;
}

static double no_flops(const struct accel_call *call)
{
    (void)call;
    return 0;
}

const struct accel_cost guide_cost = {.nominal = {.cpu_share = 0.1, .gpu_share = 0.1},
                                      .flops = no_flops};

void guide_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    if (call->own.pointer[GUIDE_BUILD])
        fields->string(fields, "build", call->own.pointer[GUIDE_BUILD]);
    if (call->own.pointer[GUIDE_TOLD])
        fields->string(fields, "device", call->own.pointer[GUIDE_TOLD]);
}
