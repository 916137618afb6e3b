/*
 * A calibration, as bytes: as they are, and with the right checksum behind them, which brings them
 * to the parser. What it finds must make estimates that are numbers, and a file that is changed
 * must keep them.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "dispatch/decide.h"
#include "dispatch/cost/calibration.h"
#include "ops/typical.h"
#include "fuzz.h"

static char folder[32], path[64];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

/* In memory where that can be had: the file is written, and synchronised, for each input. */
static void make_folder(void)
{
    strcpy(folder,
           access("/dev/shm", W_OK) == 0 ? "/dev/shm/accel-fuzz-XXXXXX" : "/tmp/accel-fuzz-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/model", folder);
    atexit(remove_folder);
}

static void write_file(const uint8_t *data, size_t size, bool checked)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size)
        abort();
    if (checked)
        fprintf(file, "checksum=%016llx\n", (unsigned long long)XXH3_64bits(data, size));
    if (fclose(file) != 0)
        abort();
}

static void check_curve(const struct model_curve *curve, const struct accel_routine *routine)
{
    FUZZ_CHECK(curve->points >= 0 && curve->points <= MODEL_POINTS);
    for (int64_t n = 1; n <= 65536; n *= 256) {
        const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, n};
        struct accel_call call;
        struct model_work work;
        shape_typical(&call, routine, size);
        model_work_of(&call, curve->device, &work);
        double ms = model_ms(curve, &work);
        FUZZ_CHECK(isfinite(ms) && ms >= 0);
    }
}

static void check_section(const struct calibration *file, const struct calibration_section *section)
{
    FUZZ_CHECK(section->text >= file->text &&
               section->text + section->length <= file->text + file->length);
    FUZZ_CHECK(calibration_section_value(section, "up_gbps") >= 0);
    FUZZ_CHECK(calibration_section_value(section, "down_gbps") >= 0);
    for (int i = 0; i < ACCEL_DTYPES; i++) {
        struct block_paces paces;
        calibration_section_paces(section, (enum accel_dtype)i, &paces);
        for (int64_t rows = 1; rows < 1 << 20; rows *= 2)
            FUZZ_CHECK(block_pace(&paces, rows) >= PACE_SLOWEST &&
                       block_pace(&paces, rows) <= PACE_FASTEST);
    }
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct model_rates rates = model_cpu_rates(4);
        struct model_curve curve;
        model_nominal_cpu(&curve, &accel_routines[i], &rates);
        calibration_section_curve(section, &accel_routines[i], &curve);
        check_curve(&curve, &accel_routines[i]);
        curve = (struct model_curve){.points = 0}; /* with no terms to fall back to */
        if (calibration_section_curve(section, &accel_routines[i], &curve))
            check_curve(&curve, &accel_routines[i]);
    }
}

/* Returns how many sections of CPUs it has. */
static int look_into(const struct calibration *file)
{
    struct calibration rest = *file;
    struct calibration_section section;
    int threads, count = 0;
    for (; calibration_next_cpu(&rest, "[cpu \"c\"", "l", &threads, &section); count++) {
        FUZZ_CHECK(threads >= 1);
        check_section(file, &section);
    }
    if (calibration_find(file, "[", true, &section))
        check_section(file, &section);
    if (calibration_find_gpu(file, "h200", &section))
        check_section(file, &section);
    if (calibration_find(file, "[cpu \"c\" threads=2 library=\"l\"]", false, &section))
        check_section(file, &section);
    return count;
}

/* A section that is added is there, the others stay. */
static void change(int sections)
{
    static const char *const key = "[gpu \"added\" cuda=13.0 cublas=130100]", *const body =
                                                                                  "up_gbps=5\n";
    struct calibration file;
    struct calibration_section section;
    FUZZ_CHECK(!calibration_put(path, &key, &body, NULL, 1, true));
    FUZZ_CHECK(!calibration_open(&file, path));
    FUZZ_CHECK(calibration_find(&file, key, false, &section));
    FUZZ_CHECK(calibration_section_value(&section, "up_gbps") == 5);
    FUZZ_CHECK(look_into(&file) == sections);
    calibration_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!folder[0])
        make_folder();
    for (int checked = 0; checked <= 1; checked++) {
        struct calibration file;
        int sections = 0;
        write_file(data, size, checked);
        const char *wrong = calibration_open(&file, path);
        FUZZ_CHECK(!wrong == (file.text != NULL));
        if (wrong)
            continue;
        sections = look_into(&file);
        calibration_close(&file);
        change(sections);
    }
    return 0;
}
