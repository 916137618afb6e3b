/*
 * damage PATH: every byte of the calibration at PATH changed in turn, and every length that it may be cut to, each seen by
 * a process of its own that calls BLAS; ACCEL_MODEL names PATH. Each must get the right result and say one line that names the
 * file. The calibration is then as it was. stderr is a file that can be read.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

enum { N = 300, SIZE_MOST = 1 << 16 };

static const char *path;
static int shown;

/* Of a matrix of ones with itself. */
static bool multiply(void)
{
    static double a[N * N], c[N * N];
    const int32_t n = N;
    const double one = 1, zero = 0;
    for (int i = 0; i < N * N; i++)
        a[i] = 1;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < N * N; i++)
        if (c[i] != N)
            return false;
    return true;
}

static void write_file(const char *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || close(fd) != 0)
        abort();
}

/* All that a child says on stderr; its status. */
static int run_child(char *said, size_t size)
{
    int status = -1;
    off_t before = lseek(STDERR_FILENO, 0, SEEK_CUR);
    pid_t child = fork();
    if (child == 0)
        _exit(multiply() ? 0 : 1);
    waitpid(child, &status, 0);
    ssize_t length = pread(STDERR_FILENO, said, size - 1, before);
    if (length < 0)
        abort();
    said[length] = 0;
    return status;
}

static bool is_one_line(const char *said)
{
    const char *newline = strchr(said, '\n');
    return strncmp(said, "accel: ", 7) == 0 && strstr(said, path) && newline && !newline[1];
}

/* Whether the child is right with this file: silent about one that is whole, and with a line about any other. */
static bool is_right(const char *bytes, size_t length, bool whole)
{
    char said[4096];
    write_file(bytes, length);
    int status = run_child(said, sizeof said);
    bool right = status == 0 && (whole ? said[0] == 0 : is_one_line(said));
    if (!right && shown++ < 5)
        printf("status %#x, said: %s\n", (unsigned)status, said);
    return right;
}

int main(int argc, char **argv)
{
    static char bytes[SIZE_MOST];
    static const char changes[] = {1, 2, 4, 8, 16, 32, 64, (char)128, (char)255};
    int wrong = 0, files = 0;
    if (argc != 2)
        return 2;
    path = argv[1];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (length == 0 || length == sizeof bytes)
        return 2;
    fclose(file);
    wrong += !is_right(bytes, length, true);
    for (size_t i = 0; i < length; i++, files++) {
        char change = changes[i % sizeof changes];
        bytes[i] ^= change;
        wrong += !is_right(bytes, length, false);
        bytes[i] ^= change;
    }
    for (size_t cut = 0; cut < length; cut += cut < 32 ? 1 : 13, files++)
        wrong += !is_right(bytes, cut, false);
    write_file(bytes, length);
    printf("%d files, %d wrong\n", files, wrong);
    return wrong != 0;
}
