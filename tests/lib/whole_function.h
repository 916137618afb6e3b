/* FUNCTION: one whose code is as a library's is, made for no caller and merged into none. clang
 * makes no copies for callers' constants, and does not know noclone. */
#ifndef TEST_WHOLE_FUNCTION_H
#define TEST_WHOLE_FUNCTION_H

#if __has_attribute(noclone)
#    define FUNCTION __attribute__((noinline, noclone, used)) static
#else
#    define FUNCTION __attribute__((noinline, used)) static
#endif

#endif
