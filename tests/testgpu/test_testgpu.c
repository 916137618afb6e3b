#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "test_testgpu.h"

enum { SCENARIOS_MAX = 512, REPORT_MAX = 1 << 16 };

CUcontext begin(void)
{
    CUcontext context = NULL;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxPushCurrent(context) != CUDA_SUCCESS)
        abort();
    return context;
}

static void wait_at_gate(void *data)
{
    struct gate *gate = data;
    while (sem_wait(&gate->open) != 0 && errno == EINTR)
        continue;
}

CUresult gate_close(struct gate *gate, CUstream stream)
{
    sem_init(&gate->open, 0, 0);
    return cuLaunchHostFunc(stream, wait_at_gate, gate);
}

void gate_open(struct gate *gate)
{
    sem_post(&gate->open);
}

double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static const struct scenario *const tables[] = {
    memory_scenarios,        mempool_scenarios,     peer_scenarios,
    stream_scenarios,        fault_scenarios,       blas_scenarios,
    level3_scenarios,        level3_rule_scenarios, level2_scenarios,
    level2_rule_scenarios,   batched_scenarios,     batched_rule_scenarios,
    gemm_ex_scenarios,       packed_scenarios,      solver_factor_scenarios,
    solver_eigen_scenarios,  solver_rule_scenarios, solver_stream_scenarios,
    solver_handle_scenarios, speed_scenarios,       cost_scenarios,
    start_scenarios,         no_data_scenarios,     kernel_scenarios,
    order_scenarios,         xt_scenarios,          cufft_result_scenarios,
    cufft_rule_scenarios,    cufft_stream_scenarios};

static const struct scenario *find(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct scenario *s = tables[t]; s->name != NULL; s++)
            if (strcmp(s->name, name) == 0)
                return s;
    return NULL;
}

static void read_report(const char *path, char *report)
{
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(report, 1, REPORT_MAX - 1, file) : 0;
    report[length] = '\0';
    if (file != NULL)
        fclose(file);
}

static void check_report(const struct scenario *scenario, const char *report)
{
    bool faults = false;
    for (size_t i = 0; i < sizeof scenario->report / sizeof *scenario->report; i++) {
        const char *part = scenario->report[i];
        if (part == NULL)
            break;
        if (strncmp(part, "fault what=", 11) == 0)
            faults = true;
        bool absent = part[0] == '!';
        if ((strstr(report, part + absent) == NULL) != absent)
            fail_msg("%s: the report %s \"%s\":\n%s", scenario->name, absent ? "has" : "lacks",
                     part + absent, report);
    }
    if (!faults && strstr(report, "testgpu faults n=0\n") == NULL)
        fail_msg("%s: the report has faults:\n%s", scenario->name, report);
}

static void run_scenario(void **state)
{
    const struct scenario *scenario = *state;
    assert_ptr_equal(find(scenario->name), scenario); /* no other has its name */
    char path[] = "/tmp/testgpu-report-XXXXXX";
    char log[] = "/tmp/testgpu-log-XXXXXX";
    int file = mkstemp(path);
    int errors = mkstemp(log);
    assert_true(file >= 0 && errors >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("TESTGPU_SCALES", "1", 1);
        setenv("TESTGPU_PAGEABLE", "2", 1); /* most scenarios copy their own variables */
        setenv("TESTGPU_ORDER", "0", 1);    /* some hold a stream, and look at what is there */
        const size_t most = sizeof scenario->environment / sizeof *scenario->environment;
        for (size_t i = 0; i < most && scenario->environment[i] != NULL; i++)
            putenv((char *)(uintptr_t)scenario->environment[i]);
        setenv("TESTGPU_REPORT", path, 1);
        dup2(errors, STDERR_FILENO);
        execl("/proc/self/exe", "test_testgpu", scenario->name, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    static char report[REPORT_MAX];
    read_report(log, report);
    close(file);
    close(errors);
    unlink(log);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        unlink(path);
        fail_msg("%s: status %#x\n%s", scenario->name, (unsigned)status, report);
    }
    read_report(path, report);
    unlink(path);
    check_report(scenario, report);
}

int main(int count, char **arguments)
{
    if (count == 2) {
        const struct scenario *scenario = find(arguments[1]);
        return scenario != NULL ? scenario->run() : 127;
    }
    static struct CMUnitTest tests[SCENARIOS_MAX];
    size_t used = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct scenario *s = tables[t]; s->name != NULL; s++) {
            if (used == SCENARIOS_MAX)
                abort(); /* none is left out */
            tests[used++] = (struct CMUnitTest){
                .name = s->name, .test_func = run_scenario, .initial_state = (void *)(uintptr_t)s};
        }
    return _cmocka_run_group_tests("testgpu", tests, used, NULL, NULL);
}
