#ifndef ACCEL_TOOL_COMPLAIN_H
#define ACCEL_TOOL_COMPLAIN_H

/* Prints a message on stderr, "accel ...: ...\n", in one write. Returns `status`, which the caller
 * may return. */
__attribute__((format(printf, 2, 3))) int complain(int status, const char *format, ...);

#endif
