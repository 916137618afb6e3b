/*
 * Calls, machines and decisions for the tests of dispatch/decide.h. The files that include it have
 * included cmocka.h.
 */
#ifndef TESTS_DECIDE_CASES_H
#define TESTS_DECIDE_CASES_H

#include "dispatch/decide.h"
#include "tests/lib/routine.h"

extern const struct accel_settings defaults;

/* A product of this routine, C := A B + C without beta, with nothing at its pointers. */
struct accel_call product(const char *name, int64_t m, int64_t n, int64_t k);

/* dgemv: y := A x + y */
struct accel_call times_vector(int64_t m, int64_t n);

/* A machine with 16 GB of device memory, without curves. */
struct accel_machine machine(enum device_state state);

/* Decides with nominal figures for the call's routine, of a CPU library with so many threads. */
struct accel_decision decide_with(const struct accel_call *call,
                                  const struct accel_machine *machine,
                                  const struct accel_settings *settings, int threads);

/* Whether that decision is clear (accel_is_clear()). */
bool is_clear(const struct accel_call *call, const struct accel_machine *machine,
              const struct accel_settings *settings, int threads);

#define assert_decision(call, machine, settings, on_gpu, reason)                                   \
    do {                                                                                           \
        const struct accel_decision d_ = decide_with(call, machine, settings, 4);                  \
        assert_string_equal(accel_why_name(d_.why), accel_why_name(reason));                       \
        assert_int_equal(d_.gpu, on_gpu);                                                          \
    } while (0)

#endif
