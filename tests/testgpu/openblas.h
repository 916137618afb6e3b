/* The OpenBLAS inside a stand-in, which runs one routine at a time. */
#ifndef TESTGPU_OPENBLAS_H
#define TESTGPU_OPENBLAS_H

#include <pthread.h>

extern pthread_mutex_t one_at_a_time;

#define ALONE(ROUTINE, ...)                                                                        \
    do {                                                                                           \
        pthread_mutex_lock(&one_at_a_time);                                                        \
        (ROUTINE)(__VA_ARGS__);                                                                    \
        pthread_mutex_unlock(&one_at_a_time);                                                      \
    } while (0)

#endif
