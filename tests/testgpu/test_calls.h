/* A cuBLAS function by the type and the width in *t, called and returned from. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include "test_testgpu.h"

#define COMPLEX_ONES(WORD, TAIL, ...)                                                              \
    return t->type == C ? cublasC##WORD##TAIL(__VA_ARGS__) : cublasZ##WORD##TAIL(__VA_ARGS__)
#define REAL_ONES(WORD, TAIL, ...)                                                                 \
    return t->type == S ? cublasS##WORD##TAIL(__VA_ARGS__) : cublasD##WORD##TAIL(__VA_ARGS__)
#define ALL_ONES(WORD, TAIL, ...)                                                                  \
    if (is_real(t->type))                                                                          \
        REAL_ONES(WORD, TAIL, __VA_ARGS__);                                                        \
    COMPLEX_ONES(WORD, TAIL, __VA_ARGS__)

#define BY_WIDTH(ONES, WORD, TAIL, ...)                                                            \
    if (t->wide) {                                                                                 \
        ONES(WORD, TAIL##_64, __VA_ARGS__);                                                        \
    }                                                                                              \
    ONES(WORD, TAIL, __VA_ARGS__)

#define CASE(KIND, ...)                                                                            \
case KIND:                                                                                         \
    BY_WIDTH(__VA_ARGS__)

#endif
