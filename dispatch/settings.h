/*
 * The settings, from the environment. Read once at start; constant afterwards.
 */
#ifndef ACCEL_SETTINGS_H
#define ACCEL_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum accel_log_level { ACCEL_LOG_OFF, ACCEL_LOG_DECISIONS, ACCEL_LOG_MOVES, ACCEL_LOG_JSON };
enum accel_policy { ACCEL_POLICY_AUTO, ACCEL_POLICY_GPU, ACCEL_POLICY_CPU };

struct accel_settings {
    bool on;
    enum accel_log_level log;
    const char *log_file; /* a pattern, NULL: stderr */
    bool summary;
    enum accel_policy policy;
    double memory_share; /* of the device memory that may be used; used where memory_bytes is 0 */
    int64_t memory_bytes;
    const char *cuda_dir; /* NULL: none */
    const char *original; /* NULL: none */
};

/* Fills `settings` from the environment; values that cannot be read keep their default and are
 * remembered for settings_complain(). Not thread-safe; strings are copied. */
void settings_read(struct accel_settings *settings);

/* Names each value that could not be read, with what is allowed; once. Thread-safe. */
void settings_complain(void);

#endif
