/* A library with a symbol table of some size, built with either kind of hash table: see test_objects.c. */
#include <stdlib.h>

#define FUNCTIONS(x)                                                                               \
    int hashed_##x##0(void);                                                                       \
    int hashed_##x##1(void);                                                                       \
    int hashed_##x##0(void)                                                                        \
    {                                                                                              \
        return rand();                                                                             \
    }                                                                                              \
    int hashed_##x##1(void)                                                                        \
    {                                                                                              \
        return hashed_##x##0();                                                                    \
    }

FUNCTIONS(a)
FUNCTIONS(b)
FUNCTIONS(c)
FUNCTIONS(d)
FUNCTIONS(e)
