#include "wire.h"

#include <string.h>

#include "base/host/version.h"
#include "base/text/text.h"

void wire_hello(struct wire_hello *hello)
{
    struct accel_text text;
    memset(hello, 0, sizeof *hello);
    hello->magic = WIRE_MAGIC;
    hello->layout = sizeof(struct wire_lane);
    text_start(&text, hello->build, sizeof hello->build);
    text_string(&text, accel_version());
    text_string(&text, " ");
    text_string(&text, accel_commit());
    text_end(&text);
}

bool wire_is_other(const struct wire_hello *hello)
{
    struct wire_hello own;
    wire_hello(&own);
    return memcmp(&own, hello, sizeof own) != 0;
}

int64_t wire_bytes(const struct accel_span *x)
{
    return x->rows > 0 && x->cols > 0 ? accel_bytes(x) : 0;
}

int64_t wire_matrices(const struct accel_call *call, const struct accel_span *x)
{
    return x->array || x->stride != 0 ? call->batch : 1;
}
