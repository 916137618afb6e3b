#include "failure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread/forks.h"
#include "exit_guard.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all devices' gpu_failures */
FORKS_LOCK(lock);

static atomic_bool gone; /* the driver has been unloaded */

static _Thread_local struct failure noted __attribute__((tls_model("initial-exec")));
static _Thread_local int noting __attribute__((tls_model("initial-exec")));

void failure_begin(struct failure *outer)
{
    *outer = noted;
    noted.kind = FAILURE_NONE;
    noted.text[0] = 0;
    noting++;
}

void failure_end(const struct failure *outer)
{
    noting--;
    noted = *outer;
}

const struct failure *failure_noted(void)
{
    return &noted;
}

static void publish(char *to, const char *text)
{
    pthread_mutex_lock(&lock);
    if (!to[0])
        snprintf(to, GPU_FAILURE_BYTES, "%s", text);
    pthread_mutex_unlock(&lock);
}

void failure_publish(struct gpu_device *device, const struct failure *failure)
{
    struct gpu_failures *known = &device->failures;
    if (failure->kind != FAILURE_NONE)
        publish(failure->kind == FAILURE_DEVICE ? known->of_device : known->of_library,
                failure->text);
}

static void note(const struct failure failure)
{
    if (noted.kind == FAILURE_NONE) {
        noted = failure;
    } else if (failure.kind == FAILURE_DEVICE && noted.kind != FAILURE_DEVICE) {
        size_t length = strlen(noted.text);
        snprintf(noted.text + length, sizeof noted.text - length, ", then %.200s", failure.text);
        noted.kind = FAILURE_DEVICE;
    }
}

void failure_note(enum failure_kind kind, const char *function, const char *answer)
{
    struct failure failure = {.kind = kind};
    snprintf(failure.text, sizeof failure.text, "%s: %s", function,
             answer ? answer : "unknown error");
    note(failure);
}

void failure_pass_on(const struct failure *outer, struct gpu_device *device)
{
    struct failure own = noted;
    failure_end(outer);
    if (own.kind == FAILURE_NONE)
        return;
    if (noting) {
        note(own);
    } else {
        own.kind = FAILURE_DEVICE;
        failure_publish(device, &own);
    }
}

void failure_is_of(enum failure_kind kind)
{
    if (noted.kind != FAILURE_DEVICE)
        noted.kind = kind;
}

bool gpu_has_failure(const struct gpu_device *device)
{
    pthread_mutex_lock(&lock);
    bool has = device->failures.of_device[0] != 0;
    pthread_mutex_unlock(&lock);
    return has;
}

const char *gpu_failure(const struct gpu_device *device)
{
    const struct gpu_failures *known = &device->failures;
    pthread_mutex_lock(&lock);
    const char *text = known->of_device[0]    ? known->of_device
                       : known->of_library[0] ? known->of_library
                                              : "no reason known";
    pthread_mutex_unlock(&lock);
    return text;
}

void failure_of_unloaded_driver(void)
{
    atomic_store(&gone, true);
}

bool gpu_is_gone(void)
{
    return atomic_load(&gone) || exit_guard_has_begun();
}
