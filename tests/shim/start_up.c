/*
 * start_up WHAT: how a program treats its surroundings before and between its calls.
 *   early    a library's constructor has multiplied before
 *   stderr   was started without a stderr, and has a file of its own under that number
 *   folder   changes its folder before the first call
 *   closed   closes all descriptors between two calls
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
extern double early_result;

static double multiply(void)
{
    const int32_t n = 1;
    const double three = 3, zero = 0;
    double c = -1;
    dgemm_("N", "N", &n, &n, &n, &three, &three, &n, &three, &n, &zero, &c, &n, 1, 1);
    return c;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    double c = 0;
    if (strcmp(what, "early") == 0) {
        c = early_result == 8 ? multiply() : -1;
    } else if (strcmp(what, "stderr") == 0) {
        if (open("data", O_CREAT | O_RDWR | O_TRUNC, 0600) != STDERR_FILENO)
            return 2;
        c = multiply();
    } else if (strcmp(what, "folder") == 0) {
        if (chdir("/") != 0)
            return 2;
        c = multiply();
    } else if (strcmp(what, "closed") == 0) {
        c = multiply();
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        c = c == 27 ? multiply() : -1;
    }
    printf("%g\n", c);
    return c == 27 ? 0 : 1;
}
