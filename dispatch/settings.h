/*
 * The settings, from the environment and the config files. Read once at start; constant afterwards.
 */
#ifndef ACCEL_SETTINGS_H
#define ACCEL_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "pattern.h"
#include "report/log.h"

enum accel_policy { ACCEL_POLICY_AUTO, ACCEL_POLICY_GPU, ACCEL_POLICY_CPU };
enum accel_start { ACCEL_START_BACKGROUND, ACCEL_START_WAIT, ACCEL_START_PROGRAM };
enum accel_verify_action { ACCEL_VERIFY_WARN, ACCEL_VERIFY_CPU, ACCEL_VERIFY_ABORT };

/* Which devices may be used, by CUDA's numbers. */
enum accel_devices_kind { ACCEL_DEVICES_AUTO, ACCEL_DEVICES_NONE, ACCEL_DEVICES_LIST };
#define ACCEL_DEVICES_MAX 64
struct accel_devices {
    enum accel_devices_kind kind;
    int count; /* of a list: at least 1, each once, 0 to ACCEL_DEVICES_MAX - 1, in the user's order */
    int number[ACCEL_DEVICES_MAX];
};

struct accel_settings {
    bool on;
    enum accel_log_level log;
    const char *log_file; /* a pattern, NULL: stderr */
    bool summary;
    enum accel_policy policy;
    struct accel_pattern gpu_routines, cpu_routines; /* always there; never there */
    bool require_gpu;
    enum accel_start start;
    bool start_given; /* by the user */
    bool learn;
    struct accel_devices devices;
    double memory_share; /* of the device memory that may be used; used where memory_bytes is 0 */
    int64_t memory_bytes;
    uint64_t verify_every; /* every so manieth result of the GPU is checked; 0: none */
    enum accel_verify_action verify_action;
    const char *model;    /* the calibration's path; NULL: there is no place for one */
    bool model_given;     /* by the user */
    const char *cuda_dir; /* NULL: none */
    const char *original; /* NULL: none */
    /* A value that promises something (that all runs on the GPU, that results are checked) cannot be read: the program
     * must not call BLAS. */
    bool broken_promise;
    /* For the tool's own use: */
    const char *estimate;     /* a GPU's name, NULL: none */
    const char *estimate_dir; /* NULL: none */
    const char *called;       /* a file's path, NULL: none */
};

/* What beside the environment decides. */
struct settings_sources {
    const char *system_file; /* the config file behind all others; NULL: none */
    const char *program;     /* the executable's name, for ACCEL_EXCLUDE; empty: not known */
    bool secure;             /* the environment is somebody else's: nothing is read, all is off */
};

/* Fills `settings` from the environment, the file that ACCEL_CONFIG names, the user's and the system's, name by
 * name. Values that cannot be read keep their default and are remembered for settings_complain(). Where `on`
 * is false, because of ACCEL or ACCEL_EXCLUDE, `original` alone is set. Not thread-safe; strings are copied, and
 * stay valid until the next call, which starts afresh. Keeps errno. */
void settings_read_from(struct accel_settings *settings, const struct settings_sources *sources);

/* The same with /etc/accel.conf, this program, and AT_SECURE. */
void settings_read(struct accel_settings *settings);

/* Remembers for settings_complain() what in gpu_routines and cpu_routines matches none of the `count` routines.
 * After settings_read(); not thread-safe. */
void settings_check_routines(const struct accel_settings *settings,
                             const struct accel_routine *routines, uint32_t count);

/* Whether there is something to say that has not been said. Thread-safe, cheap. */
bool settings_wait_to_complain(void);

/* Names each value that could not be read, with what is allowed, each name that is no setting, with the nearest that is one,
 * and each file or folder that is missed; once. Thread-safe. */
void settings_complain(void);

#endif
