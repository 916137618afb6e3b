/* Sums in shared memory: rows, sizes, times; threads, forked children and processes that open the
 * table's file; what a killed process leaves half done; a table that is full. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "ops/op.h"
#include "report/totals.h"
#include "tests/lib/routine.h"

enum { TIMES = 5000, CHILDREN = 4 };

/* A routine that is not known: rows have the names that are called */
static struct accel_call call;
static struct totals_part part;

static void add(const char *symbol, enum accel_why why, const char *ran, double ms)
{
    const struct accel_decision decision = {.why = why, .est_cpu_ms = 8, .est_gpu_ms = 2};
    struct accel_record record = record_of(&call, symbol, 0, decision);
    record.ran = ran;
    record.ms = ms;
    record.up_bytes = 10;
    totals_add(&part, &record);
}

static void begin(void)
{
    struct totals *totals = totals_make();
    assert_non_null(totals);
    totals_begin(&part, totals);
}

/* The sum of the rows with this name and reason; reads them with or without taking them. */
static struct totals_row sum_of(const char *name, enum accel_why why, bool take)
{
    struct totals_row sum = {.calls = 0}, row;
    for (int i = 0; i < TOTALS_ROWS; i++)
        if (totals_read(part.totals, i, take, &row) && row.why == why &&
            strcmp(row.name, name) == 0) {
            sum = row;
            assert_true(row.calls > 0);
        }
    return sum;
}

/* The seconds that a precision would have saved in a call that is estimated to take 2 ms on the
 * GPU. */
static double offered_s(const char *ran, enum accel_why why, double ms, double offered_ms)
{
    const struct accel_decision decision = {.why = why, .est_cpu_ms = 8, .est_own_ms = 2};
    struct accel_record record = record_of(&call, "d", 0, decision);
    record.ran = ran;
    record.ms = ms;
    record.offer = (struct accel_offer){GPU_EMULATED, offered_ms, 1200, 9000};
    totals_add(&part, &record);
    return totals_read_sums(part.totals, true).precision[GPU_EMULATED].saved;
}

/* By the lesser of estimate and measured time; of calls that run on the CPU, only where the GPU was
 * too slow. */
static void other_precisions_save_time(void **state)
{
    (void)state;
    begin();
    assert_int_equal(lround(1e6 * offered_s("gpu0", ACCEL_FASTER, 5, 0.5)), 1500);
    assert_int_equal(lround(1e6 * offered_s("gpu0", ACCEL_FORCED, 1.5, 0.5)), 1000);
    assert_int_equal(lround(1e6 * offered_s("gpu0", ACCEL_FASTER, 0.25, 0.5)), 0);
    assert_int_equal(lround(1e6 * offered_s("cpu", ACCEL_SLOWER, 5, 0.5)), 4500);
    assert_int_equal(lround(1e6 * offered_s("cpu", ACCEL_SLOWER, -1, 0.5)), 0);
    assert_int_equal(lround(1e6 * offered_s("cpu", ACCEL_USER, 5, 0.5)), 0);
    assert_int_equal(lround(1e6 * offered_s("cpu", ACCEL_WARMING, 5, 0.5)), 0);
    const struct totals_sums none = totals_read_sums(part.totals, false);
    assert_int_equal(none.precision[GPU_EMULATED].calls, 0);
    assert_true(none.precision[GPU_EMULATED].native_gflops == 1200);
    assert_true(none.precision[GPU_EMULATED].gflops == 9000);
    assert_true(none.precision[GPU_NATIVE].gflops == 0);
}

/* Also of starts that have not ended. */
static void starts_of_gpus_add_up(void **state)
{
    const struct timespec pause = {0, 20000000};
    (void)state;
    begin();
    assert_true(totals_read_sums(part.totals, false).starting == 0);
    totals_starting(part.totals, true);
    totals_starting(part.totals, true);
    const double began_ms = accel_now_ms();
    nanosleep(&pause, NULL);
    totals_starting(part.totals, false);
    const double first_ms = accel_now_ms() - began_ms;
    nanosleep(&pause, NULL);
    const double ms = 1e3 * totals_read_sums(part.totals, true).starting;
    assert_true(ms >= 20 + 40 && ms >= first_ms + 20);
    totals_starting(part.totals, false);
    const double rest_ms = 1e3 * totals_read_sums(part.totals, false).starting;
    assert_true(rest_ms >= 0 && ms + rest_ms <= 2 * (accel_now_ms() - began_ms) + 1);
    const double again_ms = 1e3 * totals_read_sums(part.totals, false).starting;
    assert_true(again_ms == rest_ms); /* it has ended */
}

/* The first process that tells a part, in each form. */
static void each_part_is_told_once(void **state)
{
    static char longest[TOTALS_ABOUT_BYTES + 1];
    (void)state;
    begin();
    assert_null(totals_told(part.totals, 0, false));
    memset(longest, 'x', TOTALS_ABOUT_BYTES);
    totals_tell(part.totals, 0, false, longest); /* too long by its 0 */
    assert_null(totals_told(part.totals, 0, false));
    longest[TOTALS_ABOUT_BYTES - 1] = 0;
    totals_tell(part.totals, 0, false, longest);
    assert_string_equal(totals_told(part.totals, 0, false), longest);
    const pid_t child = fork();
    if (child == 0) {
        totals_tell(part.totals, 0, false, "other");
        totals_tell(part.totals, TOTALS_ABOUTS - 1, true, "last");
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_string_equal(totals_told(part.totals, 0, false), longest);
    assert_string_equal(totals_told(part.totals, TOTALS_ABOUTS - 1, true), "last");
    assert_null(totals_told(part.totals, 0, true));
    assert_null(totals_told(part.totals, TOTALS_ABOUTS - 1, false));
    assert_null(totals_told(part.totals, 1, false));
}

static void no_routine_is_cut(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        assert_true(strlen(accel_routines[i].name) < sizeof((struct totals_row *)0)->name);
    begin();
    add("XGBoosterTrainOneIterWithSplitGrad", ACCEL_SMALL, "gpu63+gpu62+cpu", 1);
    assert_int_equal(sum_of("XGBoosterTrainOneIterWithSplitGrad", ACCEL_SMALL, false).calls, 1);
}

static void rows_by_name_place_and_reason(void **state)
{
    (void)state;
    begin();
    add("f", ACCEL_SLOWER, "cpu", 3);
    add("f", ACCEL_SLOWER, "cpu", -1);
    add("f", ACCEL_FASTER, "gpu0", 4);
    add("g", ACCEL_SLOWER, "cpu", 5);
    const struct totals_row cpu = sum_of("f", ACCEL_SLOWER, false);
    assert_int_equal(cpu.calls, 2);
    assert_int_equal(cpu.untimed, 1);
    assert_true(cpu.seconds == 0.003 && cpu.estimated == 0.003 && cpu.instead == 0.002);
    assert_string_equal(cpu.ran, "cpu");
    const struct totals_row gpu = sum_of("f", ACCEL_FASTER, true);
    assert_true(gpu.seconds == 0.004 && gpu.instead == 0.008 && gpu.up == 10);
    assert_string_equal(gpu.ran, "gpu0");
    assert_int_equal(sum_of("g", ACCEL_SLOWER, false).calls, 0); /* all have been taken */
    add("g", ACCEL_SLOWER, "cpu", 5);
    assert_int_equal(sum_of("g", ACCEL_SLOWER, false).calls, 1);
    const struct totals_sums sums = totals_read_sums(part.totals, true);
    assert_int_equal(sums.processes, 1);
    assert_int_equal(sums.dropped, 0);
    assert_int_equal(sums.facts, 0);
    assert_true(sums.seconds >= 0);
}

static void sizes_of_a_row(void **state)
{
    struct accel_call product = {.batch = 1, .parts = 1};
    struct totals_row row;
    int rows = 0;
    (void)state;
    begin();
    product.routine = routine("dgemm");
    product.op = accel_op_of(product.routine);
    struct accel_record record = record_of(&product, "dgemm_", 0, (struct accel_decision){0});
    static const int64_t sizes[] = {300, 1023, 256, 1024, 4095};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int a = 0; a < product.routine->args;
             a++) /* n, and m and k are 7; ld does not count */
            if (product.routine->arg[a].kind == ACCEL_ARG_SIZE)
                product.blas.given[a] =
                    strcmp(product.routine->arg[a].name, "n") == 0 ? sizes[i] : 7;
        totals_add(&part, &record);
    }
    for (int i = 0; i < TOTALS_ROWS; i++)
        if (totals_read(part.totals, i, false, &row)) {
            rows++;
            assert_string_equal(row.name, "dgemm");
            assert_int_equal(row.low, row.calls == 3 ? 256 : 1024);
            assert_int_equal(row.high, row.calls == 3 ? 1023 : 4095);
        }
    assert_int_equal(rows, 2);
}

static void *add_many(void *unused)
{
    for (int i = 0; i < TIMES; i++)
        add("f", ACCEL_SMALL, "cpu", 1);
    return unused;
}

static void threads_count_together(void **state)
{
    pthread_t thread[CHILDREN];
    (void)state;
    begin();
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < CHILDREN; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(sum_of("f", ACCEL_SMALL, false).calls, CHILDREN * TIMES);
    assert_true(totals_read_sums(part.totals, false).facts & TOTALS_THREADS);
}

/* Also those that are killed while they count. */
static void children_count_in_their_parents_table(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0) {
            totals_begin(&part, part.totals);
            add_many(NULL);
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_int_equal(sum_of("f", ACCEL_SMALL, false).calls, CHILDREN * TIMES);
    assert_int_equal(totals_read_sums(part.totals, false).processes, CHILDREN);
    assert_true(totals_is_mine(part.totals));
}

static void processes_open_the_file(void **state)
{
    char path[64];
    (void)state;
    const int fd = memfd_create("totals", 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    assert_null(totals_open(path)); /* it is empty */
    struct totals *made = totals_make_in(fd);
    assert_non_null(made);
    struct totals *totals = totals_open(path);
    assert_non_null(totals);
    assert_ptr_not_equal(totals, made);
    totals_begin(&part, totals);
    add("f", ACCEL_SMALL, "cpu", 1);
    part.totals = made;
    assert_int_equal(sum_of("f", ACCEL_SMALL, false).calls, 1);
    memset(made, 1, 8); /* another version's */
    assert_null(totals_open(path));
    assert_null(totals_open("/dev/null"));
    assert_null(totals_open("/"));
    assert_null(totals_open("/none"));
    close(fd);
}

static void a_full_table_drops_what_has_no_row(void **state)
{
    static char name[TOTALS_ROWS + 10][8];
    int rows = 0;
    struct totals_row row;
    (void)state;
    begin();
    for (int i = 0; i < TOTALS_ROWS + 10; i++) {
        snprintf(name[i], sizeof name[i], "f%d", i);
        add(name[i], ACCEL_SMALL, "cpu", 1);
    }
    add(name[3], ACCEL_SMALL, "cpu", 1);
    for (int i = 0; i < TOTALS_ROWS; i++)
        rows += totals_read(part.totals, i, false, &row);
    assert_int_equal(rows, TOTALS_ROWS);
    assert_int_equal(sum_of("f3", ACCEL_SMALL, false).calls, 2);
    assert_int_equal(totals_read_sums(part.totals, false).dropped, 10);
}

static void one_writer_at_a_time(void **state)
{
    int status;
    (void)state;
    begin();
    pid_t child = fork();
    if (child == 0)
        _exit(totals_become_writer(part.totals) && !totals_become_writer(part.totals) ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(totals_leave_writer(part.totals));
    assert_true(totals_become_writer(part.totals)); /* the child is gone */
    child = fork();
    if (child == 0)
        _exit(totals_become_writer(part.totals));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(totals_leave_writer(part.totals));
    assert_false(totals_leave_writer(part.totals));
}

/* A process that has ended is gone, although its parent has not waited for it. */
static void a_zombie_is_gone(void **state)
{
    char path[64];
    siginfo_t info;
    (void)state;
    const int fd = memfd_create("totals", 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    const pid_t child = fork();
    if (child == 0) {
        struct totals *totals = totals_make_in(fd);
        _exit(totals && totals_become_writer(totals) ? 0 : 1);
    }
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, 0);
    struct totals *totals = totals_open(path);
    assert_non_null(totals);
    assert_true(totals_is_mine(totals));
    assert_true(totals_become_writer(totals));
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(fd);
}

static void *wait_for_end(void *unused)
{
    pause();
    return unused;
}

/* proc(5) calls it a zombie, too. */
static void a_process_whose_main_thread_has_ended_is_not(void **state)
{
    char path[64], stat[512] = "";
    pthread_t thread;
    (void)state;
    begin();
    const pid_t child = fork();
    if (child == 0) {
        if (!totals_become_writer(part.totals) ||
            pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    while (!strstr(stat, ") Z ")) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(stat, sizeof stat, file));
        fclose(file);
        usleep(1000);
    }
    assert_false(totals_become_writer(part.totals));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(totals_become_writer(part.totals));
}

int main(void)
{
    static const struct accel_routine unknown = {.args = 0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_precisions_save_time),
        cmocka_unit_test(starts_of_gpus_add_up),
        cmocka_unit_test(each_part_is_told_once),
        cmocka_unit_test(no_routine_is_cut),
        cmocka_unit_test(rows_by_name_place_and_reason),
        cmocka_unit_test(sizes_of_a_row),
        cmocka_unit_test(threads_count_together),
        cmocka_unit_test(children_count_in_their_parents_table),
        cmocka_unit_test(processes_open_the_file),
        cmocka_unit_test(a_full_table_drops_what_has_no_row),
        cmocka_unit_test(one_writer_at_a_time),
        cmocka_unit_test(a_zombie_is_gone),
        cmocka_unit_test(a_process_whose_main_thread_has_ended_is_not),
    };
    call.routine = &unknown;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
