/* The name by which this program was started, for outputs. */
#ifndef ACCEL_PROGRAM_H
#define ACCEL_PROGRAM_H

/* Notes it: a program may write another title over its arguments later, where the C library's copy
 * points to. Call it once, at the program's start. */
void program_note(void);

/* Returns the name, without folders; of a longer one the first PROGRAM_BYTES - 1 bytes. Constant
 * once it is noted; thread-safe. */
enum { PROGRAM_BYTES = 128 };
const char *program_name(void);

#endif
