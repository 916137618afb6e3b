/*
 * A fuzz target: what it is about takes any bytes there are. The fuzzer (clang's libFuzzer) and the
 * replay of what it has found (replay.c) call it; it aborts where something is wrong.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns 0. The bytes stay the caller's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says what does not hold, and ends the program. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
