/*
 * The settings, as an environment has them: lines NAME=value, each a variable. Launchers' variables
 * among them.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "base/host/ranks.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "fuzz.h"

/* Variables that lead to files: what is read there is not of this test. */
static int names_a_file(const char *name)
{
    return strcmp(name, "ACCEL_CONFIG") == 0 || strcmp(name, "HOME") == 0 ||
           strcmp(name, "XDG_CONFIG_HOME") == 0;
}

/* Not by setenv(), which keeps all values that it has ever had. The variables stay in the text. */
static char *variables[1024];

static void set_environment(char *text)
{
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line && count + 1 < sizeof variables / sizeof *variables;
         line = strtok(NULL, "\n")) {
        char *equals = strchr(line, '=');
        if (!equals || equals == line)
            continue;
        *equals = 0;
        if (!names_a_file(line))
            variables[count++] = line;
        *equals = '=';
    }
    variables[count] = NULL;
    environ = variables;
}

static void check_devices(const struct accel_devices *devices)
{
    FUZZ_CHECK(devices->kind == ACCEL_DEVICES_LIST ? devices->count >= 1 : devices->count == 0);
    FUZZ_CHECK(devices->count <= ACCEL_DEVICES_MAX);
    for (int i = 0; i < devices->count; i++) {
        FUZZ_CHECK(devices->number[i] >= 0 && devices->number[i] < ACCEL_DEVICES_MAX);
        for (int j = 0; j < i; j++)
            FUZZ_CHECK(devices->number[i] != devices->number[j]);
    }
}

static void check_ranks(void)
{
    struct accel_ranks ranks;
    ranks_read(&ranks);
    FUZZ_CHECK(ranks.rank >= 0 && ranks.size >= 1 && ranks.mpi == (ranks.size > 1));
    FUZZ_CHECK(ranks.local_rank >= 0 && ranks.local_rank < ranks.local_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct settings_sources sources = {NULL, "a-program", false, false};
    struct accel_settings settings;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    set_environment(text);
    settings_read_from(&settings, &sources);
    check_ranks();
    variables[0] = NULL;
    free(text); /* the settings have copies */
    FUZZ_CHECK(settings.memory_share > 0 && settings.memory_share <= 1);
    FUZZ_CHECK(settings.memory_bytes >= 0);
    FUZZ_CHECK(settings.on || (!settings.log && !settings.log_file && !settings.summary));
    check_devices(&settings.devices);
    settings_check_routines(&settings, accel_routines, accel_routine_count);
    for (uint32_t i = 0; i < accel_routine_count; i += 7) {
        pattern_matches(&settings.gpu_routines, &accel_routines[i]);
        pattern_matches(&settings.cpu_routines, &accel_routines[i]);
    }
    complaints_say();
    return 0;
}
