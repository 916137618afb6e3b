/*
 * A config file, as bytes: the lines there are, and the settings that they make.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/settings/config.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "fuzz.h"

/* A file in memory that has the bytes, by a path. */
static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("config", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0 ||
        pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    return path;
}

static void check_line(const struct config_line *line, int last, size_t size)
{
    FUZZ_CHECK(line->number > last);
    FUZZ_CHECK(line->value && strlen(line->value) <= size && !strchr(line->value, '\n'));
    if (line->name) {
        FUZZ_CHECK(*line->name && strlen(line->name) < size);
        FUZZ_CHECK(!line->name[strcspn(line->name, "= \t\r\n\"")]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = file_of(data, size);
    struct accel_settings settings;
    struct config_line line;
    int error, last = 0, lines = 0;
    const char *fault = config_load(path, &error);
    FUZZ_CHECK(!fault == !(size > CONFIG_BYTES_MAX || memchr(data, 0, size)));
    for (; config_next(&line); lines++) {
        check_line(&line, last, size);
        last = line.number;
    }
    FUZZ_CHECK(!fault || lines == 0);

    const struct settings_sources sources = {path, "a-program", false, false};
    clearenv();
    settings_read_from(&settings, &sources);
    FUZZ_CHECK(settings.memory_share > 0 && settings.memory_share <= 1);
    FUZZ_CHECK(settings.memory_bytes >= 0 && settings.devices.count <= ACCEL_DEVICES_MAX);
    FUZZ_CHECK(!settings.estimate && !settings.estimate_dir); /* in the environment alone */
    settings_check_routines(&settings, accel_routines, accel_routine_count);
    complaints_say();
    return 0;
}
