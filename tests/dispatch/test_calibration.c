#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "dispatch/cost/calibration.h"
#include "tests/lib/routine.h"

static char folder[] = "/tmp/accel-model-XXXXXX";
static char path[64];

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

static const char *put(const char *key, const char *body)
{
    return calibration_put(path, &key, &body, NULL, 1, true);
}

static void assert_wrong(const char *part)
{
    struct calibration file;
    const char *wrong = calibration_open(&file, path);
    assert_non_null(wrong);
    assert_null(file.text);
    if (!strstr(wrong, part))
        fail_msg("\"%s\" does not say \"%s\"", wrong, part);
}

static void keys(void **state)
{
    char key[CALIBRATION_KEY_BYTES], prefix[CALIBRATION_KEY_BYTES], long_name[1000];
    (void)state;
    calibration_cpu_key(key, "libx.so 12", 16);
    calibration_cpu_prefix(prefix);
    assert_memory_equal(key, prefix, strlen(prefix));
    assert_non_null(strstr(key, " threads=16 library=\"libx.so 12\"]"));
    calibration_gpu_key(key, "NVIDIA \"x\"\n]", 13010, 130100);
    assert_string_equal(key, "[gpu \"NVIDIA _x__]\" cuda=13.1 cublas=130100]");
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    calibration_cpu_key(key, long_name, 1);
    assert_true(strlen(key) < sizeof key);
    assert_int_equal(key[strlen(key) - 1], ']');
}

static void written_and_read(void **state)
{
    struct calibration file;
    struct calibration_section section;
    struct model_curve curve = {.points = 0};
    (void)state;
    unlink(path);
    assert_ptr_equal(calibration_open(&file, path), calibration_missing);
    assert_null(put("[cpu \"one\"]", "dgemm 64x64x64:0.5 128x128x128:2.5\ndgetrf 10x20:1\n"));
    assert_null(put("[gpu \"two\"]", "up_gbps=21.5\ndown_gbps=19\ndgemm 8x8x8:0.02\n"));
    assert_null(put("[cpu \"three\"]", "dgemm 64x64x64:7\n"));
    /* In place of the old */
    assert_null(put("[cpu \"one\"]", "dgemm 64x64x64:0.75 128x128x128:3\n"));
    assert_null(calibration_open(&file, path));
    assert_true(calibration_find(&file, "[cpu \"one\"]", false, &section));
    assert_true(calibration_section_curve(&section, routine("dgemm"), &curve));
    assert_int_equal(curve.points, 2);
    assert_false(calibration_section_curve(&section, routine("dgetrf"), &curve));
    assert_false(calibration_section_curve(&section, routine("sgemm"), &curve));
    assert_true(calibration_section_value(&section, "up_gbps") == 0);
    assert_true(calibration_find(&file, "[gpu \"tw", true, &section));
    assert_false(calibration_find(&file, "[gpu \"tw", false, &section));
    assert_true(calibration_section_value(&section, "up_gbps") == 21.5);
    assert_true(calibration_section_value(&section, "down_gbps") == 19);
    assert_false(calibration_find(&file, "[gpu \"none\"]", false, &section));
    calibration_close(&file);
}

/* Lines that no writer of ours makes are no figures, and do no harm. */
static void lines_that_are_none(void **state)
{
    static const char *const bodies[] = {"dgemm 64x64:1\n",
                                         "dgemm 64x64x64x64:1\n",
                                         "dgemm 64x64x64\n",
                                         "dgemm 64x64x64:\n",
                                         "dgemm 64x64x64:0\n",
                                         "dgemm 64x64x64:-1\n",
                                         "dgemm \n",
                                         "dgemm\n",
                                         "dgemm 64x64x64:1e5\n",
                                         "dgemm 64x64x64:nan\n",
                                         "dgemm 0x1x1:1\n",
                                         "dgemm x:1\n",
                                         "dgemm 64x64x64:1 \n",
                                         "dgemm 64x64x64:1  64x64x64:1\n",
                                         "dgemm 99999999999999999999x1x1:1\n",
                                         "dgemm 9999999999x1x1:1\n"};
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct calibration file;
        struct calibration_section section;
        struct model_curve curve = {.points = 0};
        unlink(path);
        assert_null(put("[cpu \"one\"]", bodies[i]));
        assert_null(calibration_open(&file, path));
        assert_true(calibration_find(&file, "[cpu \"one\"]", false, &section));
        if (calibration_section_curve(&section, routine("dgemm"), &curve))
            fail_msg("taken: %s", bodies[i]);
        calibration_close(&file);
    }
}

/* Of more points than a curve has room for none is taken: whoever wrote that is not we. */
static void too_many_points(void **state)
{
    char body[16 * (MODEL_POINTS + 2)] = "dgemm";
    struct calibration file;
    struct calibration_section section;
    struct model_curve curve = {.points = 0};
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        body[5] = 0;
        for (int i = 0; i < MODEL_POINTS + extra; i++)
            sprintf(body + strlen(body), " %dx1x1:1", i + 1);
        strcat(body, "\n");
        unlink(path);
        assert_null(put("[cpu \"one\"]", body));
        assert_null(calibration_open(&file, path));
        assert_true(calibration_find(&file, "[cpu \"one\"]", false, &section));
        assert_int_equal(calibration_section_curve(&section, routine("dgemm"), &curve), extra == 0);
        calibration_close(&file);
    }
}

static char *read_whole(size_t *length)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *length = (size_t)st.st_size;
    return bytes;
}

static void write_whole(const char *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
}

/* Every byte changed in every bit, every length cut, every byte left out: the damage is always
 * seen. */
static void every_byte_damaged(void **state)
{
    size_t length;
    (void)state;
    unlink(path);
    assert_null(put("[cpu \"one\"]", "dgemm 64x64x64:0.5 128x128x128:2.5\n"));
    assert_null(put("[gpu \"two\"]", "up_gbps=21.5\ndgemm 8x8x8:0.02\n"));
    char *bytes = read_whole(&length);
    struct calibration file;
    for (size_t i = 0; i < length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (char)(1 << bit);
            write_whole(bytes, length);
            assert_non_null(calibration_open(&file, path));
            bytes[i] ^= (char)(1 << bit);
        }
        write_whole(bytes, i);
        assert_non_null(calibration_open(&file, path));
        char *less = malloc(length);
        memcpy(less, bytes, i);
        memcpy(less + i, bytes + i + 1, length - i - 1);
        write_whole(less, length - 1);
        assert_non_null(calibration_open(&file, path));
        free(less);
    }
    write_whole(bytes, length);
    assert_null(calibration_open(&file, path)); /* it was whole all along */
    calibration_close(&file);
    free(bytes);
}

static void other_files(void **state)
{
    (void)state;
    write_whole("accel-model 2\nchecksum=0123456789abcdef\n", 40);
    assert_wrong("another version");
    write_whole("hello\n", 6);
    assert_wrong("no calibration");
    write_whole("", 0);
    assert_wrong("empty");
    write_whole("accel-model 1\nchecksum=0123456789abcdef\n", 40);
    assert_wrong("checksum");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_wrong("regular");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* does not wait for a writer */
    assert_wrong("regular");
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    assert_wrong("opened");
    unlink(path);
}

/* A damaged file and an empty one are replaced, folders are made; where nothing can be written the
 * old file stays. */
static void putting(void **state)
{
    struct calibration file;
    const char *key = "[cpu \"one\"]", *body = "dgemm 64x64x64:1\n";
    char deep[96];
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } replaced[] = {{"", 0}, {"\0\0\0\0\0\0\0\0", 8}, {"\0", 1}, {"accel-model 1\nhello\n", 20}};
    for (int i = 0; i < 4; i++) {
        write_whole(replaced[i].bytes, replaced[i].length);
        assert_null(put(key, body));
        assert_null(calibration_open(&file, path));
        calibration_close(&file);
    }
    snprintf(deep, sizeof deep, "%s/a/b/model", folder);
    assert_null(calibration_put(deep, &key, &body, NULL, 1, true));
    assert_null(calibration_open(&file, deep));
    calibration_close(&file);
    snprintf(deep, sizeof deep, "%s/model/below", folder); /* below a file */
    assert_non_null(calibration_put(deep, &key, &body, NULL, 1, true));
    assert_int_equal(errno, ENOTDIR);
    assert_null(calibration_open(&file, path));
    calibration_close(&file);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* nothing can be renamed to it */
    assert_non_null(calibration_put(path, &key, &body, NULL, 1, true));
    assert_int_equal(rmdir(path), 0);
    /* Of no sections: a try, which leaves all as it was. */
    assert_int_equal(mkdir(path, 0700), 0);
    assert_non_null(calibration_put(path, NULL, NULL, NULL, 0, true));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(rmdir(path), 0);
    assert_null(calibration_put(path, NULL, NULL, NULL, 0, true));
    assert_ptr_equal(calibration_open(&file, path), calibration_missing);
    assert_null(put(key, body));
    assert_null(calibration_put(path, NULL, NULL, NULL, 0, true));
    assert_null(calibration_open(&file, path));
    assert_true(calibration_has_sections(&file));
    calibration_close(&file);
    unlink(path);
    snprintf(deep, sizeof deep, "ls %s/model.* >/dev/null 2>&1", folder);
    assert_int_not_equal(system(deep), 0); /* nothing is left aside */
}

/* A link stays; no device, no file of another version, none that is something else, and none that
 * may not be read gives way. */
static void what_is_not_replaced(void **state)
{
    struct calibration file;
    struct stat st;
    const char *key = "[cpu \"one\"]", *body = "dgemm 64x64x64:1\n";
    char link[96];
    (void)state;
    write_whole("accel-model 2\nchecksum=0\n", 25);
    assert_non_null(put(key, body));
    assert_wrong("another version");
    write_whole("what a user has written\n", 24);
    assert_non_null(put(key, body));
    assert_wrong("it is no calibration");
    assert_int_equal(truncate(path, ((off_t)64 << 20) + 1), 0);
    assert_non_null(put(key, body));
    assert_wrong("too long");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_non_null(put(key, body));
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    unlink(path);
    assert_null(put(key, body));
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("model", link), 0);
    const char *other = "[cpu \"two\"]";
    assert_null(calibration_put(link, &other, &body, NULL, 1, true));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_null(calibration_open(&file, path));
    struct calibration_section section;
    assert_true(calibration_find(&file, key, false, &section));
    assert_true(calibration_find(&file, other, false, &section));
    calibration_close(&file);
    unlink(path); /* what it leads to need not be there yet */
    assert_null(calibration_put(link, &other, &body, NULL, 1, true));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_null(calibration_open(&file, path));
    calibration_close(&file);
    unlink(link);
    unlink(path);
}

/* What `accel calibrate` has written since this process read the file stays; what others have
 * learned from the same calibration does not. */
static void newer_sections_stay(void **state)
{
    static const char *const old = "calibrated=1790000001\ndgemm 64x64x64:1\n",
                             *const others = "calibrated=1790000001\ndgemm 64x64x64:5\n",
                             *const newer = "calibrated=1790000002\ndgemm 64x64x64:2\n",
                             *const learned = "calibrated=1790000001\ndgemm 64x64x64:3\n";
    const char *const there[] = {old, others, newer};
    static const char *const keys[] = {"[cpu \"one\"]", "[cpu \"two\"]"};
    const struct calibration_section was = {old, strlen(old)};
    const struct calibration_section *const seen[] = {&was, NULL};
    const char *const bodies[] = {learned, learned};
    struct calibration file;
    struct calibration_section section;
    (void)state;
    unlink(path);
    for (int i = 0; i < 3; i++) {
        assert_null(put(keys[0], there[i]));
        assert_null(calibration_put(path, keys, bodies, seen, 2, true));
        assert_null(calibration_open(&file, path));
        assert_true(calibration_find(&file, keys[0], false, &section));
        assert_memory_equal(section.text, i == 2 ? newer : learned, section.length);
        assert_true(calibration_find(&file, keys[1], false, &section));
        assert_memory_equal(section.text, learned, section.length);
        calibration_close(&file);
    }
    unlink(path);
}

/* ---- A GPU by its name ---- */

/* What is measured of the GPU that a name means. */
static double speed_of(const char *name)
{
    struct calibration file;
    struct calibration_section section;
    assert_null(calibration_open(&file, path));
    double speed = calibration_find_gpu(&file, name, &section)
                       ? calibration_section_value(&section, "up_gbps")
                       : 0;
    calibration_close(&file);
    return speed;
}

/* Slices of cards stand before the cards. */
static void a_slice_is_not_the_card(void **state)
{
    static const char *const names[] = {"NVIDIA H200 MIG 1g.18gb", "NVIDIA H200 NVL", "NVIDIA H200",
                                        "NVIDIA A100 MIG 2g.10gb"};
    static const char *const bodies[] = {"up_gbps=1\n", "up_gbps=2\n", "up_gbps=3\n",
                                         "up_gbps=4\n"};
    char text[4][CALIBRATION_KEY_BYTES];
    const char *in_order[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        calibration_gpu_key(text[i], names[i], 13000, 130000);
        in_order[i] = text[i];
    }
    assert_null(calibration_put(path, in_order, bodies, NULL, 4, true));
    assert_true(speed_of("H200") == 3); /* not the first that has the word */
    assert_true(speed_of("nvidia h200") == 3);
    assert_true(speed_of("H200 NVL") == 2);
    assert_true(speed_of("h200 mig 1g.18gb") == 1);
    assert_true(speed_of("MIG 1g.18gb") == 1);
    assert_true(speed_of("NVL") == 2);
    assert_true(speed_of("A100") == 0); /* of the card itself nothing is known */
    assert_true(speed_of("A100 MIG") == 4);
    unlink(path);
}

/* ---- Solutions by a triangle ---- */

static void names_of_solutions(void **state)
{
    (void)state;
    assert_string_equal(calibration_solve_names(ACCEL_FLOAT64, false).gbps, "solve_d_blas_gbps");
    assert_string_equal(calibration_solve_names(ACCEL_FLOAT64, false).row_ms,
                        "solve_d_blas_row_ms");
    assert_string_equal(calibration_solve_names(ACCEL_FLOAT32, true).gbps, "solve_s_own_gbps");
}

/* ---- Algorithms for singular values ---- */

static struct calibration_section section_of(const char *text)
{
    return (struct calibration_section){text, strlen(text)};
}

static void svd_of_the_nearest_order(void **state)
{
    const struct calibration_section section = section_of(
        "up_gbps=3\nsvd_d_vectors 48:gesvdj 192:gesvd 800:gesvdp\nsvd_z_values 64:gesvdp\n");
    enum gpu_svd algorithm[GPU_SVD_OCTAVES];
    (void)state;
    assert_true(calibration_section_svd(&section, ACCEL_FLOAT64, true, algorithm));
    assert_int_equal(algorithm[gpu_svd_octave(1)], GPU_SVD_GESVDJ);
    assert_int_equal(algorithm[gpu_svd_octave(63)], GPU_SVD_GESVDJ);
    assert_int_equal(algorithm[gpu_svd_octave(128)], GPU_SVD_GESVD);
    assert_int_equal(algorithm[gpu_svd_octave(255)], GPU_SVD_GESVD);
    assert_int_equal(algorithm[gpu_svd_octave(512)], GPU_SVD_GESVDP);
    assert_int_equal(algorithm[gpu_svd_octave(INT64_MAX)], GPU_SVD_GESVDP);
    assert_true(calibration_section_svd(&section, ACCEL_COMPLEX128, false, algorithm));
    for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++)
        assert_int_equal(algorithm[octave], GPU_SVD_GESVDP);
    assert_false(calibration_section_svd(&section, ACCEL_FLOAT64, false, algorithm));
}

static void svd_lines_that_are_none(void **state)
{
    static const char *const wrong[] = {"svd_d_vectors \n",           "svd_d_vectors 48\n",
                                        "svd_d_vectors 48:\n",        "svd_d_vectors 48:qr\n",
                                        "svd_d_vectors 0:gesvd\n",    "svd_d_vectors 48:gesvd \n",
                                        "svd_d_vectors 48:gesvdpp\n", "svd_d_vectors -1:gesvd\n"};
    enum gpu_svd algorithm[GPU_SVD_OCTAVES];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct calibration_section section = section_of(wrong[i]);
        assert_false(calibration_section_svd(&section, ACCEL_FLOAT64, true, algorithm));
    }
}

/* ---- Paces of blocks ---- */

static void paces_of_a_type(void **state)
{
    const struct calibration_section section =
        section_of("up_gbps=3\npace_d 640:0.9 1536:1.25 4096:0.5\npace_c 768:2\n");
    struct block_paces paces;
    (void)state;
    assert_true(calibration_section_paces(&section, ACCEL_FLOAT64, &paces));
    assert_true(fabs(block_pace(&paces, 640) - 0.9) < 1e-6);
    assert_true(block_pace(&paces, 1536) == 1.25 && block_pace(&paces, 4096) == 0.5);
    assert_true(block_pace(&paces, 1024) == 1);
    assert_true(calibration_section_paces(&section, ACCEL_COMPLEX64, &paces));
    assert_true(block_pace(&paces, 640) == 1 && block_pace(&paces, 768) == 2);
    assert_false(calibration_section_paces(&section, ACCEL_FLOAT32, &paces));
    assert_true(block_pace(&paces, 768) == 1);
}

static void pace_lines_that_are_none(void **state)
{
    static const char *const wrong[] = {
        "pace_d \n",           "pace_d 768\n",   "pace_d 768:\n",   "pace_d 768:x\n",
        "pace_d 700:1\n",      "pace_d 512:1\n", "pace_d 4224:1\n", "pace_d 768:0.4\n",
        "pace_d 768:2.1\n",    "pace_d 768:0\n", "pace_d 768:1 \n", "pace_d -768:1\n",
        "pace_d 768:1 700:1\n"};
    struct block_paces paces;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct calibration_section section = section_of(wrong[i]);
        assert_false(calibration_section_paces(&section, ACCEL_FLOAT64, &paces));
        assert_true(block_pace(&paces, 768) == 1);
    }
}

static void measured_lines_are_kept(void **state)
{
    const struct calibration_section section =
        section_of("calibrated=1790000001\nsvd_s_values 48:gesvdj\ndgemm 8x8x8:1\npace_s "
                   "640:1.5\nshort_up_ms=0.00006525\nsvd_s_vectors 48:gesvd\n");
    struct string_buffer body = {NULL, 0, 0, false};
    (void)state;
    calibration_put_measured(&body, &section);
    string_buffer_add(&body, "", 1);
    assert_string_equal(body.text, "calibrated=1790000001\nsvd_s_values 48:gesvdj\npace_s "
                                   "640:1.5\nshort_up_ms=0.00006525\nsvd_s_vectors 48:gesvd\n");
    free(body.text);
}

/* Processes that write at the same time: none loses what another one wrote. */
static void many_writers(void **state)
{
    enum { WRITERS = 12 };
    (void)state;
    unlink(path);
    for (int i = 0; i < WRITERS; i++) {
        if (fork() == 0) {
            char key[32];
            snprintf(key, sizeof key, "[cpu \"%d\"]", i);
            _exit(put(key, "dgemm 64x64x64:1\n") ? 1 : 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct calibration file;
    assert_null(calibration_open(&file, path));
    for (int i = 0; i < WRITERS; i++) {
        char key[32];
        struct calibration_section section;
        snprintf(key, sizeof key, "[cpu \"%d\"]", i);
        assert_true(calibration_find(&file, key, false, &section));
    }
    calibration_close(&file);
}

/* In a process of its own: its status, or the signal that has ended it. */
static int put_with_limit(rlim_t bytes)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {bytes, bytes};
        setrlimit(RLIMIT_FSIZE, &limit);
        const char *wrong = put("[cpu \"two\"]", "dgemm 8x8x8:1\n");
        sigset_t pending;
        sigpending(&pending);
        _exit(!sigisemptyset(&pending) ? 3 : !wrong ? 0 : errno == EFBIG ? 1 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void a_limit_on_files(void **state)
{
    struct calibration file;
    struct calibration_section section;
    (void)state;
    unlink(path);
    assert_null(put("[cpu \"one\"]", "dgemm 64x64x64:0.75\n"));
    assert_int_equal(put_with_limit(20), 1);
    assert_null(calibration_open(&file, path)); /* the old one */
    assert_true(calibration_find(&file, "[cpu \"one\"]", false, &section));
    assert_false(calibration_find(&file, "[cpu \"two\"]", false, &section));
    calibration_close(&file);
    assert_int_equal(put_with_limit(2000), 0);
    assert_null(calibration_open(&file, path));
    assert_true(calibration_find(&file, "[cpu \"two\"]", false, &section));
    calibration_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(too_many_points),
        cmocka_unit_test(every_byte_damaged),
        cmocka_unit_test(other_files),
        cmocka_unit_test(putting),
        cmocka_unit_test(what_is_not_replaced),
        cmocka_unit_test(newer_sections_stay),
        cmocka_unit_test(a_slice_is_not_the_card),
        cmocka_unit_test(names_of_solutions),
        cmocka_unit_test(svd_of_the_nearest_order),
        cmocka_unit_test(svd_lines_that_are_none),
        cmocka_unit_test(paces_of_a_type),
        cmocka_unit_test(pace_lines_that_are_none),
        cmocka_unit_test(measured_lines_are_kept),
        cmocka_unit_test(many_writers),
        cmocka_unit_test(a_limit_on_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
