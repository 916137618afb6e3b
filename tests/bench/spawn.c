/* Usage: spawn PAIRS PRELOAD PROGRAM [ARG...]
 *
 * Runs PROGRAM in turn without and with LD_PRELOAD=PRELOAD and prints for each pair both wall times
 * in microseconds. What PROGRAM prints goes to /dev/null. In C because an interpreter's own fork
 * costs more than what is measured. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static posix_spawn_file_actions_t quiet;

static double run(char **argv, char **env)
{
    struct timespec start, end;
    pid_t pid;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (posix_spawn(&pid, argv[0], &quiet, NULL, argv, env) || waitpid(pid, &status, 0) != pid ||
        status != 0) {
        fprintf(stderr, "spawn: %s does not run\n", argv[0]);
        exit(1);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3;
}

/* The environment with one more variable. */
static char **extended(char *variable)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **env = malloc((count + 2) * sizeof *env);
    if (!env)
        exit(1);
    memcpy(env, environ, count * sizeof *env);
    env[count] = variable;
    env[count + 1] = NULL;
    return env;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s PAIRS PRELOAD PROGRAM [ARG...]\n", argv[0]);
        return 2;
    }
    char *variable;
    if (posix_spawn_file_actions_init(&quiet) ||
        posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ||
        asprintf(&variable, "LD_PRELOAD=%s", argv[2]) < 0) {
        perror("spawn");
        return 1;
    }
    unsetenv("LD_PRELOAD");
    char **with = extended(variable);

    for (long pair = atol(argv[1]); pair > 0; pair--) {
        double without = run(argv + 3, environ);
        printf("%.1f %.1f\n", without, run(argv + 3, with));
    }
    free(with);
    free(variable);
    posix_spawn_file_actions_destroy(&quiet);
    return 0;
}
