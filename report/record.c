#include "record.h"

static const char *const why_names[ACCEL_WHYS] = {
    [ACCEL_FASTER] = "faster",
    [ACCEL_FORCED] = "forced",
    [ACCEL_DEVICE_DATA] = "device_data",
    [ACCEL_REQUIRED] = "required",
    [ACCEL_SMALL] = "small",
    [ACCEL_SLOWER] = "slower",
    [ACCEL_UNSUPPORTED] = "unsupported",
    [ACCEL_WORKSPACE_QUERY] = "workspace_query",
    [ACCEL_BAD_ARGUMENT] = "bad_argument",
    [ACCEL_EMPTY] = "empty",
    [ACCEL_OFF] = "off",
    [ACCEL_USER] = "user",
    [ACCEL_NO_GPU] = "no_gpu",
    [ACCEL_WARMING] = "warming",
    [ACCEL_NO_MEMORY] = "no_memory",
    [ACCEL_BUSY] = "busy",
    [ACCEL_ERROR] = "error",
    [ACCEL_FORKED] = "forked",
    [ACCEL_VERIFY_FAILED] = "verify_failed",
};

const char *accel_why_name(enum accel_why why)
{
    return why_names[why];
}

struct accel_record record_of(const struct accel_call *call, const char *symbol, uintptr_t site,
                              struct accel_decision decision)
{
    return (struct accel_record){.call = call,
                                 .symbol = symbol,
                                 .site = site,
                                 .decision = decision,
                                 .why = decision.why,
                                 .ran = "cpu",
                                 .ms = -1,
                                 .verify = VERIFY_NOT_ASKED};
}
