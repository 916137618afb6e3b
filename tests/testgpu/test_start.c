/* How long the start and loading take, what may happen meanwhile, and settings that are none. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_testgpu.h"

/* A tenth of the time, and the rest; a second context is there at once. */
static int start(void)
{
    enum { AGAIN = 20 };
    CUcontext context, other;
    double at = milliseconds();
    OK(cuInit(0));
    CHECK(milliseconds() - at >= 100);
    at = milliseconds();
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(milliseconds() - at >= 900);
    at = milliseconds();
    for (int i = 0; i < AGAIN; i++) {
        OK(cuInit(0));
        OK(cuCtxCreate(&other, NULL, 0, 0));
        OK(cuCtxDestroy(other));
    }
    CHECK(milliseconds() - at < 900 * AGAIN);
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

static int start_with_a_context(void)
{
    CUcontext context;
    OK(cuInit(0));
    double at = milliseconds();
    OK(cuCtxCreate(&context, NULL, 0, 0));
    CHECK(milliseconds() - at >= 270);
    OK(cuCtxDestroy(context));
    return 0;
}

static atomic_bool begins;

static void *initialise(void *data)
{
    begins = true;
    cuInit(0);
    return data;
}

static void *make_context(void *data)
{
    CUcontext context;
    begins = true;
    cuDevicePrimaryCtxRetain(&context, 0);
    return data;
}

/* All else is over long before what the thread is in; an alarm in between would end the test. */
static int meanwhile(void *(*function)(void *), CUresult in_child)
{
    pthread_t thread;
    alarm(120);
    CHECK(pthread_create(&thread, NULL, function, NULL) == 0);
    while (!begins)
        usleep(1000);
    usleep(200000);
    pid_t child = fork();
    if (child == 0)
        _exit(cuInit(1) == in_child ? 0 : 1);
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int end_in_init(void)
{
    return meanwhile(initialise, CUDA_ERROR_INVALID_VALUE);
}

static int end_in_retain(void)
{
    OK(cuInit(0));
    return meanwhile(make_context, CUDA_ERROR_NOT_INITIALIZED);
}

static int load(void)
{
    CHECK(cuInit(0) == CUDA_SUCCESS);
    return 0;
}

/* Another scenario with a setting more; its wait status, and what it has to say. */
static int run(const char *scenario, const char *setting, char *said, size_t size)
{
    int out[2], status = -1;
    if (pipe(out) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        putenv(strdup(setting));
        unsetenv("TESTGPU_REPORT");
        execl("/proc/self/exe", "test_testgpu", scenario, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    ssize_t got;
    size_t used = 0;
    while ((got = read(out[0], said + used, size - 1 - used)) > 0)
        used += (size_t)got;
    said[used] = '\0';
    close(out[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static int load_takes_time(void)
{
    char said[4096];
    double at = milliseconds();
    CHECK(run("load", "TESTGPU_LOAD_MS=300", said, sizeof said) == 0);
    CHECK(milliseconds() - at >= 300);
    return 0;
}

static int bad_settings(void)
{
    static const char *const bad[] = {
        "TESTGPU_UP_GBPS=fast",
        "TESTGPU_UP_GBPS=-1",
        "TESTGPU_DOWN_GBPS=1.2.3",
        "TESTGPU_DOWN_GBPS=.",
        "TESTGPU_GFLOPS=inf",
        "TESTGPU_GFLOPS=1e3",
        "TESTGPU_GFLOPS=1000000001",
        "TESTGPU_LAUNCH_US=5us",
        "TESTGPU_HALF=-1",
        "TESTGPU_HALF=0.5",
        "TESTGPU_BUSY=96",
        "TESTGPU_BUSY=half",
        "TESTGPU_START_MS=1s",
        "TESTGPU_START_MS=4294967296",
        "TESTGPU_LOAD_MS=x",
        "TESTGPU_FIRST_MS=-1",
        "TESTGPU_DATA=2",
        "TESTGPU_DATA=no",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char said[4096], expected[128];
        int status = run("load", bad[i], said, sizeof said);
        snprintf(expected, sizeof expected, "testgpu: cannot read %s\n", bad[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strcmp(said, expected) != 0) {
            fprintf(stderr, "%s: status %#x: %s\n", bad[i], (unsigned)status, said);
            return 1;
        }
    }
    return 0;
}

static int good_settings(void)
{
    static const char *const good[] = {
        "TESTGPU_UP_GBPS=12.5", "TESTGPU_DOWN_GBPS=.5", "TESTGPU_GFLOPS=1000000000",
        "TESTGPU_LAUNCH_US=5.", "TESTGPU_HALF=0",       "TESTGPU_BUSY=95",
        "TESTGPU_START_MS=",    "TESTGPU_LOAD_MS=0",    "TESTGPU_DATA=0",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char said[4096];
        CHECK(run("load", good[i], said, sizeof said) == 0);
        CHECK(said[0] == '\0');
    }
    return 0;
}

const struct scenario start_scenarios[] = {
    {"start", start, {"TESTGPU_START_MS=1000"}, {0}},
    {"start_with_a_context", start_with_a_context, {"TESTGPU_START_MS=300"}, {0}},
    {"end_in_init", end_in_init, {"TESTGPU_START_MS=600000"}, {"fault what=exit_while_called"}},
    {"end_in_retain", end_in_retain, {"TESTGPU_START_MS=30000"}, {"fault what=exit_while_called"}},
    {"load", load, {0}, {"!testgpu lasted"}},
    {"load_takes_time", load_takes_time, {0}, {0}},
    {"bad_settings", bad_settings, {0}, {0}},
    {"good_settings", good_settings, {0}, {0}},
    {0},
};
