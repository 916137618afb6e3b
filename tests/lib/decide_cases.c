#include "decide_cases.h"
#include "ops/op.h"

const struct accel_settings defaults = {.on = true, .memory_share = 0.8};

struct accel_call product(const char *name, int64_t m, int64_t n, int64_t k)
{
    struct accel_call call = {.routine = routine(name),
                              .op = accel_op_of(routine(name)),
                              .blas.size = {m, n, k},
                              .blas.flag = {'N', 'N'},
                              .batch = 1,
                              .parts = 1};
    call.blas.scalar[ACCEL_alpha].re = 1;
    call.span[ACCEL_a] =
        (struct accel_span){.rows = m, .cols = k, .ld = m > 0 ? m : 1, .access = ACCEL_READ};
    call.span[ACCEL_b] =
        (struct accel_span){.rows = k, .cols = n, .ld = k > 0 ? k : 1, .access = ACCEL_READ};
    call.span[ACCEL_c] =
        (struct accel_span){.rows = m, .cols = n, .ld = m > 0 ? m : 1, .access = ACCEL_READWRITE};
    for (int i = 0; i < 3; i++)
        call.span[i].dtype = call.routine->dtype;
    return call;
}

struct accel_call times_vector(int64_t m, int64_t n)
{
    struct accel_call call = {.routine = routine("dgemv"),
                              .op = accel_op_of(routine("dgemv")),
                              .blas.size = {m, n, 0},
                              .blas.flag = {[ACCEL_trans] = 'N'},
                              .batch = 1,
                              .parts = 1};
    call.blas.scalar[ACCEL_alpha].re = call.blas.scalar[ACCEL_beta].re = 1;
    call.span[ACCEL_a] = (struct accel_span){
        .rows = m, .cols = n, .ld = m, .dtype = ACCEL_FLOAT64, .access = ACCEL_READ};
    call.span[ACCEL_x] = (struct accel_span){
        .rows = 1, .cols = n, .ld = 1, .inc = 1, .dtype = ACCEL_FLOAT64, .access = ACCEL_READ};
    call.span[ACCEL_y] = (struct accel_span){
        .rows = 1, .cols = m, .ld = 1, .inc = 1, .dtype = ACCEL_FLOAT64, .access = ACCEL_READWRITE};
    return call;
}

struct accel_machine machine(enum device_state state)
{
    struct accel_machine m;
    accel_machine_init(&m, NULL, NULL);
    m.gpu = state;
    m.gpu_memory = (int64_t)1 << 34;
    return m;
}

/* A machine with nominal figures for a call's routine. */
struct nominal_machine {
    struct accel_machine is;
    struct model_curve cpu, gpu;
};

static void nominal(struct nominal_machine *m, const struct accel_machine *machine,
                    const struct accel_routine *routine, int threads)
{
    const struct model_rates cpu_rates = model_cpu_rates(threads), gpu_rates = model_gpu_rates();
    model_nominal_cpu(&m->cpu, routine, &cpu_rates);
    model_nominal_gpu(&m->gpu, routine, &gpu_rates);
    m->is = *machine;
    m->is.cpu_curve = &m->cpu;
    m->is.gpu_curve = &m->gpu;
}

struct accel_decision decide_with(const struct accel_call *call,
                                  const struct accel_machine *machine,
                                  const struct accel_settings *settings, int threads)
{
    struct nominal_machine m;
    struct problem problem;
    nominal(&m, machine, call->routine, threads);
    problem_of(&problem, call);
    return accel_decide(&problem, &m.is, settings);
}

bool is_clear(const struct accel_call *call, const struct accel_machine *machine,
              const struct accel_settings *settings, int threads)
{
    struct nominal_machine m;
    struct problem problem;
    nominal(&m, machine, call->routine, threads);
    problem_of(&problem, call);
    const struct accel_decision decision = accel_decide(&problem, &m.is, settings);
    return accel_is_clear(&problem, &m.is, settings, &decision);
}
