#include "setting.h"

#include <limits.h>
#include <string.h>

#include "base/text/spelling.h"

#define FIELD(name) offsetof(struct accel_settings, name)

const struct setting setting_table[] = {
    {"ACCEL", NO "," YES, "1", setting_read_switch, FIELD(on), ANYWHERE, false},
    {"ACCEL_LOG", NO "," YES ",2,json", "0", setting_read_choice, FIELD(log), ANYWHERE, false},
    {"ACCEL_LOG_FILE", "a path", "stderr", setting_read_path_pattern, FIELD(log_file), ANYWHERE,
     false},
    {"ACCEL_LOG_MIN_MS", "a number of milliseconds such as 0.5", "0", setting_read_ms,
     FIELD(log_min_ms), ANYWHERE, false},
    {"ACCEL_METRICS_DIR", "a folder", "", setting_read_path, FIELD(metrics_dir), ANYWHERE, false},
    {"ACCEL_TRACE", "a path", "", setting_read_path_pattern, FIELD(trace), ANYWHERE, false},
    {"ACCEL_SUMMARY", NO "," YES ",json", "0", setting_read_choice, FIELD(summary), ANYWHERE,
     false},
    {"ACCEL_POLICY", "auto,gpu,cpu", "auto", setting_read_choice, FIELD(policy), ANYWHERE, false},
    {"ACCEL_GPU", "names of routines", "", setting_read_string, FIELD(gpu_routines.text), ANYWHERE,
     false},
    {"ACCEL_CPU", "names of routines", "", setting_read_string, FIELD(cpu_routines.text), ANYWHERE,
     false},
    {"ACCEL_REQUIRE", "gpu,off|0|no|false", "off", setting_read_require, 0, ANYWHERE, true},
    {"ACCEL_START", "background,wait,program", "background", setting_read_start, FIELD(start),
     ANYWHERE, false},
    {"ACCEL_LEARN", NO "," YES, "0", setting_read_switch, FIELD(learn), ANYWHERE, false},
    {"ACCEL_ML", "1, 0, or names of libsvm, liblinear, xgboost, lightgbm", "1", setting_read_ml, 0,
     ANYWHERE, false},
    {"ACCEL_DEVICES", "auto, all, none, or numbers of devices such as 0,2, each once", "auto",
     setting_read_devices, 0, ANYWHERE, false},
    {"ACCEL_SERVER", "auto, off, or a socket's path", "auto", setting_read_server, FIELD(server),
     ANYWHERE, false},
    {"ACCEL_MEMORY",
     "a share such as 80%, or a size such as 500M or 12G; of bytes without a unit, 1048576 at "
     "least",
     "80%", setting_read_memory, 0, ANYWHERE, false},
    {"ACCEL_PRECISION",
     "native, emulated (double precision alone), tf32, bf16x9 (single alone); of one routine of "
     "products, as in ROUTINE:emulated",
     "native", setting_read_precision, 0, ANYWHERE, false},
    {"ACCEL_RESIDENT", "auto,hash,off|0|no|false", "auto", setting_read_choice, FIELD(resident),
     ANYWHERE, false},
    {"ACCEL_C2C", "auto,place,copy,migrate", "auto", setting_read_choice, FIELD(c2c), ANYWHERE,
     false},
    {"ACCEL_VERIFY", "off, all, or sample:N with N from 1 to 9999999999", "off",
     setting_read_verify, 0, ANYWHERE, true},
    {"ACCEL_VERIFY_ACTION", "warn,cpu,abort", "warn", setting_read_choice, FIELD(verify_action),
     ANYWHERE, true},
    {"ACCEL_MODEL", "a path", "accel/model in $XDG_CACHE_HOME or ~/.cache", setting_read_model,
     FIELD(model), ANYWHERE, false},
    {"ACCEL_EXCLUDE", "names of programs", "default", setting_read_exclude, 0, ANYWHERE, false},
    {"ACCEL_CONFIG", "a path", "", setting_read_config, 0, ENVIRONMENT, false},
    {"ACCEL_CUDA_DIR", "a folder", "", setting_read_folder, FIELD(cuda_dir), ANYWHERE, false},
    {"ACCEL_ORIGINAL", "paths separated by colons", "", setting_read_originals, FIELD(original),
     ANYWHERE, false},
    {"ACCEL_ESTIMATE", "the name of a GPU", "", setting_read_string, FIELD(estimate), INTERNAL,
     false},
    {"ACCEL_ESTIMATE_DIR", "a folder", "", setting_read_path, FIELD(estimate_dir), INTERNAL, false},
    {"ACCEL_CALLED", "a path", "", setting_read_path, FIELD(called), INTERNAL, false},
    {"ACCEL_SUMMARY_TABLE", "a path", "", setting_read_path, FIELD(summary_table), INTERNAL, false},
};
_Static_assert(sizeof setting_table / sizeof *setting_table == SETTINGS,
               "SETTINGS counts the table");

int setting_named(const char *name)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(setting_table[i].name, name) == 0)
            return i;
    return -1;
}

/* A line of a config file may lack our prefix: with it, the name must be nearly right. */
static int distance_of(const char *name, const char *setting)
{
    static const char prefix[] = "ACCEL_";
    const int distance = spelling_distance(name, setting);
    if (strncmp(setting, prefix, sizeof prefix - 1) != 0)
        return distance;
    const int bare = spelling_distance(name, setting + sizeof prefix - 1);
    return bare < distance && 3 * (size_t)bare <= strlen(name) ? bare : distance;
}

const char *setting_nearest(const char *name)
{
    const char *nearest = NULL;
    int least = INT_MAX;
    for (int i = 0; i < SETTINGS; i++) {
        int distance = distance_of(name, setting_table[i].name);
        if (setting_table[i].scope == INTERNAL || distance >= least)
            continue;
        least = distance;
        nearest = setting_table[i].name;
    }
    return nearest;
}
