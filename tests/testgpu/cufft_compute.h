/* What an execution of a plan computes. */
#ifndef TESTGPU_CUFFT_COMPUTE_H
#define TESTGPU_CUFFT_COMPUTE_H

#include "cufft_plan.h"

enum kind { COMPLEX, FROM_REAL, TO_REAL };

struct execution {
    const char *kernel;
    enum kind kind;
    bool is_single;
    int sign; /* of the exponent */
    int64_t n[DIMENSIONS];
    struct side in, out;
    CUdeviceptr area;
    size_t area_bytes;
};

/* On host bytes. The work area holds whatever the library likes afterwards. */
void compute_execution(const struct execution *x, void *in, void *out, void *area);
/* Makes a result wrong. */
void add_one_to(const struct execution *x, void *out);

#endif
