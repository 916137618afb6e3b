/* A pause, for programs and unit tests. */
#ifndef PAUSE_H
#define PAUSE_H

#include <time.h>

/* A signal may end it early. */
static inline void pause_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

#endif
