/*
 * What programs need besides lacking.c, for OLD_GLIBC=1: their start, and functions of libm in the
 * version that glibc 2.28 has.
 */
#include <math.h>
#include <stdint.h>
#include <sys/random.h>
#include <time.h>

#define LOCAL __attribute__((visibility("hidden")))

#define OLD_MATH(function, arguments, ...)                                                         \
    extern double old_##function arguments;                                                        \
    __asm__(".symver old_" #function ", " #function "@GLIBC_2.2.5");                               \
    LOCAL double function arguments                                                                \
    {                                                                                              \
        return old_##function(__VA_ARGS__);                                                        \
    }
OLD_MATH(exp, (double x), x)
OLD_MATH(exp2, (double x), x)
OLD_MATH(fmod, (double x, double y), x, y)
OLD_MATH(log, (double x), x)
OLD_MATH(pow, (double x, double y), x, y)

/* json-c takes the seed of its hash from it, where the glibc that it is built with has it. */
LOCAL uint32_t arc4random(void)
{
    uint32_t number;
    return getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number ? number
                                                                          : (uint32_t)time(NULL);
}

/* A program's start: before 2.34 each program brought the function that calls its constructors
 * along, and passed it to glibc. */
typedef int main_function(int count, char **arguments, char **environment);
extern main_function *__init_array_start[] LOCAL, *__init_array_end[] LOCAL;
extern int old_start(main_function *main, int count, char **arguments, main_function *init,
                     void (*fini)(void), void (*linker_fini)(void), void *stack_end);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");

static int construct(int count, char **arguments, char **environment)
{
    for (main_function **function = __init_array_start; function < __init_array_end; function++)
        (*function)(count, arguments, environment);
    return 0;
}

LOCAL int __libc_start_main(main_function *main, int count, char **arguments, main_function *init,
                            void (*fini)(void), void (*linker_fini)(void), void *stack_end)
{
    (void)init;
    return old_start(main, count, arguments, construct, fini, linker_fini, stack_end);
}
