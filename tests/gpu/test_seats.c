/* How processes spread over devices: each takes a seat at the one that the fewest use. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file/shared_file.h"
#include "gpu/device/seats.h"

static char folder[] = "/tmp/accel-seats-XXXXXX";
static char path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/accel-%d-seats", mkdtemp(folder), (int)geteuid());
    setenv("XDG_RUNTIME_DIR", folder, 1);
    shared_file_prepare();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

/* ---- Processes with a seat ---- */

/* Does what it is told by a letter, and answers with one: '0' and so on is the device that it has
 * chosen of three, '-' none. */
struct process {
    pid_t pid;
    int order, answer;
};

static const char *const names[] = {"zero", "one", "two"};

static char choose(struct seat *seat)
{
    struct seat_device devices[] = {{0, names[0], 0}, {1, names[1], 0}, {2, names[2], 0}};
    return seat_choose(seat, devices, 3) ? (char)('0' + devices[0].device) : '-';
}

static void serve(int order, int answer)
{
    struct seat seat = {NULL};
    char letter;
    while (read(order, &letter, 1) == 1) {
        if (letter == 'c')
            letter = choose(&seat);
        else if (letter == 'l')
            seat_leave(&seat);
        else if (letter >= '0' && letter <= '2')
            letter = seat_take(&seat, names[letter - '0']) ? letter : '-';
        else if (letter == 'f' && fork() == 0) /* holds nothing, and outlives its parent */
            for (;;)
                pause();
        else if (letter == 'd') /* as a daemon does; the pipes are 0 and 1 */
            closefrom(3);
        if (write(answer, &letter, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static void begin(struct process *process)
{
    int order[2], answer[2];
    assert_int_equal(pipe2(order, O_CLOEXEC) | pipe2(answer, O_CLOEXEC), 0);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        setpgid(0, 0);
        dup2(order[0], 0);
        dup2(answer[1], 1);
        closefrom(3);
        serve(0, 1);
    }
    setpgid(process->pid, process->pid);
    close(order[0]);
    close(answer[1]);
    process->order = order[1];
    process->answer = answer[0];
}

static char tell(struct process *process, char letter)
{
    assert_int_equal(write(process->order, &letter, 1), 1);
    assert_int_equal(read(process->answer, &letter, 1), 1);
    return letter;
}

/* Its children stay. */
static void kill_it(struct process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    close(process->order);
    close(process->answer);
}

static void kill_all(struct process *processes, int count)
{
    for (int i = 0; i < count; i++) {
        kill(-processes[i].pid, SIGKILL);
        kill_it(&processes[i]);
    }
}

static void begin_all(struct process *processes, int count)
{
    for (int i = 0; i < count; i++)
        begin(&processes[i]);
}

/* ---- Tests ---- */

static void each_takes_the_one_with_the_fewest(void **state)
{
    struct process p[7];
    (void)state;
    begin_all(p, 7);
    for (int i = 0; i < 6; i++)
        assert_int_equal(tell(&p[i], 'c'), '0' + i % 3);
    kill_it(&p[1]);
    assert_int_equal(tell(&p[6], 'c'), '1'); /* its place is free again */
    kill_all(p, 1);
    kill_all(p + 2, 5);
}

/* Long-lived pools, whose processes end and begin in any order. */
static void counts_decide_whichever_have_ended(void **state)
{
    struct process p[10];
    (void)state;
    begin_all(p, 10);
    for (int i = 0; i < 9; i++)
        tell(&p[i], (char)('0' + i / 3));
    kill_all(p, 2); /* the first two of device 0, and the last two of device 2 */
    kill_all(p + 7, 2);
    assert_int_equal(tell(&p[9], 'c'), '0');
    assert_int_equal(tell(&p[9], 'l'), 'l');
    struct process more[3];
    begin_all(more, 3);
    const char expected[] = "020";
    for (int i = 0; i < 3; i++)
        assert_int_equal(tell(&more[i], 'c'), expected[i]);
    kill_all(more, 3);
    kill_all(p + 2, 5);
    kill_all(p + 9, 1);
}

static void a_seat_is_the_process_s_alone(void **state)
{
    struct process p[3];
    (void)state;
    begin_all(p, 3);
    assert_int_equal(tell(&p[0], 'c'), '0');
    assert_int_equal(tell(&p[0], 'd'), 'd'); /* without its descriptors it has the seat */
    assert_int_equal(tell(&p[0], 'f'), 'f'); /* its child has none, and lives on */
    assert_int_equal(tell(&p[1], 'c'), '1');
    kill_it(&p[0]);
    assert_int_equal(tell(&p[2], 'c'), '0');
    kill(-p[0].pid, SIGKILL);
    kill_all(p + 1, 2);
}

static void what_others_have_taken_counts(void **state)
{
    struct process p[4];
    (void)state;
    begin_all(p, 4);
    assert_int_equal(tell(&p[0], '0'), '0');
    assert_int_equal(tell(&p[1], '0'), '0');
    assert_int_equal(tell(&p[2], '1'), '1');
    assert_int_equal(tell(&p[3], 'c'), '2');
    kill_all(p, 4);
}

static void those_at_once_take_different_ones(void **state)
{
    enum { ROUNDS = 20 };
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct process p[3];
        char seen[3];
        begin_all(p, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(write(p[i].order, "c", 1), 1);
        for (int i = 0; i < 3; i++)
            assert_int_equal(read(p[i].answer, &seen[i], 1), 1);
        assert_true(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
        kill_all(p, 3);
    }
}

static void one_process_has_several(void **state)
{
    struct seat seat[SEATS_MOST + 3] = {{NULL}};
    struct seat_device devices[] = {{7, "a", 0}, {5, "b", 0}, {3, "c", 0}};
    (void)state;
    assert_true(seat_take(&seat[0], "a"));
    assert_true(seat_take(&seat[1], "b"));
    assert_true(seat_choose(&seat[2], devices, 3));
    assert_true(devices[0].device == 3 && devices[1].device == 7 && devices[2].device == 5);
    assert_true(devices[0].others == 0 && devices[1].others == 1 && devices[2].others == 1);
    for (int i = 3; i < 2 + SEATS_MOST; i++) /* it has one of `a` already */
        assert_true(seat_take(&seat[i], "a"));
    assert_false(seat_take(&seat[SEATS_MOST + 2], "a")); /* there are no more */
    for (int i = 0; i < SEATS_MOST + 3; i++)
        seat_leave(&seat[i]);
    struct seat_device again[] = {{7, "a", 0}, {5, "b", 0}};
    assert_true(seat_choose(&seat[0], again, 2));
    assert_true(again[0].device == 7 && again[0].others == 0);
    seat_leave(&seat[0]);
}

/* One that chooses, and is stopped meanwhile, holds nobody up for long. */
static void nobody_waits_without_end(void **state)
{
    struct process p;
    (void)state;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    begin(&p);
    assert_int_equal(tell(&p, 'c'), '0');
    kill_all(&p, 1);
    close(fd);
}

static void without_a_file_there_is_no_seat(void **state)
{
    struct process p;
    (void)state;
    begin(&p);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tell(&p, 'c'), '-');
    assert_int_equal(tell(&p, '1'), '-');
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(tell(&p, 'c'), '-');
    assert_int_equal(unlink(path), 0);
    close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(chmod(path, 0660), 0); /* others may write to it */
    assert_int_equal(tell(&p, 'c'), '-');
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tell(&p, 'c'), '0');
    kill_all(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_takes_the_one_with_the_fewest, remove_file),
        cmocka_unit_test_teardown(counts_decide_whichever_have_ended, remove_file),
        cmocka_unit_test_teardown(a_seat_is_the_process_s_alone, remove_file),
        cmocka_unit_test_teardown(what_others_have_taken_counts, remove_file),
        cmocka_unit_test_teardown(those_at_once_take_different_ones, remove_file),
        cmocka_unit_test_teardown(one_process_has_several, remove_file),
        cmocka_unit_test_teardown(nobody_waits_without_end, remove_file),
        cmocka_unit_test_teardown(without_a_file_there_is_no_seat, remove_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
