/*
 * Who writes to memory that is watched, is noticed: by stores, system calls, other threads, the
 * child of a fork that shares it, new mappings. Ranges that overlap do not hide writes from each
 * other. Only memory that nothing else can write to is watched, and the program's calls about its
 * memory have the outcomes that they have without us.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/memory/mappings.h"
#include "base/memory/uffd_wp.h"
#include "tests/lib/watches.h"

enum { PAGES = 64 };
static size_t page, bytes;
static char *base;

static uintptr_t at(int number)
{
    return (uintptr_t)base + (uintptr_t)number * page;
}

static char *map_more(int more, int flags, void *where, int fd)
{
    char *memory = mmap(where, bytes + (size_t)more * page, PROT_READ | PROT_WRITE, flags, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 1, bytes);
    return memory;
}

static char *map(int flags)
{
    return map_more(0, flags | MAP_ANONYMOUS, NULL, -1);
}

static int begin(void **state)
{
    (void)state;
    page = write_watch_page();
    bytes = PAGES * page;
    base = map(MAP_PRIVATE);
    return need_watch(write_watch_begin(at(0), at(PAGES)));
}

static int end(void **state)
{
    (void)state;
    munmap(base, bytes);
    return 0;
}

static uint64_t watch_all(void)
{
    const uint64_t watch = write_watch_begin(at(0), at(PAGES));
    assert_true(watch > 0);
    assert_true(write_watch_unchanged(watch));
    return watch;
}

/* ---- Writers ---- */

static void store(void)
{
    *(volatile char *)at(5) = 7;
}

static void store_the_same(void)
{
    *(volatile char *)at(5) = 1;
}

static void *in_thread(void *unused)
{
    (void)unused;
    store();
    return NULL;
}

static void other_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
}

static void read_pipe(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(read(ends[0], (char *)at(63), 1), 1);
    close(ends[0]);
    close(ends[1]);
}

static void read_directly(void)
{
    char name[] = "./written-XXXXXX";
    const int plain = mkstemp(name), file = open(name, O_RDWR | O_DIRECT);
    unlink(name);
    assert_int_equal(pwrite(plain, base, page, 0), page);
    close(plain);
    if (file >= 0)
        assert_int_equal(pread(file, (char *)at(9), page, 0), page);
    else
        store();
    close(file);
}

static void vm_writev(void)
{
    char byte = 3;
    const struct iovec from = {&byte, 1}, to = {(void *)at(7), 1};
    if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != 1)
        store(); /* a sandbox */
}

static void write_by_proc(void)
{
    const int mem = open("/proc/self/mem", O_RDWR);
    if (mem < 0 || pwrite(mem, "x", 1, (off_t)at(11)) != 1)
        store();
    close(mem);
}

static void drop(void)
{
    assert_int_equal(madvise((void *)at(8), page, MADV_DONTNEED), 0);
}

static void drop_and_read(void)
{
    drop();
    assert_int_equal(*(volatile char *)at(8), 0);
}

static void unmap(void)
{
    assert_int_equal(munmap((void *)at(0), bytes), 0);
}

static void map_again(void)
{
    unmap();
    map_more(0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, base, -1);
}

static void move_away(void)
{
    char *moved = mremap(base, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    assert_ptr_not_equal(moved, MAP_FAILED);
    munmap(moved, bytes);
}

/* With pages of its own that are protected, too. */
static void move_here(void)
{
    char *other = map(MAP_PRIVATE);
    const uint64_t watch = write_watch_begin((uintptr_t)other, (uintptr_t)other + bytes);
    assert_true(watch > 0);
    assert_ptr_equal(mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base), base);
    assert_false(write_watch_unchanged(watch));
    /* Another watch in the new mapping does not make the old one's protected pages clean. */
    const uint64_t next = write_watch_begin(at(60), at(61));
    assert_true(next > 0);
    write_watch_leave(watch);
    write_watch_leave(next);
}

static void write_in_fork_and_here(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(*(volatile char *)at(5) != 1);
    store();
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void each_writer_is_noticed(void **state)
{
    void (*const writers[])(void) = {store,
                                     store_the_same,
                                     other_thread,
                                     read_pipe,
                                     read_directly,
                                     vm_writev,
                                     write_by_proc,
                                     drop,
                                     drop_and_read,
                                     move_away,
                                     map_again,
                                     move_here,
                                     write_in_fork_and_here,
                                     unmap};
    (void)state;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        const uint64_t watch = watch_all();
        writers[i]();
        if (write_watch_unchanged(watch))
            fail_msg("writer %zu is not noticed", i);
        assert_false(write_watch_unchanged(watch));
        write_watch_leave(watch);
        if (writers[i] != unmap)
            memset(base, 1, bytes);
    }
    base = map(MAP_PRIVATE);
}

/* ---- No writers ---- */

static void protect_and_back(void)
{
    assert_int_equal(mprotect((void *)at(3), 5 * page, PROT_NONE), 0);
    assert_int_equal(mprotect((void *)at(3), 5 * page, PROT_READ | PROT_WRITE), 0);
}

static void fork_and_wait(void)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        memset(base, 5, bytes); /* its own pages */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void read_all(void)
{
    int sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += base[i];
    assert_int_equal(sum, bytes);
}

static void send_out(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], base, page), page);
    close(ends[0]);
    close(ends[1]);
}

static void who_only_reads_changes_nothing(void **state)
{
    void (*const readers[])(void) = {read_all, send_out, fork_and_wait, protect_and_back};
    (void)state;
    const uint64_t watch = watch_all();
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        readers[i]();
        assert_true(write_watch_unchanged(watch));
    }
    write_watch_leave(watch);
    assert_false(write_watch_unchanged(watch));
}

/* The program's handler of SIGSEGV may bring other contents when they are read. */
static void pages_that_cannot_be_read_are_not_clean(void **state)
{
    (void)state;
    const uint64_t watch = watch_all();
    assert_int_equal(mprotect(base, bytes, PROT_READ), 0);
    assert_true(write_watch_unchanged(watch));
    assert_int_equal(mprotect((void *)at(30), page, PROT_NONE), 0);
    assert_true(write_watch_unchanged_in(watch, at(0), at(30)));
    assert_true(write_watch_unchanged_in(watch, at(31), at(PAGES)));
    assert_false(write_watch_unchanged_in(watch, at(29), at(32)));
    assert_int_equal(mprotect(base, bytes, PROT_READ | PROT_WRITE), 0);
    write_watch_leave(watch);
}

static void pages_beside_it_do_not_count(void **state)
{
    (void)state;
    const uint64_t watch = write_watch_begin(at(10), at(20));
    memset((char *)at(0), 2, 10 * page);
    memset((char *)at(20), 2, page);
    assert_true(write_watch_unchanged(watch));
    *(volatile char *)(at(20) - 1) = 2;
    assert_true(write_watch_unchanged_in(watch, at(10), at(19)));
    assert_true(write_watch_unchanged_in(watch, at(0), at(12)));
    assert_false(write_watch_unchanged_in(watch, at(18), at(40)));
    assert_false(write_watch_unchanged_in(watch, at(10), at(12))); /* it stays so */
    assert_false(write_watch_unchanged(watch));
    write_watch_leave(watch);
}

/* ---- Ranges that overlap ---- */

static void a_later_watch_does_not_hide_a_write(void **state)
{
    (void)state;
    const uint64_t first = write_watch_begin(at(0), at(40));
    *(volatile char *)at(30) = 2;
    const uint64_t second = write_watch_begin(at(20), at(60));
    assert_true(write_watch_unchanged(second));
    assert_false(write_watch_unchanged(first));
    const uint64_t third = write_watch_begin(at(25), at(35)),
                   fourth = write_watch_begin(at(0), at(PAGES));
    assert_true(write_watch_unchanged(second) && write_watch_unchanged(third) &&
                write_watch_unchanged(fourth));
    *(volatile char *)at(26) = 2;
    assert_false(write_watch_unchanged(second) || write_watch_unchanged(third) ||
                 write_watch_unchanged(fourth));
    write_watch_leave(first);
    write_watch_leave(second);
    write_watch_leave(third);
    write_watch_leave(fourth);
}

static void the_end_of_a_watch_leaves_the_others(void **state)
{
    (void)state;
    const uint64_t first = write_watch_begin(at(0), at(40)),
                   second = write_watch_begin(at(20), at(60));
    write_watch_leave(first);
    assert_true(write_watch_unchanged(second));
    *(volatile char *)at(10) = 2;
    assert_true(write_watch_unchanged(second));
    *(volatile char *)at(21) = 2;
    assert_false(write_watch_unchanged(second));
    write_watch_leave(second);
}

static void there_is_an_end_to_watches(void **state)
{
    uint64_t watch[WRITTEN_WATCHES];
    (void)state;
    for (int i = 0; i < WRITTEN_WATCHES; i++)
        assert_true((watch[i] = write_watch_begin(at(i % PAGES), at(i % PAGES + 1))) > 0);
    assert_true(write_watch_begin(at(0), at(1)) == 0);
    for (int i = 0; i < WRITTEN_WATCHES; i++)
        write_watch_leave(watch[i]);
    assert_true(write_watch_begin(at(1), at(1)) == 0);
    write_watch_leave(watch_all());
}

/* ---- Threads ---- */

static void *watch_and_write(void *number)
{
    const int own = *(int *)number;
    for (int i = 0; i < 200; i++) {
        const uint64_t watch = write_watch_begin(at(own * 4), at(own * 4 + 4));
        const bool clean = write_watch_unchanged(watch);
        *(volatile char *)at(own * 4 + i % 4) = (char)i;
        if (!watch || !clean || write_watch_unchanged(watch))
            return number;
        write_watch_leave(watch);
    }
    return NULL;
}

static void threads_watch_at_once(void **state)
{
    pthread_t thread[4];
    int number[4];
    (void)state;
    const uint64_t whole = watch_all();
    for (int i = 0; i < 4; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, watch_and_write, &number[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    assert_false(write_watch_unchanged(whole));
    write_watch_leave(whole);
}

/* ---- What is not watched ---- */

static void is_refused(char *memory)
{
    assert_true(write_watch_begin((uintptr_t)memory, (uintptr_t)memory + bytes) == 0);
    assert_null(write_watch_why_not());
}

static void memory_of_others_is_not_watched(void **state)
{
    (void)state;
    char *shared = map(MAP_SHARED);
    is_refused(shared);
    munmap(shared, bytes);
    char name[] = "./written-XXXXXX";
    const int files[] = {memfd_create("written", MFD_CLOEXEC), mkstemp(name)};
    unlink(name);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ftruncate(files[i / 2], (off_t)bytes), 0);
        char *file = map_more(0, i % 2 ? MAP_SHARED : MAP_PRIVATE, NULL, files[i / 2]);
        is_refused(file);
        munmap(file, bytes);
    }
    close(files[0]);
    close(files[1]);
    const int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    if (id >= 0) {
        char *segment = shmat(id, NULL, 0);
        shmctl(id, IPC_RMID, NULL);
        is_refused(segment);
        shmdt(segment);
    }
    assert_int_equal(mprotect(base, bytes, PROT_READ), 0);
    is_refused(base);
    assert_int_equal(mprotect(base, bytes, PROT_READ | PROT_WRITE), 0);
    char local[3 * 4096]; /* of the stack */
    memset(local, 1, sizeof local);
    const uintptr_t inside = ((uintptr_t)local + page - 1) / page * page;
    assert_true(write_watch_begin(inside, inside + page) == 0);
    /* A hole. */
    munmap((void *)at(10), page);
    is_refused(base);
    map_again();
}

/* Another userfaultfd has the mapping; its owner would be disturbed. */
static void a_program_that_watches_itself_is_left_alone(void **state)
{
    struct uffd_wp other;
    (void)state;
    assert_null(uffd_wp_open(&other));
    is_refused(base);
    assert_true(uffd_wp_register(&other, at(0), at(PAGES)));
    uffd_wp_close(&other);
    write_watch_leave(watch_all());
}

/* They write to pages that they hold, whatever the page tables say. */
static void nothing_is_watched_beside_asynchronous_input(void **state)
{
    struct io_uring_params parameters = {.flags = 0};
    aio_context_t context = 0;
    (void)state;
    const int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring >= 0) { /* it may be forbidden */
        is_refused(base);
        close(ring);
    }
    if (syscall(SYS_io_setup, 1, &context) == 0) {
        is_refused(base);
        syscall(SYS_io_destroy, context);
    }
    write_watch_leave(watch_all());
}

/* ---- The program's own calls ---- */

static int mappings_of_base;

static bool count(void *unused, const struct mapping *m)
{
    (void)unused;
    mappings_of_base += m->start < at(PAGES) && m->end > at(0);
    return true;
}

static void mappings_stay_whole(void **state)
{
    (void)state;
    const uint64_t watch = write_watch_begin(at(10), at(20));
    mappings_of_base = 0;
    assert_true(mappings_read(count, NULL));
    assert_int_equal(mappings_of_base, 1);
    /* mremap() refuses a range of several mappings. */
    char *moved = mremap(base, bytes, 2 * bytes, MREMAP_MAYMOVE);
    assert_ptr_not_equal(moved, MAP_FAILED);
    assert_true(moved[0] == 1 && moved[bytes - 1] == 1 && moved[2 * bytes - 1] == 0);
    memset(moved, 3, 2 * bytes);
    write_watch_leave(watch);
    munmap(moved, 2 * bytes);
    base = map(MAP_PRIVATE);
}

/* Whether the memory is registered: then another userfaultfd cannot have it. */
static bool is_registered(void)
{
    struct uffd_wp other;
    assert_null(uffd_wp_open(&other));
    const bool registered = !uffd_wp_register(&other, at(0), at(PAGES));
    assert_true(!registered || errno == EBUSY);
    uffd_wp_close(&other);
    return registered;
}

static void released_memory_is_ordinary(void **state)
{
    (void)state;
    const uint64_t first = write_watch_begin(at(0), at(10)),
                   second = write_watch_begin(at(20), at(30));
    write_watch_leave(first);
    assert_true(is_registered());
    write_watch_leave(second);
    assert_false(is_registered());
    /* Also what the program may not write to at that moment. */
    const uint64_t third = write_watch_begin(at(0), at(10));
    assert_int_equal(mprotect(base, bytes, PROT_READ), 0);
    write_watch_leave(third);
    assert_false(is_registered());
    assert_int_equal(mprotect(base, bytes, PROT_READ | PROT_WRITE), 0);
}

/* The program has unmapped the middle of what was watched. */
static void what_is_behind_a_hole_is_released(void **state)
{
    (void)state;
    const uint64_t watch = watch_all();
    assert_int_equal(munmap((void *)at(20), 10 * page), 0);
    write_watch_leave(watch);
    struct uffd_wp other;
    assert_null(uffd_wp_open(&other));
    assert_true(uffd_wp_register(&other, at(0), at(20)));
    assert_true(uffd_wp_register(&other, at(30), at(PAGES)));
    uffd_wp_close(&other);
}

/* ---- A fork's child, and descriptors that are closed: last ---- */

static void a_child_begins_anew(void **state)
{
    int status;
    (void)state;
    const uint64_t watch = watch_all();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        forks_child();
        const bool gone = !write_watch_unchanged(watch);
        memset(base, 5, bytes);
        const uint64_t own = write_watch_begin(at(0), at(PAGES));
        const bool clean = write_watch_unchanged(own);
        store();
        _exit(!(gone && clean && !write_watch_unchanged(own)));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(write_watch_unchanged(watch));
    store();
    assert_false(write_watch_unchanged(watch));
    write_watch_leave(watch);
}

static void closed_descriptors_are_noticed(void **state)
{
    int files[300];
    (void)state;
    const uint64_t watch = watch_all();
    close_range(3, ~0u, 0);
    for (int i = 0; i < 300; i++) /* others under the same numbers */
        files[i] = open("/dev/null", O_RDONLY);
    assert_false(write_watch_unchanged(watch));
    assert_non_null(strstr(write_watch_why_not(), "closed a descriptor"));
    assert_true(write_watch_begin(at(0), at(1)) == 0);
    write_watch_leave(watch);
    memset(base, 1, bytes);
    for (int i = 0; i < 300; i++)
        close(files[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_writer_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(who_only_reads_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(pages_that_cannot_be_read_are_not_clean, begin, end),
        cmocka_unit_test_setup_teardown(pages_beside_it_do_not_count, begin, end),
        cmocka_unit_test_setup_teardown(a_later_watch_does_not_hide_a_write, begin, end),
        cmocka_unit_test_setup_teardown(the_end_of_a_watch_leaves_the_others, begin, end),
        cmocka_unit_test_setup_teardown(there_is_an_end_to_watches, begin, end),
        cmocka_unit_test_setup_teardown(threads_watch_at_once, begin, end),
        cmocka_unit_test_setup_teardown(memory_of_others_is_not_watched, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_watches_itself_is_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_watched_beside_asynchronous_input, begin, end),
        cmocka_unit_test_setup_teardown(mappings_stay_whole, begin, end),
        cmocka_unit_test_setup_teardown(released_memory_is_ordinary, begin, end),
        cmocka_unit_test_setup_teardown(what_is_behind_a_hole_is_released, begin, end),
        cmocka_unit_test_setup_teardown(a_child_begins_anew, begin, end),
        cmocka_unit_test_setup_teardown(closed_descriptors_are_noticed, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
