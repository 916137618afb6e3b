/* random_calls [-i interface] [-s seed] [-c count] [-n size] [-r routines] [-l library] [-p prefix]
 * [-x suffix] [-f faults] [threads]: see calls.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls.h"

struct worker {
    pthread_t thread;
    struct test_options options;
    int wrong;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->wrong = test_calls(&worker->options, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    struct test_options options;
    struct worker workers[64];
    int at = test_options_read(&options, argc, argv), wrong = 0;
    int threads = at < argc ? atoi(argv[at]) : 1;
    if (threads < 1 || threads > 64)
        return 2;
    for (int i = 0; i < threads; i++) {
        workers[i].options = options;
        workers[i].options.seed += (unsigned)i;
        if (threads == 1)
            work(&workers[i]);
        else if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    }
    for (int i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    test_calls_say_lacking(&options);
    printf("%d calls, %d wrong\n", threads * test_calls_count(&options), wrong);
    return wrong != 0;
}
