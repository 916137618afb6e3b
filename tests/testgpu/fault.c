/* Planted failures (TESTGPU_FAIL, TESTGPU_WRONG) and the record of misuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver.h"

enum { INJECTIONS_MAX = 64, FAULTS_KEPT = 256 };

struct injection {
    char function[64];
    unsigned long nth;
    bool onwards;
    bool has_code;
    int code;
    unsigned long matched;
    unsigned long fired;
};

/* The last lock to be taken, so that a fault can be recorded under any other. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct injection injections[INJECTIONS_MAX];
static size_t injection_count;
static struct injection wrong;
static char *kept[FAULTS_KEPT];
static unsigned long fault_count;
static _Thread_local const char *current_where;

void set_where(const char *where)
{
    current_where = where;
}

void fault_locks(bool take)
{
    if (take)
        pthread_mutex_lock(&fault_lock);
    else
        pthread_mutex_unlock(&fault_lock);
}

static void unreadable(const char *name, const char *text)
{
    fprintf(stderr, "testgpu: cannot read %s=%s\n", name, text);
    abort();
}

/* FUNCTION:N[+][=CODE] */
static void read_injection(const char *text, struct injection *injection)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof injection->function)
        unreadable("TESTGPU_FAIL", text);
    memcpy(injection->function, text, (size_t)(colon - text));
    char *end;
    injection->nth = strtoul(colon + 1, &end, 10);
    if (end == colon + 1 || injection->nth == 0)
        unreadable("TESTGPU_FAIL", text);
    if (*end == '+') {
        injection->onwards = true;
        end++;
    }
    if (*end == '=') {
        injection->has_code = true;
        char *after;
        injection->code = (int)strtol(end + 1, &after, 10);
        if (after == end + 1 || *after != '\0') {
            if (!error_by_name(end + 1, &injection->code))
                unreadable("TESTGPU_FAIL", text);
        }
        if (injection->code == 0)
            unreadable("TESTGPU_FAIL", text);
    } else if (*end != '\0') {
        unreadable("TESTGPU_FAIL", text);
    }
}

/* [ROUTINE:]N[+] */
static void read_wrong(const char *text)
{
    const char *colon = strchr(text, ':');
    const char *number = colon != NULL ? colon + 1 : text;
    if (colon != NULL && (size_t)(colon - text) >= sizeof wrong.function)
        unreadable("TESTGPU_WRONG", text);
    memcpy(wrong.function, text, colon != NULL ? (size_t)(colon - text) : 0);
    char *end;
    wrong.nth = strtoul(number, &end, 10);
    if (*end == '+') {
        wrong.onwards = true;
        end++;
    }
    if (*end != '\0' || wrong.nth == 0)
        unreadable("TESTGPU_WRONG", text);
}

void injections_read(void)
{
    const char *text = getenv("TESTGPU_FAIL");
    if (text != NULL && *text != '\0') {
        char *copy = strdup(text);
        char *rest = NULL;
        for (char *entry = strtok_r(copy, ", ", &rest); entry != NULL;
             entry = strtok_r(NULL, ", ", &rest)) {
            if (injection_count == INJECTIONS_MAX)
                unreadable("TESTGPU_FAIL", text);
            read_injection(entry, &injections[injection_count++]);
        }
        free(copy);
    }
    text = getenv("TESTGPU_WRONG");
    if (text != NULL && *text != '\0')
        read_wrong(text);
}

static bool fires(struct injection *injection)
{
    injection->matched++;
    if (injection->matched == injection->nth ||
        (injection->onwards && injection->matched > injection->nth)) {
        injection->fired++;
        return true;
    }
    return false;
}

/* Takes one of the suffixes that tell versions of a function apart off the name. */
static bool shorten(char *name)
{
    static const char *const suffixes[] = {"_64", "_v2", "_v3", "_v4"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t tail = strlen(suffixes[i]);
        if (length > tail && strcmp(name + length - tail, suffixes[i]) == 0) {
            name[length - tail] = '\0';
            return true;
        }
    }
    return false;
}

static bool names(const struct injection *injection, const char *function)
{
    if (strcmp(injection->function, "*") == 0)
        return true;
    char name[64];
    snprintf(name, sizeof name, "%s", function);
    do {
        if (strcmp(injection->function, name) == 0)
            return true;
    } while (shorten(name));
    return false;
}

/* With the lock. Every matching entry counts the call; the first that fires decides. */
bool injection_for_call(const struct testgpu_function *function, bool allocates, int *code)
{
    bool fired = false;
    for (size_t i = 0; i < injection_count; i++) {
        struct injection *injection = &injections[i];
        if (!names(injection, function->name) || !fires(injection) || fired)
            continue;
        fired = true;
        if (injection->has_code)
            *code = injection->code;
        else
            *code = allocates ? function->library->out_of_memory : function->library->unknown;
    }
    return fired;
}

/* With the lock. */
bool injection_for_operation(CUresult *code)
{
    bool fired = false;
    for (size_t i = 0; i < injection_count; i++) {
        struct injection *injection = &injections[i];
        if (strcmp(injection->function, "async") != 0 || !fires(injection) || fired)
            continue;
        fired = true;
        *code = injection->has_code ? (CUresult)injection->code : CUDA_ERROR_LAUNCH_FAILED;
    }
    return fired;
}

static bool spoils(const char *name, bool any)
{
    pthread_mutex_lock(&fault_lock);
    const bool is_meant = wrong.nth != 0 && (any || strcmp(wrong.function, name) == 0);
    const bool fired = is_meant && fires(&wrong);
    pthread_mutex_unlock(&fault_lock);
    return fired;
}

bool testgpu_spoils_kernel(const char *routine)
{
    return spoils(routine, wrong.function[0] == '\0');
}

bool spoils_own_kernel(const char *name)
{
    return spoils(name, false);
}

/* cuda.h says of these errors that the process must be ended to use CUDA again. */
bool error_is_sticky(int code)
{
    switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
        return true;
    default:
        return false;
    }
}

void testgpu_fault(const char *what, const char *format, ...)
{
    char detail[256];
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "testgpu fault what=%s where=%s detail=\"%s\"\n", what,
                          current_where != NULL ? current_where : "-", detail);
    pthread_mutex_lock(&fault_lock);
    if (fault_count < FAULTS_KEPT)
        kept[fault_count] = strdup(line);
    fault_count++;
    pthread_mutex_unlock(&fault_lock);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* the record above stays */
}

void faults_forget(void)
{
    for (size_t i = 0; i < FAULTS_KEPT; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    fault_count = 0;
    for (size_t i = 0; i < injection_count; i++)
        injections[i].matched = injections[i].fired = 0;
}

unsigned long faults_count(void)
{
    pthread_mutex_lock(&fault_lock);
    unsigned long count = fault_count;
    pthread_mutex_unlock(&fault_lock);
    return count;
}

void faults_print(int file)
{
    pthread_mutex_lock(&fault_lock);
    for (size_t i = 0; i < FAULTS_KEPT && kept[i] != NULL; i++)
        append_line(file, "%s", kept[i]);
    append_line(file, "testgpu faults n=%lu\n", fault_count);
    pthread_mutex_unlock(&fault_lock);
}

void injections_print(int file)
{
    for (size_t i = 0; i < injection_count; i++)
        append_line(file, "testgpu planted function=%s nth=%lu%s matched=%lu fired=%lu\n",
                    injections[i].function, injections[i].nth, injections[i].onwards ? "+" : "",
                    injections[i].matched, injections[i].fired);
    pthread_mutex_lock(&fault_lock);
    if (wrong.nth != 0)
        append_line(file, "testgpu planted wrong=%lu%s matched=%lu fired=%lu\n", wrong.nth,
                    wrong.onwards ? "+" : "", wrong.matched, wrong.fired);
    pthread_mutex_unlock(&fault_lock);
}
