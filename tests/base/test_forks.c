/* The registry of what the child of a fork sets right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/forks.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static int calls, free_at_call;

static bool is_free(pthread_mutex_t *lock)
{
    return pthread_mutex_trylock(lock) == 0 && pthread_mutex_unlock(lock) == 0;
}

static void child(void)
{
    calls++;
    free_at_call = is_free(&first) + is_free(&second);
}

FORKS_LOCK(first);
FORKS_CHILD(child);
FORKS_LOCK(second);

static void *hold(void *unused)
{
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    return unused;
}

/* The thread that holds them is not in the child. */
static void test_locks_are_free_before_functions_run(void **state)
{
    (void)state;
    pthread_t thread;
    int status = -1;
    assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool held = !is_free(&first) && !is_free(&second);
        forks_child();
        _exit(held && calls == 1 && free_at_call == 2 && is_free(&first) && is_free(&second) ? 0
                                                                                             : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(is_free(&first));
    assert_int_equal(calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_are_free_before_functions_run),
    };
    return cmocka_run_group_tests_name("forks", tests, NULL, NULL);
}
