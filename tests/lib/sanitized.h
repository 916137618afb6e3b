/*
 * Sanitizers change code, where libraries are, the heap and vfork(2), and cannot be loaded into a
 * second namespace; ThreadSanitizer loses what it knew in a child that is forked beside other
 * threads: a test of these things says so and is skipped in such a build.
 */
#ifndef ACCEL_TEST_SANITIZED_H
#define ACCEL_TEST_SANITIZED_H

/* cmocka.h comes before this header. */

#if defined __SANITIZE_ADDRESS__
#    define SANITIZER "AddressSanitizer"
#elif defined __SANITIZE_THREAD__
#    define SANITIZER "ThreadSanitizer"
#endif

/* `what`: what the sanitizer changes. The second one is for all tests of an array. */
#ifdef SANITIZER
static inline void skipped(void **state)
{
    (void)state;
    skip();
}
#    define SKIP_SANITIZED(what)                                                                   \
        do {                                                                                       \
            print_message("# " SANITIZER " changes " what "\n");                                   \
            skip();                                                                                \
        } while (0)
#    define SKIP_ALL_SANITIZED(tests, what)                                                        \
        do {                                                                                       \
            print_message("# " SANITIZER " changes " what "\n");                                   \
            for (size_t i = 0; i < sizeof(tests) / sizeof *(tests); i++)                           \
                (tests)[i].test_func = skipped;                                                    \
        } while (0)
#else
#    define SKIP_SANITIZED(what)            (void)0
#    define SKIP_ALL_SANITIZED(tests, what) (void)0
#endif

/* Of one sanitizer alone. */
#ifdef __SANITIZE_ADDRESS__
#    define SKIP_UNDER_ASAN(what) SKIP_SANITIZED(what)
#else
#    define SKIP_UNDER_ASAN(what) (void)0
#endif
#ifdef __SANITIZE_THREAD__
#    define SKIP_UNDER_TSAN(what) SKIP_SANITIZED(what)
#else
#    define SKIP_UNDER_TSAN(what) (void)0
#endif

#endif
