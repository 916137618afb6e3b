/*
 * A preload behind libaccel that counts the handlers of exit() as the C library gets them, and tells their number in the file
 * that TEST_REGISTRATIONS names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int register_function(void (*function)(void *), void *argument, void *object);

static atomic_long registrations;

register_function __cxa_atexit;

int __cxa_atexit(void (*function)(void *), void *argument, void *object)
{
    void *found = dlsym(RTLD_NEXT, "__cxa_atexit");
    register_function *next;
    memcpy(&next, &found, sizeof next);
    atomic_fetch_add(&registrations, 1);
    return next(function, argument, object);
}

__attribute__((destructor)) static void tell(void)
{
    FILE *file = fopen(getenv("TEST_REGISTRATIONS"), "w");
    if (!file || fprintf(file, "%ld\n", atomic_load(&registrations)) < 0 || fclose(file) != 0)
        abort();
}
