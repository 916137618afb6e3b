/*
 * The rows of accel doctor: what was looked at, how it is, and what mends it. As text for people,
 * or as JSON.
 */
#ifndef ACCEL_TOOL_ROWS_H
#define ACCEL_TOOL_ROWS_H

#include <stdbool.h>

enum row_state {
    ROW_OK,
    ROW_WARN, /* calls can go to the GPU all the same */
    ROW_FAIL  /* none can */
};

enum { ROWS_MAX = 128 };

/* Starts as all zero. */
struct rows {
    struct row {
        enum row_state state;
        const char *what; /* constant */
        char *says, *fix; /* fix: empty: none is needed, or known */
    } row[ROWS_MAX];
    int count;
};

/* Adds a row; further ones than ROWS_MAX are left out. fix: "" for none. Strings are copied; ends
 * this process if there is no memory. */
__attribute__((format(printf, 5, 6))) void rows_add(struct rows *rows, enum row_state state,
                                                    const char *what, const char *fix,
                                                    const char *format, ...);

/* Returns whether no row is of this state. */
bool rows_lack(const struct rows *rows, enum row_state state);

/* Print to stdout. Return 0, or the errno if it cannot be written. Colour is for terminals, unless
 * NO_COLOR is set (https://no-color.org). */
int rows_print(const struct rows *rows);
int rows_print_json(const struct rows *rows);

void rows_free(struct rows *rows);

#endif
