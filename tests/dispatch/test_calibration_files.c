/*
 * A calibration's file where the system refuses: each call of libc that fails leaves the old file
 * as it was, no draft, no open file and no memory, and is told. For a program that is linked with
 * these calls wrapped (tests/tests.mk).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "dispatch/cost/calibration_file.h"

/* ---- What fails ---- */

enum failing {
    NOTHING,
    MALLOC,
    REALLOC,
    FCHMOD,
    FSYNC,
    RENAME,
    OPENAT,
    MKOSTEMP,
    LOCK,
    NO_LOCKS,
    MKDIR
};
static enum failing failing;
static int pauses, synced, refused;

#define WRAPPED(type, name, parameters, arguments, kind, error, result)                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        if (failing != (kind))                                                                     \
            return __real_##name arguments;                                                        \
        errno = (error);                                                                           \
        return (result);                                                                           \
    }
WRAPPED(void *, malloc, (size_t size), (size), MALLOC, ENOMEM, NULL)
WRAPPED(void *, realloc, (void *old, size_t size), (old, size), REALLOC, ENOMEM, NULL)
WRAPPED(int, fchmod, (int fd, mode_t mode), (fd, mode), FCHMOD, EPERM, -1)
WRAPPED(int, rename, (const char *from, const char *to), (from, to), RENAME, EXDEV, -1)
WRAPPED(int, mkostemp, (char *path, int flags), (path, flags), MKOSTEMP, EROFS, -1)

/* Which takes long on some machines. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    synced++;
    errno = EIO;
    return failing == FSYNC ? -1 : 0;
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    errno = EOPNOTSUPP;
    return failing == OPENAT ? -1 : __real_openat(folder, path, flags, 0600);
}

/* Below the first folder that cannot be made there is no place for others. */
int __real_mkdir(const char *name, mode_t mode);
int __wrap_mkdir(const char *name, mode_t mode);
int __wrap_mkdir(const char *name, mode_t mode)
{
    struct stat st;
    if (failing != MKDIR || stat(name, &st) == 0)
        return __real_mkdir(name, mode);
    errno = refused++ == 0 ? EROFS : ENOENT;
    return -1;
}

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    errno = failing == LOCK ? EWOULDBLOCK : ENOLCK;
    return failing == LOCK || failing == NO_LOCKS ? -1 : __real_flock(fd, operation);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    assert_true(time->tv_sec == 0 && time->tv_nsec == 2000000);
    pauses++;
    return 0;
}

/* ---- Files ---- */

static char folder[] = "/tmp/accel-files-XXXXXX";
static char path[64];
static const char *const old_key = "[cpu \"one\"]", *const old_body = "dgemm 1x1x1:1\n";
static const char *const new_key = "[cpu \"two\"]", *const new_body = "dgemm 2x2x2:2\n";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && snprintf(path, sizeof path, "%s/model", folder) > 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int files_there(void)
{
    char command[128];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *const list = popen(command, "r");
    int count = -1;
    assert_non_null(list);
    assert_int_equal(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

/* Returns the lowest number that an opened file would have. */
static int next_fd(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

static bool is_there(const char *key)
{
    struct calibration file;
    struct calibration_section section;
    assert_null(calibration_open(&file, path));
    const bool is = calibration_find(&file, key, false, &section);
    calibration_close(&file);
    assert_true(!file.text && file.length == 0);
    return is;
}

static void write_whole(const char *text, size_t length)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    close(fd);
}

static const char *put(const char *key, const char *body, bool patient)
{
    return calibration_put(path, &key, &body, NULL, 1, patient);
}

/* ---- Each failure ---- */

static const char *fail_with(enum failing what, const char *key, const char *body, int count)
{
    errno = 0;
    failing = what;
    const char *const wrong = calibration_put(path, &key, &body, NULL, count, false);
    const int error = errno;
    failing = NOTHING;
    errno = error;
    return wrong;
}

static void a_failure_leaves_the_old_file(void **state)
{
    static const struct {
        enum failing what;
        int error;
        const char *says;
    } cases[] = {{MALLOC, -1, "there is no memory for it"},
                 {REALLOC, ENOMEM, "there is no memory for it"},
                 {FCHMOD, EPERM, "the file cannot be written"},
                 {FSYNC, EIO, "the file cannot be written"},
                 {RENAME, EXDEV, "the file cannot be written"},
                 {MKOSTEMP, EROFS, "the file cannot be made"},
                 {LOCK, EWOULDBLOCK, "another process writes it"}};
    (void)state;
    unlink(path);
    assert_null(put(old_key, old_body, true));
    const int fd = next_fd();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const wrong = fail_with(cases[i].what, new_key, new_body, 1);
        if (cases[i].error >= 0)
            assert_int_equal(errno, cases[i].error);
        assert_string_equal(wrong, cases[i].says);
        assert_int_equal(files_there(), 1);
        assert_true(is_there(old_key) && !is_there(new_key));
        assert_int_equal(next_fd(), fd);
    }
    assert_null(put(new_key, new_body, true));
    assert_true(is_there(old_key) && is_there(new_key));
    assert_int_equal(next_fd(), fd);
}

/* Of folders that are missing, the first that cannot be made is what is wrong; of one that is
 * there, or is no folder, what keeps it from being opened. */
static void a_folder_that_cannot_be_made(void **state)
{
    char below[100];
    (void)state;
    unlink(path);
    const int fd = next_fd();
    snprintf(below, sizeof below, "%s/some/more/model", folder);
    errno = 0;
    failing = MKDIR;
    refused = 0;
    const char *wrong = calibration_put(below, &new_key, &new_body, NULL, 1, true);
    const int error = errno;
    failing = NOTHING;
    assert_string_equal(wrong, "its folder cannot be made");
    assert_true(error == EROFS && refused == 2);
    assert_int_equal(files_there(), 0);
    write_whole("", 0);
    snprintf(below, sizeof below, "%s/model", path);
    assert_string_equal(calibration_put(below, &new_key, &new_body, NULL, 1, true),
                        "its folder cannot be made");
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(next_fd(), fd);
    unlink(path);
    snprintf(below, sizeof below, "%s/some/more/model", folder);
    assert_null(calibration_put(below, &new_key, &new_body, NULL, 1, true));
    assert_int_equal(unlink(below), 0);
    snprintf(below, sizeof below, "%s/some/more", folder);
    assert_int_equal(rmdir(below), 0);
    snprintf(below, sizeof below, "%s/some", folder);
    assert_int_equal(rmdir(below), 0);
}

/* A try finds what would fail, also where files without a name cannot be made, and leaves
 * nothing. */
static void a_try_leaves_nothing(void **state)
{
    (void)state;
    unlink(path);
    const int fd = next_fd();
    synced = 0;
    assert_null(fail_with(NOTHING, NULL, NULL, 0));
    assert_null(fail_with(OPENAT, NULL, NULL, 0));
    assert_int_equal(synced, 0);
    assert_string_equal(fail_with(FCHMOD, NULL, NULL, 0), "the file cannot be written");
    assert_int_equal(errno, EPERM);
    assert_null(fail_with(RENAME, NULL, NULL, 0)); /* it renames nothing */
    assert_null(fail_with(MKOSTEMP, NULL, NULL, 0));
    assert_int_equal(files_there(), 0);
    assert_null(put(old_key, old_body, true));
    assert_int_equal(synced, 1);
    assert_null(fail_with(OPENAT, NULL, NULL, 0));
    assert_int_equal(files_there(), 1);
    assert_true(is_there(old_key));
    assert_int_equal(next_fd(), fd);
}

/* It waits 20 ms, or 5 seconds; where there are no locks it does not wait. */
static void waits_for_the_lock(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++) {
        failing = LOCK;
        pauses = 0;
        assert_non_null(put(new_key, new_body, patient));
        failing = NOTHING;
        assert_int_equal(pauses, patient ? 2500 : 10);
    }
    unlink(path);
    pauses = 0;
    assert_null(fail_with(NO_LOCKS, new_key, new_body, 1));
    assert_true(pauses == 0 && is_there(new_key));
    /* Who has the lock keeps others out, and gives it back. */
    const int fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_string_equal(put(old_key, old_body, false), "another process writes it");
    assert_int_equal(flock(fd, LOCK_UN), 0);
    assert_null(put(old_key, old_body, false));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
}

/* What is wrong with a file that is not ours is no failure of the system. */
static void the_text_says_all(void **state)
{
    static const char *const texts[] = {"what a user has written\n", "accel-model 2\nchecksum=0\n"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        write_whole(texts[i], strlen(texts[i]));
        errno = EBUSY;
        const char *const wrong = put(new_key, new_body, true);
        assert_int_equal(errno, 0);
        assert_string_equal(wrong, i ? "it is of another version of libaccel, or damaged"
                                     : "it is no calibration");
    }
    unlink(path);
}

/* Who may not read it leaves it alone. */
static void a_file_of_another_user(void **state)
{
    int status;
    (void)state;
    unlink(path);
    assert_null(put(old_key, old_body, true));
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct calibration file;
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(2);
        const bool closed = calibration_open(&file, path) == calibration_closed;
        _exit(!closed || file.text || put(new_key, new_body, true) != calibration_closed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(is_there(old_key) && !is_there(new_key));
    assert_int_equal(chmod(folder, 0700), 0);
}

/* ---- What is written ---- */

static char *read_whole(void)
{
    static char text[4096];
    const int fd = open(path, O_RDONLY);
    const ssize_t length = read(fd, text, sizeof text - 1);
    assert_true(fd >= 0 && length > 0);
    close(fd);
    text[length] = 0;
    return text;
}

/* Others may read it, whatever the mask; sections that stay keep their place. */
static void the_whole_file(void **state)
{
    static const char *const keys[] = {"[a]", "[c]"}, *const bodies[] = {"x=5\n", ""};
    struct stat st;
    struct calibration file;
    (void)state;
    unlink(path);
    const mode_t mask = umask(077);
    assert_null(put("[a]", "x=1\n", true));
    assert_null(put("[b]", "x=2\ny=3\n", true));
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_memory_equal(read_whole(), "accel-model 1\n[a]\nx=1\n[b]\nx=2\ny=3\nchecksum=", 43);
    assert_null(calibration_put(path, keys, bodies, NULL, 2, true));
    char *const text = read_whole();
    assert_memory_equal(text, "accel-model 1\n[b]\nx=2\ny=3\n[a]\nx=5\n[c]\nchecksum=", 47);
    assert_true(strlen(text) == 47 + 16 + 1 && strspn(text + 47, "0123456789abcdef") == 16);
    const struct timespec times[2] = {{1790000001, 0}, {1790000002, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_null(calibration_open(&file, path));
    assert_true(file.time == 1790000002 && file.length == 38);
    assert_memory_equal(file.text, text, file.length);
    calibration_close(&file);
}

/* A section stays if it was calibrated at another time than the one that was seen: at a time, or
 * not at all. */
static void only_what_was_seen_is_replaced(void **state)
{
    static const char *const times[] = {"", "calibrated=1790000001\n", "calibrated=1790000002\n",
                                        "calibrated=179000000\n"};
    (void)state;
    for (int there = 0; there < 4; there++)
        for (int saw = -1; saw < 4; saw++) {
            char body[60];
            struct calibration file;
            struct calibration_section was, now;
            const struct calibration_section *seen = saw < 0 ? NULL : &was;
            const char *const learned = "dgemm 3x3x3:3\n";
            if (saw >= 0)
                was = (struct calibration_section){times[saw], strlen(times[saw])};
            snprintf(body, sizeof body, "dgemm 4x4x4:4\n%s", times[there]);
            unlink(path);
            assert_null(put(old_key, body, true));
            assert_null(calibration_put(path, &old_key, &learned, &seen, 1, true));
            assert_null(calibration_open(&file, path));
            assert_true(calibration_find(&file, old_key, false, &now));
            const bool replaced = there == (saw < 0 ? 0 : saw);
            const char *const expected = replaced ? learned : body;
            assert_int_equal(now.length, strlen(expected));
            assert_memory_equal(now.text, expected, now.length);
            calibration_close(&file);
        }
}

/* A link may lead to a folder that is not there yet, from the root on or from its own folder. */
static void links(void **state)
{
    char target[100], link[100], below[100];
    struct stat st;
    (void)state;
    unlink(path);
    for (int absolute = 0; absolute < 2; absolute++) {
        snprintf(link, sizeof link, "%s/link%d", folder, absolute);
        snprintf(target, sizeof target, "%s%smore%d/there", absolute ? folder : "",
                 absolute ? "/" : "", absolute);
        snprintf(below, sizeof below, "%s/more%d/there", folder, absolute);
        assert_int_equal(symlink(target, link), 0);
        assert_null(calibration_put(link, &new_key, &new_body, NULL, 1, true));
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(lstat(below, &st), 0);
        assert_true(S_ISREG(st.st_mode));
    }
}

/* 64 MB are read; if all of them are 0, as a power failure leaves them, they are replaced. */
static void the_longest_file(void **state)
{
    struct calibration file;
    (void)state;
    write_whole("", 0);
    assert_int_equal(truncate(path, (off_t)64 << 20), 0);
    assert_string_equal(calibration_open(&file, path), "it is empty");
    assert_null(put(new_key, new_body, true));
    assert_true(is_there(new_key));
    write_whole("\0\0\0x", 4);
    assert_string_equal(calibration_open(&file, path), "it is no calibration");
    write_whole("accel-model 1\n", 14); /* no line but the first */
    assert_non_null(calibration_open(&file, path));
    unlink(path);
}

/* Nothing that is opened, put or refused again and again takes more memory. */
static void no_memory_is_lost(void **state)
{
    size_t before = 0;
    (void)state;
    for (int n = 0; n < 20; n++) {
        write_whole("what a user has written\n", 24);
        put(new_key, new_body, true);
        unlink(path);
        put(new_key, new_body, true);
        put(new_key, new_body, true);
        fail_with(RENAME, new_key, new_body, 1);
        fail_with(NOTHING, NULL, NULL, 0);
        assert_true(is_there(new_key));
        if (n == 4)
            before = mallinfo2().uordblks;
    }
    assert_int_equal(mallinfo2().uordblks, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_leaves_nothing),
        cmocka_unit_test(a_failure_leaves_the_old_file),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(waits_for_the_lock),
        cmocka_unit_test(the_text_says_all),
        cmocka_unit_test(a_file_of_another_user),
        cmocka_unit_test(the_whole_file),
        cmocka_unit_test(only_what_was_seen_is_replaced),
        cmocka_unit_test(links),
        cmocka_unit_test(the_longest_file),
        cmocka_unit_test(no_memory_is_lost),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
