/*
 * The checks of accel doctor: what was looked at, how it is, and what mends it. As text for people,
 * or as JSON.
 */
#ifndef ACCEL_TOOL_CHECKS_H
#define ACCEL_TOOL_CHECKS_H

#include <stdbool.h>

enum check_state {
    CHECK_OK,
    CHECK_WARN, /* calls can go to the GPU all the same */
    CHECK_FAIL  /* none can */
};

enum { CHECKS_MAX = 128 };

/* Starts as all zero. */
struct checks {
    struct doctor_check {
        enum check_state state;
        const char *what; /* constant */
        char *says, *fix; /* fix: empty: none is needed, or known */
    } check[CHECKS_MAX];
    int count;
};

/* Adds a check; further ones than CHECKS_MAX are left out. fix: "" for none. Strings are copied;
 * ends this process if there is no memory. */
__attribute__((format(printf, 5, 6))) void checks_add(struct checks *checks, enum check_state state,
                                                      const char *what, const char *fix,
                                                      const char *format, ...);

/* Returns whether no check is of this state. */
bool checks_lack(const struct checks *checks, enum check_state state);

/* Print to stdout. Return 0, or the errno if it cannot be written. Colour is for terminals, unless
 * NO_COLOR is set (https://no-color.org). */
int checks_print(const struct checks *checks);
int checks_print_json(const struct checks *checks);

void checks_free(struct checks *checks);

#endif
