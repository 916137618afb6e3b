#include "forks.h"

/* The linker's names for the array. Weak: a program without entries has no array. */
extern const struct forks_part __start_accel_forks[] __attribute__((weak, visibility("hidden")));
extern const struct forks_part __stop_accel_forks[] __attribute__((weak, visibility("hidden")));

void forks_child(void)
{
    for (const struct forks_part *part = __start_accel_forks; part < __stop_accel_forks; part++)
        if (part->lock)
            pthread_mutex_init(part->lock, NULL);
    for (const struct forks_part *part = __start_accel_forks; part < __stop_accel_forks; part++)
        if (part->child)
            part->child();
}
