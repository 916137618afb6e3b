#include "problem.h"

#include "ops/lapack/in_panels.h"
#include "ops/rules/rules.h"

void problem_begin(struct problem *p, const struct accel_call *call)
{
    p->call = call;
    p->fault = accel_call_fault(call);
}

void problem_describe(struct problem *p)
{
    const bool valid = !p->fault;
    p->is_described = valid && scheduled_describe(p->call, &p->scheduled);
    p->is_divided = p->is_described && scheduled_is_divided(&p->scheduled);
    p->in_panels = valid && lapack_has_panels(p->call);
    p->has_work[false] = p->has_work[true] = false;
}

void problem_of(struct problem *p, const struct accel_call *call)
{
    problem_begin(p, call);
    problem_describe(p);
}

const struct model_work *problem_work(struct problem *p, bool device)
{
    const bool differs = device && p->call->op->cost->effort;
    if (!p->has_work[differs])
        model_work_of(p->call, differs, &p->work[differs]);
    p->has_work[differs] = true;
    return &p->work[differs];
}
