#include "task.h"

#include <stdlib.h>
#include <string.h>

void task_begin(struct task *task, struct accel_call *call, const struct dispatch_caller *caller,
                struct dispatch_device *device)
{
    memset(task, 0, offsetof(struct task, problem));
    memset(&task->decision, 0, offsetof(struct task, host) - offsetof(struct task, decision));
    memset(&task->host, 0, offsetof(struct gpu_host, failure));
    task->host.failure[0] = '\0';
    task->call = call;
    task->caller = caller;
    task->device = device;
    task->arithmetic = caller ? caller->arithmetic : NULL;
}

void task_drop_plan(struct task *task)
{
    free(task->plan);
    task->plan = NULL;
}
