/* The report at exit and the trace of calls. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "driver.h"

enum { KERNELS_MAX = 128 };

struct copied copied;
static struct testgpu_function *functions;
static struct {
    const char *name;
    unsigned long runs;
} kernels[KERNELS_MAX] = {{"gemm", 0}};
static struct testgpu_pool *pools;

/* With the lock, as everything here. */
void report_function(struct testgpu_function *function)
{
    if (!function->listed) {
        function->listed = true;
        function->next = functions;
        functions = function;
    }
}

void report_kernel(const char *name)
{
    for (size_t i = 0; i < KERNELS_MAX; i++) {
        if (kernels[i].name == NULL)
            kernels[i].name = name;
        if (strcmp(kernels[i].name, name) == 0) {
            kernels[i].runs++;
            return;
        }
    }
}

void report_forget(void)
{
    for (struct testgpu_function *f = functions; f != NULL; f = f->next)
        f->calls = f->failed = 0;
    for (size_t i = 0; i < KERNELS_MAX; i++)
        kernels[i].runs = 0;
    memset(&copied, 0, sizeof copied);
    memset(lasted, 0, sizeof lasted);
}

/* The report is put together in an anonymous file, then appended with one write. */
void append_line(int file, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line)
        length = (int)sizeof line - 1;
    if (write(file, line, (size_t)length) != length)
        abort();
}

void *testgpu_object_new(struct testgpu_pool *pool, CUcontext context)
{
    if (!pool->listed) {
        pool->listed = true;
        pool->next = pools;
        pools = pool;
    }
    size_t chunk = pool->used / TESTGPU_POOL_CHUNK;
    if (chunk == TESTGPU_POOL_CHUNKS)
        return NULL;
    if (pool->chunks[chunk] == NULL) {
        pool->chunks[chunk] = calloc(TESTGPU_POOL_CHUNK, pool->size);
        if (pool->chunks[chunk] == NULL)
            return NULL;
    }
    struct testgpu_object *object = testgpu_object_at(pool, pool->used++);
    object->alive = true;
    object->context = context;
    return object;
}

void *testgpu_object_at(struct testgpu_pool *pool, size_t index)
{
    return pool->chunks[index / TESTGPU_POOL_CHUNK] + index % TESTGPU_POOL_CHUNK * pool->size;
}

enum testgpu_state testgpu_object_state(const struct testgpu_pool *pool, const void *object)
{
    uintptr_t address = (uintptr_t)object;
    size_t chunks = (pool->used + TESTGPU_POOL_CHUNK - 1) / TESTGPU_POOL_CHUNK;
    /* The newest handles are the ones in use. */
    for (size_t i = chunks; i-- > 0;) {
        uintptr_t start = (uintptr_t)pool->chunks[i];
        if (address < start || address >= start + TESTGPU_POOL_CHUNK * pool->size)
            continue;
        size_t offset = address - start;
        if (offset % pool->size != 0 || i * TESTGPU_POOL_CHUNK + offset / pool->size >= pool->used)
            return TESTGPU_STRAY;
        return ((const struct testgpu_object *)object)->alive ? TESTGPU_ALIVE : TESTGPU_ENDED;
    }
    return TESTGPU_STRAY;
}

bool testgpu_object_is_alive(const struct testgpu_pool *pool, const void *object, const char *kind)
{
    char what[64];
    enum testgpu_state state = testgpu_object_state(pool, object);
    if (state == TESTGPU_ALIVE)
        return true;
    snprintf(what, sizeof what, "%s_%s", state == TESTGPU_ENDED ? "destroyed" : "unknown", kind);
    testgpu_fault(what, "%s=%p", kind, object);
    return false;
}

struct living {
    size_t device_bytes, device, managed, managed_bytes, host, registered;
};

/* What a failed context holds cannot be given back by anyone, so it is told apart from leaks. */
static struct living count_memory(bool failed)
{
    struct living living = {0};
    for (struct allocation *a = allocations; a != NULL; a = a->next) {
        if ((a->context->error != CUDA_SUCCESS) != failed)
            continue;
        switch (a->kind) {
        case MEMORY_DEVICE:
            living.device++;
            living.device_bytes += a->bytes;
            break;
        case MEMORY_MANAGED:
            living.managed++;
            living.managed_bytes += a->bytes;
            break;
        case MEMORY_PINNED:
            living.host++;
            break;
        case MEMORY_REGISTERED:
            living.registered++;
            break;
        }
    }
    return living;
}

static size_t count_objects(const char *name, bool failed)
{
    size_t count = 0;
    for (struct testgpu_pool *pool = pools; pool != NULL; pool = pool->next) {
        if (strcmp(pool->name, name) != 0)
            continue;
        for (size_t i = 0; i < pool->used; i++) {
            struct testgpu_object *object = testgpu_object_at(pool, i);
            if (!object->alive)
                continue;
            if (pool == &streams && ((CUstream)object)->legacy)
                continue;
            CUcontext context = pool == &contexts ? (CUcontext)object : object->context;
            if ((context->error != CUDA_SUCCESS) == failed)
                count++;
        }
    }
    return count;
}

static void print_living(int file, bool failed)
{
    struct living living = count_memory(failed);
    append_line(file,
                "testgpu %s device_bytes=%zu device_allocations=%zu host_allocations=%zu "
                "streams=%zu events=%zu handles=%zu contexts=%zu managed_bytes=%zu "
                "managed_allocations=%zu registered=%zu graphs=%zu modules=%zu pools=%zu\n",
                failed ? "lost" : "leaked", living.device_bytes, living.device, living.host,
                count_objects("streams", failed), count_objects("events", failed),
                count_objects("handles", failed), count_objects("contexts", failed),
                living.managed_bytes, living.managed, living.registered,
                count_objects("graphs", failed), count_objects("modules", failed),
                count_objects("pools", failed));
}

static void print_kernels(int file)
{
    append_line(file, "testgpu kernels");
    for (size_t i = 0; i < KERNELS_MAX && kernels[i].name != NULL; i++)
        append_line(file, " %s=%lu", kernels[i].name, kernels[i].runs);
    append_line(file, "\n");
}

static void print_report(int file)
{
    append_line(file, "testgpu process pid=%d forked=%d seed=%llu\n", (int)getpid(), driver.forked,
                (unsigned long long)settings.seed);
    for (struct testgpu_function *f = functions; f != NULL; f = f->next)
        if (f->calls != 0)
            append_line(file, "testgpu call name=%s n=%lu failed=%lu\n", f->name, f->calls,
                        f->failed);
    append_line(
        file, "testgpu copied h2d_bytes=%llu d2h_bytes=%llu d2d_bytes=%llu h2h_bytes=%llu\n",
        (unsigned long long)copied.host_to_device, (unsigned long long)copied.device_to_host,
        (unsigned long long)copied.device_to_device, (unsigned long long)copied.host_to_host);
    if (copied.migrated > 0)
        append_line(file, "testgpu migrated bytes=%llu\n", (unsigned long long)copied.migrated);
    if (copied.between_devices > 0)
        append_line(file, "testgpu between_devices bytes=%llu\n",
                    (unsigned long long)copied.between_devices);
    print_kernels(file);
    if (speed_is_set())
        append_line(file, "testgpu lasted kernels_us=%llu up_us=%llu down_us=%llu\n",
                    (unsigned long long)lasted[ENGINE_KERNELS] / 1000,
                    (unsigned long long)lasted[ENGINE_UP] / 1000,
                    (unsigned long long)lasted[ENGINE_DOWN] / 1000);
    if (settings.memory_us != 0 || settings.pin_ms != 0 || settings.info_us != 0)
        append_line(file, "testgpu cost memory_us=%llu pinning_us=%llu info_us=%llu\n",
                    (unsigned long long)call_costs[COST_MEMORY] / 1000,
                    (unsigned long long)call_costs[COST_PINNING] / 1000,
                    (unsigned long long)call_costs[COST_INFO] / 1000);
    if (!driver.forked) {
        print_living(file, false);
        print_living(file, true);
        append_line(file, "testgpu pending operations=%zu\n", streams_pending());
    }
    injections_print(file);
    faults_print(file);
}

/* With the lock. A child of a fork has something to say only if it used the libraries. */
void report_write(void)
{
    if (settings.report == NULL || (driver.forked && faults_count() == 0))
        return;
    char path[PATH_MAX];
    settings_path(settings.report, path, sizeof path);
    int draft = memfd_create("testgpu report", MFD_CLOEXEC);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (draft < 0 || file < 0) {
        fprintf(stderr, "testgpu: cannot write %s\n", path);
        abort();
    }
    print_report(draft);
    off_t length = lseek(draft, 0, SEEK_END);
    char *text = malloc((size_t)length);
    if (text == NULL || pread(draft, text, (size_t)length, 0) != length ||
        write(file, text, (size_t)length) != length)
        fprintf(stderr, "testgpu: cannot write %s\n", path);
    free(text);
    close(file);
    close(draft);
}

void trace_line(const char *format, ...)
{
    static int file = -1;
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    char line[512];
    int used = snprintf(line, sizeof line, "testgpu trace pid=%d tid=%ld ", (int)getpid(),
                        (long)syscall(SYS_gettid));
    va_list arguments;
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    pthread_mutex_lock(&opening);
    if (file < 0) {
        char path[PATH_MAX];
        settings_path(settings.trace, path, sizeof path);
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    pthread_mutex_unlock(&opening);
    if (file >= 0 && write(file, line, (size_t)used) < 0)
        return; /* a trace that cannot be written is not the test's failure */
}
