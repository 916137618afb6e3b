/*
 * AddressSanitizer has a heap of its own, changes code, and cannot be loaded into a second
 * namespace; ThreadSanitizer loses what it knew in a child that is forked beside other threads: a
 * test of these things says so and is skipped in such a build.
 */
#ifndef ACCEL_TEST_SANITIZED_H
#define ACCEL_TEST_SANITIZED_H

/* cmocka.h comes before this header. `what`: what the sanitizer changes. The second one is for all
 * tests of an array. */
#if defined __SANITIZE_ADDRESS__
static inline void skipped(void **state)
{
    (void)state;
    skip();
}
#    define SKIP_UNDER_ASAN(what)                                                                  \
        do {                                                                                       \
            print_message("# AddressSanitizer changes " what "\n");                                \
            skip();                                                                                \
        } while (0)
#    define SKIP_ALL_UNDER_ASAN(tests, what)                                                       \
        do {                                                                                       \
            print_message("# AddressSanitizer changes " what "\n");                                \
            for (size_t i = 0; i < sizeof(tests) / sizeof *(tests); i++)                           \
                (tests)[i].test_func = skipped;                                                    \
        } while (0)
#else
#    define SKIP_UNDER_ASAN(what)            (void)0
#    define SKIP_ALL_UNDER_ASAN(tests, what) (void)0
#endif
#if defined __SANITIZE_THREAD__
#    define SKIP_UNDER_TSAN(what)                                                                  \
        do {                                                                                       \
            print_message("# ThreadSanitizer loses " what "\n");                                   \
            skip();                                                                                \
        } while (0)
#else
#    define SKIP_UNDER_TSAN(what) (void)0
#endif

#endif
